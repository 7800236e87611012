// Messages between the judge and the runner. A case is a few lines, an empty one, and the inputs; the answer
// is one message whose length the case determines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "overlap/gpu/element.hpp"
#include "overlap/gpu/shape.hpp"

namespace overlap::teaching {

/// One process: some calls in a row on one object per rank, each with data of its own.
struct Case {
  std::string problem;                    ///< gather, scatter or sparse: what the inputs are
  int ranks = 1;                          ///< how many
  MatmulShape sizes;                      ///< m, n, k; or rows, features, entries
  ElementType type = ElementType::kF16;   ///< of the values: f16 or f32
  int calls = 2;                          ///< in a row, without waiting
  std::optional<std::uint64_t> schedule;  ///< a random order of all operations
  std::string machine;                    ///< the modelled machine's file; empty: the default
  std::string kernels;                    ///< in the names of those whose time counts; empty: of none

  /// Parses "key=value" words. Throws std::invalid_argument with a sentence.
  static Case from(const std::map<std::string, std::string>& words);
  /// The case as lines for the runner.
  std::string text() const;
};

/// Parses "key=value" arguments of a program. Throws std::invalid_argument with a sentence.
std::map<std::string, std::string> words_of(const char* const* from, int count);

/// The inputs of one rank in one call.
struct Input {
  std::vector<std::byte> a;   ///< first input
  std::vector<std::byte> b;   ///< second input
  std::uint64_t c_bytes = 0;  ///< of the result
  std::int64_t count = 0;     ///< of a sparse gradient's entries
};

/// Bytes and copies of one link in all calls.
struct Link {
  std::uint64_t bytes = 0;   ///< moved
  std::uint64_t copies = 0;  ///< calls that moved them

  bool operator==(const Link&) const = default;
};

/// The answer: every result, by call and rank; the links, at from * (ranks + 1) + to, where index `ranks` is
/// the host; then each rank's memory, host waits, kernel time and end.
struct Answer {
  std::vector<std::vector<std::byte>> results;  ///< by call * ranks + rank
  std::vector<Link> links;                      ///< what the runner has counted
  std::vector<std::uint64_t> memory;      ///< bytes that the algorithm holds on each rank's GPU at the end
  std::vector<std::uint64_t> host_waits;  ///< of each rank's host for GPUs, in all calls
  std::vector<std::uint64_t> kernel_ns;   ///< modelled, of the kernels that the case names, in all calls
  std::vector<std::uint64_t> elapsed_ns;  ///< modelled, of all calls: when each rank's GPU ends its last work
};

/// The number of links between `ranks` ranks and the host.
constexpr std::size_t links_of(int ranks) {
  return static_cast<std::size_t>(ranks + 1) * static_cast<std::size_t>(ranks + 1);
}

/// The bytes of an answer with results of these sizes.
std::size_t answer_bytes(const std::vector<std::uint64_t>& sizes, int ranks);

/// Writes a case and its inputs, by call and rank. Throws std::runtime_error.
void write_case(int fd, const Case& which, const std::vector<Input>& inputs);
/// Reads a case and its inputs. Throws std::runtime_error with a sentence.
Case read_case(int fd, std::vector<Input>& inputs);
/// Writes an answer. Throws std::runtime_error.
void write_answer(int fd, const Answer& answer);
/// Parses an answer; `results` is empty unless the length is exact. `sizes`: bytes of each result.
Answer parse_answer(const std::vector<std::byte>& message, const std::vector<std::uint64_t>& sizes,
                    int ranks);
/// Reads to the end, at most `most` + 1 bytes. Throws std::runtime_error.
std::vector<std::byte> read_all(int fd, std::size_t most);

}  // namespace overlap::teaching
