// Writes a call log (call_log.hpp) of what the ranks of this process call.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include <vgpu/calls.hpp>

#include "call_log.hpp"
#include "caller_places.hpp"

namespace overlap::teaching {

/// Is told of all calls as long as it lives. What cannot be logged becomes a line `unknown`.
class Recorder final : public vgpu::CallObserver {
 public:
  explicit Recorder(int ranks);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// The rank's calls are logged from now on, until one fails.
  void begin(int rank);
  /// A rank's operand: `name` a, b or c.
  void add_operand(int rank, char name, int call, const void* memory, std::size_t bytes);
  /// The rank begins or ends a call of the algorithm on that stream.
  void begin_call(int rank, int call, cudaStream_t stream);
  void end_call(int rank, int call);
  /// The rank has made its calls: what it does from now on is not logged.
  void finish(int rank);

  void called(const vgpu::Call& call) override;
  /// The log so far. Throws LogError if it exceeds a log's bounds.
  std::string text(int calls);

 private:
  struct Memory {
    std::string name;
    std::size_t bytes;
  };
  struct Line {
    std::string text;
    std::size_t place;  // of places_
  };
  struct RankLog {
    std::vector<Line> lines;
    std::map<char, std::map<const void*, int>> objects;  // by kind, that live
    std::map<char, int> made;                            // by kind
    bool finished = true;
  };

  void write(int rank, std::string text);
  void make(int rank, char kind, const void* handle);
  std::string forget(int rank, char kind, const void* handle);
  std::string argument(int rank, char kind, const vgpu::CallArgument& argument);
  std::string memory(const void* address) const;
  std::optional<std::string> line_of(int rank, const vgpu::Call& call);
  std::string launch_line(int rank, const vgpu::Call& call);

  std::vector<RankLog> ranks_;
  std::map<const std::byte*, Memory> memory_;  // that lives, by its begin
  CallerPlaces places_;
  std::size_t bytes_ = 0;
  bool too_long_ = false;
};

}  // namespace overlap::teaching
