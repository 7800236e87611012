// What the writer of a log and its judge are started with: the same case, on both sides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "call_log.hpp"
#include "overlap/gpu/element_type.hpp"
#include "overlap/gpu/shape.hpp"
#include "overlap/program/algorithms.hpp"

namespace overlap::teaching {

/// An algorithm on a shape, and what is asked of it.
struct ReplayCase {
  std::string algorithm = {};  ///< its name; empty: the chapter's first
  MatmulShape shape = {};
  ElementType type = ElementType::kF16;
  int gpus = 2;
  int calls = 1;
  std::string log = {};  ///< the file

  std::uint64_t seed = 1;                      ///< of A and B; the judge's alone
  std::optional<std::uint64_t> schedule = {};  ///< of a random order; none: in the order of time
  int seconds = 60;                            ///< that a replay may take
  bool json = false;

  /// Throws UsageError if the chapter has no such algorithm.
  const AlgorithmEntry& entry() const;
  /// What the log has no say in.
  LogCase known() const;
};

/// Reads the command line. `judges`: with the options of the judge. Throws UsageError with one sentence;
/// returns none after --help.
std::optional<ReplayCase> read_case(int argc, const char* const* argv, bool judges);

}  // namespace overlap::teaching
