#include "engine/streams/pull_queue.hpp"

#include <algorithm>

namespace vgpu {

void PullQueue::insert(double enqueued, const Token& done) {
  const auto place = std::upper_bound(pulls_.begin(), pulls_.end(), enqueued,
                                      [](double time, const Pull& pull) { return time < pull.enqueued; });
  pulls_.insert(place, {enqueued, done});
}

Token PullQueue::first() {
  for (; !pulls_.empty() && pulls_.front().done->complete; pulls_.pop_front())
    free_at_ = std::max(free_at_, pulls_.front().done->time);
  return pulls_.empty() ? nullptr : pulls_.front().done;
}

bool PullQueue::is_first(const Token& done, double& time) {
  const bool found = first() == done;
  time = std::max(time, free_at_);
  return found;
}

}  // namespace vgpu
