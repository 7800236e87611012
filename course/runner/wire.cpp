#include "wire.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace overlap::teaching {
namespace {

constexpr char kMagic[8] = {'o', 'v', 'e', 'r', 'l', 'a', 'p', '1'};
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 26;  // of one input
constexpr int kMaxRanks = 16, kMaxCalls = 16;

[[noreturn]] void fail(const std::string& sentence) { throw std::runtime_error(sentence); }

void write_bytes(int fd, const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd, from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("the message cannot be written");
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

std::size_t read_some(int fd, void* to, std::size_t bytes) {
  ssize_t read = 0;
  do read = ::read(fd, to, bytes);
  while (read < 0 && errno == EINTR);
  if (read < 0) fail("the message cannot be read");
  return static_cast<std::size_t>(read);
}

void read_bytes(int fd, void* data, std::size_t bytes) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    const std::size_t read = read_some(fd, to, bytes);
    if (read == 0) fail("the case ends too early");
    to += read;
    bytes -= read;
  }
}

std::string read_line(int fd) {
  std::string line;
  for (char letter = 0;;) {
    read_bytes(fd, &letter, 1);
    if (letter == '\n') return line;
    line += letter;
    if (line.size() > 4096) fail("a line of the case is too long");
  }
}

template <typename Number>
Number number(const std::map<std::string, std::string>& words, const std::string& key, Number least,
              Number most) {
  const auto found = words.find(key);
  if (found == words.end()) throw std::invalid_argument("the case lacks " + key);
  Number value{};
  const char* end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most)
    throw std::invalid_argument(key + " is '" + found->second + "'");
  return value;
}

struct Lengths {
  std::uint64_t a, b, c;
  std::int64_t count;
};

}  // namespace

std::map<std::string, std::string> words_of(const char* const* from, int count) {
  std::map<std::string, std::string> words;
  for (int i = 0; i < count; ++i) {
    const std::string word = from[i];
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw std::invalid_argument("'" + word + "' is not KEY=VALUE");
    words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return words;
}

Case Case::from(const std::map<std::string, std::string>& words) {
  const auto text = [&](const std::string& key) {
    const auto found = words.find(key);
    return found == words.end() ? std::string() : found->second;
  };
  Case made;
  made.problem = text("problem");
  if (made.problem != "gather" && made.problem != "scatter" && made.problem != "sparse")
    throw std::invalid_argument("problem is '" + made.problem + "'");
  made.ranks = number(words, "ranks", 1, kMaxRanks);
  constexpr std::int64_t kLargest = 1 << 17;
  made.sizes = {number<std::int64_t>(words, "m", 1, kLargest), number<std::int64_t>(words, "n", 1, kLargest),
                number<std::int64_t>(words, "k", 1, kLargest)};
  const std::string type = text("type");
  if (type != "f16" && type != "f32") throw std::invalid_argument("type is '" + type + "'");
  made.type = type == "f16" ? ElementType::kF16 : ElementType::kF32;
  made.calls = number(words, "calls", 1, kMaxCalls);
  if (!text("schedule").empty())
    made.schedule = number<std::uint64_t>(words, "schedule", 0, std::numeric_limits<std::uint64_t>::max());
  made.machine = text("machine");
  made.kernels = text("kernels");
  return made;
}

std::string Case::text() const {
  std::string lines = "problem=" + problem + "\nranks=" + std::to_string(ranks);
  lines +=
      "\nm=" + std::to_string(sizes.m) + "\nn=" + std::to_string(sizes.n) + "\nk=" + std::to_string(sizes.k);
  lines += std::string("\ntype=") + (type == ElementType::kF16 ? "f16" : "f32");
  lines += "\ncalls=" + std::to_string(calls);
  if (schedule) lines += "\nschedule=" + std::to_string(*schedule);
  if (!kernels.empty()) lines += "\nkernels=" + kernels;
  return lines + "\nmachine=" + machine + "\n\n";
}

void write_case(int fd, const Case& which, const std::vector<Input>& inputs) {
  const std::string text = which.text();
  write_bytes(fd, text.data(), text.size());
  for (const Input& input : inputs) {
    const Lengths lengths{input.a.size(), input.b.size(), input.c_bytes, input.count};
    write_bytes(fd, &lengths, sizeof lengths);
    write_bytes(fd, input.a.data(), input.a.size());
    write_bytes(fd, input.b.data(), input.b.size());
  }
}

Case read_case(int fd, std::vector<Input>& inputs) {
  std::map<std::string, std::string> words;
  for (std::string line = read_line(fd); !line.empty(); line = read_line(fd)) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) fail("a line of the case has no '='");
    words[line.substr(0, equals)] = line.substr(equals + 1);
  }
  const Case which = Case::from(words);
  inputs.resize(static_cast<std::size_t>(which.calls) * static_cast<std::size_t>(which.ranks));
  for (Input& input : inputs) {
    Lengths lengths{};
    read_bytes(fd, &lengths, sizeof lengths);
    if (std::max({lengths.a, lengths.b, lengths.c}) > kMaxBytes) fail("an input of the case is too long");
    input.a.resize(lengths.a);
    input.b.resize(lengths.b);
    input.c_bytes = lengths.c;
    input.count = lengths.count;
    read_bytes(fd, input.a.data(), input.a.size());
    read_bytes(fd, input.b.data(), input.b.size());
  }
  return which;
}

void write_answer(int fd, const Answer& answer) {
  write_bytes(fd, kMagic, sizeof kMagic);
  for (const std::vector<std::byte>& result : answer.results) write_bytes(fd, result.data(), result.size());
  write_bytes(fd, answer.links.data(), answer.links.size() * sizeof(Link));
  for (const auto* counted : {&answer.memory, &answer.host_waits, &answer.kernel_ns, &answer.elapsed_ns})
    write_bytes(fd, counted->data(), counted->size() * sizeof(std::uint64_t));
}

std::size_t answer_bytes(const std::vector<std::uint64_t>& sizes, int ranks) {
  const std::size_t counted =
      links_of(ranks) * sizeof(Link) + 4 * static_cast<std::size_t>(ranks) * sizeof(std::uint64_t);
  return std::accumulate(sizes.begin(), sizes.end(), sizeof kMagic + counted);
}

Answer parse_answer(const std::vector<std::byte>& message, const std::vector<std::uint64_t>& sizes,
                    int ranks) {
  if (message.size() != answer_bytes(sizes, ranks) || std::memcmp(message.data(), kMagic, sizeof kMagic) != 0)
    return {};
  Answer answer;
  const std::byte* from = message.data() + sizeof kMagic;
  for (const std::uint64_t size : sizes) {
    answer.results.emplace_back(from, from + size);
    from += size;
  }
  answer.links.resize(links_of(ranks));
  std::memcpy(answer.links.data(), from, answer.links.size() * sizeof(Link));
  from += answer.links.size() * sizeof(Link);
  for (auto* counted : {&answer.memory, &answer.host_waits, &answer.kernel_ns, &answer.elapsed_ns}) {
    counted->resize(static_cast<std::size_t>(ranks));
    std::memcpy(counted->data(), from, counted->size() * sizeof(std::uint64_t));
    from += counted->size() * sizeof(std::uint64_t);
  }
  return answer;
}

std::vector<std::byte> read_all(int fd, std::size_t most) {
  std::vector<std::byte> all(most + 1);
  std::size_t read = 0;
  while (read < all.size()) {
    const std::size_t more = read_some(fd, all.data() + read, all.size() - read);
    if (more == 0) break;
    read += more;
  }
  all.resize(read);
  return all;
}

}  // namespace overlap::teaching
