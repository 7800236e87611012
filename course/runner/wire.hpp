// What goes from the judge to the runner and back. A case is a few lines, an empty one, and the inputs; the
// answer is one message of exactly the length that the case implies.
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

/// What is run: one process, some calls in a row on one object of each rank, each with data of its own.
struct Case {
  std::string problem;                    ///< gather, scatter or sparse: what the inputs are
  int ranks = 1;                          ///< how many
  MatmulShape sizes;                      ///< m, n, k; or rows, features, entries
  ElementType type = ElementType::kF16;   ///< of the values: f16 or f32
  int calls = 2;                          ///< in a row, without waiting
  std::optional<std::uint64_t> schedule;  ///< a random order of all operations
  std::string machine;                    ///< the modelled machine's file; empty: the default
  std::string kernels;                    ///< in the names of those whose time counts; empty: of none

  /// From "key=value" words. Throws std::invalid_argument with a sentence.
  static Case from(const std::map<std::string, std::string>& words);
  /// Its lines, as the runner reads them.
  std::string text() const;
};

/// "key=value" words, such as programs are started with. Throws std::invalid_argument with a sentence.
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

  /// Equal in both.
  bool operator==(const Link&) const = default;
};

/// The answer: every result, by call and rank; then the links, from * (ranks + 1) + to, where `ranks` is the
/// host; then of each rank the memory, the waits of its host, the time of its kernels, and when it ends.
struct Answer {
  std::vector<std::vector<std::byte>> results;  ///< by call * ranks + rank
  std::vector<Link> links;                      ///< what the runner has counted
  std::vector<std::uint64_t> memory;      ///< bytes that the algorithm holds on each rank's GPU at the end
  std::vector<std::uint64_t> host_waits;  ///< of each rank's host for GPUs, in all calls
  std::vector<std::uint64_t> kernel_ns;   ///< modelled, of the kernels that the case names, in all calls
  std::vector<std::uint64_t> elapsed_ns;  ///< modelled, of all calls: when each rank's GPU ends its last work
};

/// How many links there are between so many ranks and the host.
constexpr std::size_t links_of(int ranks) {
  return static_cast<std::size_t>(ranks + 1) * static_cast<std::size_t>(ranks + 1);
}

/// The bytes of an answer with results of these sizes.
std::size_t answer_bytes(const std::vector<std::uint64_t>& sizes, int ranks);

/// Writes a case and its inputs, by call and rank. Throws std::runtime_error.
void write_case(int fd, const Case& which, const std::vector<Input>& inputs);
/// Reads them. Throws std::runtime_error with a sentence.
Case read_case(int fd, std::vector<Input>& inputs);
/// Writes an answer. Throws std::runtime_error.
void write_answer(int fd, const Answer& answer);
/// Takes an answer apart; empty `results` unless it is of exactly the right length. `sizes` are those of the
/// results.
Answer parse_answer(const std::vector<std::byte>& message, const std::vector<std::uint64_t>& sizes,
                    int ranks);
/// All that can be read, at most `most` bytes and one more. Throws std::runtime_error.
std::vector<std::byte> read_all(int fd, std::size_t most);

}  // namespace overlap::teaching
