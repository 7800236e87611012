// From which lines of the program calls are made: remembered as return addresses, looked up once at the end.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace overlap::teaching {

/// Call stacks of this process.
class CallerPlaces {
 public:
  /// Remembers who calls. Returns its number; the same stack has the same.
  std::size_t here();
  /// By number: "ring.cuh:59", the innermost line of a stack that is neither the repository's common code nor
  /// the system's; empty where there is none, or where binutils' addr2line is missing.
  std::vector<std::string> resolve() const;

 private:
  static constexpr int kFrames = 24;
  using Stack = std::array<void*, kFrames>;

  std::map<Stack, std::size_t> numbers_;
};

}  // namespace overlap::teaching
