// Where the time of one call goes: the phases that follow each other on one stream.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "overlap/gpu/stream.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap {

/// How long one phase took on one rank.
struct Phase {
  std::string name;  ///< of what was done
  double ms = 0;     ///< on the GPU's clock, the waits of the host in it included
};

/// Times the phases of a call by events of one stream. Phases of the same name count as one.
class PhaseClock {
 public:
  explicit PhaseClock(int device) : device_(device) {}

  void start(cudaStream_t stream, const char* phase);
  /// Ends the current phase, and begins the next one. Until then the timeline's bars bear its name.
  void next(cudaStream_t stream, const char* phase);
  void stop(cudaStream_t stream);
  /// The phases of the last call, in order. Only after the stream was waited for.
  std::vector<Phase> read() const;

 private:
  void record(cudaStream_t stream);

  int device_;
  std::vector<Event> events_;  // kept from call to call
  std::size_t used_ = 0;
  std::vector<std::string> names_;
  std::optional<TimelineScope> name_;
};

}  // namespace overlap
