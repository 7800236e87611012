#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include "overlap/gpu/error.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

namespace fs = std::filesystem;

// A temporary file in the folder of the final one, so that one rename replaces it. Unless kept, it is
// removed: a failure leaves nothing behind.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target)
      : path_(target.string() + ".tmp-" + std::to_string(getpid())) {
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw std::runtime_error(std::strerror(errno));
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!kept_) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write_all(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw std::runtime_error(std::strerror(errno));
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  // A full disk may show only now: on closing.
  void keep_as(const fs::path& target) {
    const int descriptor = std::exchange(descriptor_, -1);
    if (close(descriptor) != 0 || std::rename(path_.c_str(), target.c_str()) != 0) {
      throw std::runtime_error(std::strerror(errno));
    }
    kept_ = true;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
  bool kept_ = false;
};

// The file that a write to `path` changes. Follows a link, because renaming would replace the link itself, as
// for /dev/stdout.
fs::path target_of(const std::string& path) {
  const fs::path target = fs::weakly_canonical(fs::absolute(path));
  const fs::file_status status = fs::status(target);
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw std::runtime_error("it is not a regular file");
  return target;
}

}  // namespace

void require_writable(const std::string& option, const std::string& path) {
  if (path.empty()) throw UsageError(option + ": the name of the file is empty");
  try {
    // Only a trial is reliable: permissions, read-only disks and unusual file systems all matter.
    const TemporaryFile probe(target_of(path));
  } catch (const std::runtime_error& error) {  // filesystem_error is one
    throw UsageError(option + ": '" + path + "' cannot be written: " + error.what());
  }
}

void write_file(const std::string& path, std::string_view text) {
  try {
    const fs::path target = target_of(path);
    TemporaryFile file(target);
    file.write_all(text);
    file.keep_as(target);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("'" + path + "' cannot be written: " + error.what());
  }
}

}  // namespace overlap
