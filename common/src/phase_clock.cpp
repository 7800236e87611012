#include "overlap/phase_clock.hpp"

#include <algorithm>

#include "overlap/check.hpp"

namespace overlap {

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
