// The failures that a program reports in one sentence, and the exit status that each one leads to.
#pragma once

#include <stdexcept>

namespace overlap {

/// Exit status of all programs (chapter_main() maps exceptions to them).
inline constexpr int kExitOk = 0;
inline constexpr int kExitWrongResult = 1;  ///< the program ran, and its result is wrong
inline constexpr int kExitFailed = 2;       ///< unusable options, or a call that failed
inline constexpr int kExitRace = 3;         ///< a race or a deadlock was reported
inline constexpr int kExitSkipped = 77;     ///< cannot run here; CTest's SKIP_RETURN_CODE

/// The user asked for something that cannot be done: a bad option, a size without elements. Exit status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The program ran and its result is wrong. Exit status 1.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The program cannot run on this machine, for the reason given (one line). Exit status 77.
class Skip : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace overlap
