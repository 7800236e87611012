#include "overlap/gpu/phase_clock.hpp"

#include <algorithm>

#include "overlap/gpu/check.hpp"

namespace overlap {

void PhaseClock::start(cudaStream_t stream, const char* phase) {
  used_ = 0;
  names_.clear();
  next(stream, phase);
}

void PhaseClock::next(cudaStream_t stream, const char* phase) {
  record(stream);
  names_.emplace_back(phase);
  name_.reset();
  name_.emplace(phase);
}

void PhaseClock::stop(cudaStream_t stream) {
  record(stream);
  name_.reset();
}

void PhaseClock::record(cudaStream_t stream) {
  if (used_ == events_.size()) events_.emplace_back(device_);
  CUDA_CHECK(cudaEventRecord(events_[used_++], stream));
}

std::vector<Phase> PhaseClock::read() const {
  std::vector<Phase> phases;
  for (std::size_t i = 0; i < names_.size() && i + 1 < used_; ++i) {
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, events_[i], events_[i + 1]));
    const auto same = std::find_if(phases.begin(), phases.end(),
                                   [&](const Phase& phase) { return phase.name == names_[i]; });
    if (same == phases.end()) {
      phases.push_back({names_[i], ms});
    } else {
      same->ms += ms;
    }
  }
  return phases;
}

}  // namespace overlap
