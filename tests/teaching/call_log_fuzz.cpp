// The reader of logs gets any bytes: it either refuses them with one sentence or returns a log, and never
// crashes. Built with AddressSanitizer and UndefinedBehaviorSanitizer. Logs of its own are changed at random;
// the seed is printed. Returns 0 if, beside that, right logs are read and the known bad ones are refused.
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "call_log.hpp"

namespace overlap::teaching {
namespace {

const LogCase kCase = {.ranks = 2, .calls = 1, .operands = {{64, 64, 64}, {64, 64, 0}}};

/// A log that has every kind of line once, and can be read.
const std::string kRight =
    "overlap call log 1\nranks 2 calls 1\n"
    "0 device 0\n0 malloc 4096 @ a.cuh:1\n0 malloc_host 64\n0 stream\n0 event\n0 blas\n0 comm 2\n"
    "0 fill m0.0 255 4096 s0.0\n0 fill_sync m0.0+8 0 8\n0 copy_sync m0.0 m0.1 64\n0 record e0.0 s0.0\n"
    "0 wait s0.0 e0.0\n0 barrier\n0 blas_stream h0.0 s0.0\n0 group_start\n0 send m0.0 4 6 1 n0.0 s0.0\n"
    "0 recv m0.0+64 4 6 1 n0.0 s0.0\n0 group_end\n0 all_gather m0.0 m0.0 4 6 n0.0 s0.0\n"
    "0 reduce_scatter m0.0 m0.0 4 7 0 n0.0 s0.0\n0 all_reduce m0.0 m0.0 4 7 0 n0.0 s0.0\n"
    "0 broadcast m0.0 m0.0 4 7 1 n0.0 s0.0\n0 reduce m0.0 m0.0 4 9 0 1 n0.0 s0.0\n"
    "0 call 0 s0.0\n0 gemm h0.0 0 1 2 3 4 1065353216 b0.0 2 2 a0.0 2 3 0 c0.0 2 2 68 18446744073709551615\n"
    "0 raise m1.0 1 s0.0\n0 await m0.0+4 1 0 s0.0\n0 copy_peer m1.0 a0.0 64 s0.0\n0 copy m1.0+64 a0.0+32 32 "
    "s0.0\n"
    "0 launch 1 1 1 32 1 1 0 s0.0 m0.0 null 7 \"a kernel [with T = int]\"\n0 end 0\n"
    "0 sync_stream s0.0\n0 sync_event e0.0\n0 sync_device\n0 comm_destroy n0.0\n0 blas_destroy h0.0\n"
    "0 event_destroy e0.0\n0 stream_destroy s0.0\n0 free m0.0\n"
    "1 malloc 4096\n1 barrier\n1 stopped host barrier\n";

/// The sentence with which the text is refused; empty if it is read.
std::string refusal(const std::string& text) {
  try {
    read_call_log(text, kCase);
    return {};
  } catch (const LogError& error) {
    return error.what();
  }
}

/// The right log with something else in one place.
std::string with(const std::string& what, const std::string& instead) {
  std::string text = kRight;
  const std::size_t at = text.find(what);
  if (at == std::string::npos) std::abort();
  return text.replace(at, what.size(), instead);
}

/// Logs that must be refused, and a part of the sentence.
std::vector<std::pair<std::string, std::string>> bad_logs() {
  const std::string line(kMostLineBytes + 1, 'x'), zero(1, '\0');
  std::string many = kRight;
  for (std::size_t i = 0; i < kMostLogLines; ++i) many += "1 barrier\n";
  return {{"", "cut off"},
          {kRight.substr(0, kRight.size() - 1), "cut off"},
          {kRight.substr(0, kRight.find("1 malloc")), "memory that nobody makes"},
          {with("log 1", "log 2"), "the first line"},
          {with("ranks 2", "ranks 3"), "another case"},
          {with("calls 1", "calls 2"), "another case"},
          {with("0 barrier", "2 barrier"), "no rank 2"},
          {with("0 barrier", "-1 barrier"), "no rank -1"},
          {with("0 barrier", "99999999999 barrier"), "is no rank"},
          {with("0 barrier", "0 barrier 1"), "more behind"},
          {with("0 barrier", "0 " + zero + "barrier"), "no call that a log may have"},
          {with("0 barrier", "0 " + line), "more than 1000"},
          {with("0 barrier", "0 unknown cudaMemcpy2D"), "cudaMemcpy2D"},
          {with("malloc 4096", "malloc 99999999999"), "the log's memory"},
          {with("malloc 4096", "malloc 0"), "the log's memory"},
          {with("fill m0.0 255 4096", "fill m0.0 255 4097"), "4097 bytes where there are 4096"},
          {with("fill m0.0 255 4096", "fill m0.0+1 255 4096"), "4096 bytes where there are 4095"},
          {with("fill m0.0 255 4096", "fill m0.0+18446744073709551615 255 4096"), "names byte"},
          {with("fill m0.0 255 4096", "fill m0.7 255 4096"), "memory that nobody makes"},
          {with("fill m0.0 255 4096", "fill m0.-1 255 4096"), "no rank"},
          {with("fill m0.0 255 4096", "fill m9.0 255 4096"), "no rank 9"},
          {with("fill m0.0 255 4096", "fill c1.0 255 1"), "1 bytes where there are 0"},
          {with("fill m0.0 255 4096", "fill a0.1 255 1"), "no call 1"},
          {with("fill m0.0 255 4096 s0.0", "fill m0.0 255 4096 s1.0"), "object of rank 1"},
          {with("fill m0.0 255 4096 s0.0", "fill m0.0 255 4096 s0.1"), "not there"},
          {with("0 wait s0.0 e0.0", "0 wait e0.0 s0.0"), "none of what it takes"},
          {with("send m0.0 4 6 1", "send m0.0 9223372036854775807 6 1"), "the count"},
          {with("send m0.0 4 6 1", "send m0.0 4 6 2"), "the peer"},
          {with("send m0.0 4 6 1", "send m0.0 4 3 1"), "NCCL is given type 3"},
          {with("2 3 4 1065353216", "2147483647 2147483647 2147483647 1065353216"), "too large"},
          {with("2 3 4 1065353216", "2 3 999 1065353216"), "3996 bytes where there are 64"},
          {with("b0.0 2 2", "b0.0 2 1"), "a leading dimension"},
          {with("raise m1.0 1", "raise m1.0+2 1"), "multiple of 4"},
          {with("await m0.0+4 1 0", "await m0.0+4 1 4"), "the kind of comparison"},
          {with("launch 1 1 1 32", "launch 1048576 1 1 1024"), "threads"},
          {with("0 free m0.0", "0 free m1.0"), "not made"},
          {with("0 free m0.0", "0 free m0.0\n0 free m0.0"), "been freed"},
          {with("0 end 0\n", ""), "ends before all calls"},
          {with("0 end 0", "0 end 1"), "has not begun"},
          {with("0 call 0 s0.0", "0 call 1 s0.0"), "not the turn"},
          {with("1 stopped host barrier\n", "1 stopped host barrier\n1 barrier\n"),
           "behind the call that failed"},
          {many, "lines"},
          {std::string(kMostLogBytes + 1, '\n'), "bytes"}};
}

int check() {
  if (const std::string why = refusal(kRight); !why.empty()) {
    std::cerr << "the right log is refused: " << why << '\n';
    return 1;
  }
  for (const auto& [text, part] : bad_logs()) {
    const std::string why = refusal(text);
    if (why.find(part) != std::string::npos && why.size() < 400) continue;
    std::cerr << "not refused for '" << part << "' but: " << why << '\n';
    return 1;
  }
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  constexpr std::string_view
      kBytes = "0123456789 .+-mabcsehnd\n\"@\0\xff",
      kWords[] = {
          "18446744073709551615", "-1", "4294967296", "m1.0+4095", "null", "default", "2147483648", "\n", ""};
  std::size_t read = 0;
  constexpr int kLogs = 60000;
  for (int i = 0; i < kLogs; ++i) {
    std::string text = kRight;
    for (std::size_t changes = 1 + below(3); changes > 0 && !text.empty(); --changes) {
      const std::size_t at = below(text.size());
      if (below(3) == 0) {
        text.replace(at, std::min(text.size() - at, below(12)), kWords[below(std::size(kWords))]);
      } else if (below(20) == 0) {
        text.resize(at + 1);
      } else {
        text[at] = kBytes[below(kBytes.size())];
      }
    }
    read += refusal(text).empty();
  }
  std::cout << kLogs << " changed logs (seed " << seed << "): " << read << " can still be read\n";
  return 0;
}

}  // namespace
}  // namespace overlap::teaching

int main() { return overlap::teaching::check(); }
