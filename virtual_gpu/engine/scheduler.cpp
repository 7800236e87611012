#include "engine/scheduler.hpp"

#include <algorithm>
#include <limits>

namespace vgpu {

void Scheduler::collect() {
  steps_.clear();
  for (const auto& device : devices_) {
    for (const Stream* stream : device->busy_streams()) {
      Operation* next = stream->head();
      if (next->begun) {
        next->offer(steps_);
        next = stream->dependent();
        if (next != nullptr && next->begun) {
          next->offer(steps_);
          continue;
        }
      }
      if (double time; next != nullptr && stream->can_begin(*next, time))
        steps_.push_back({time, next, kBegin});
    }
  }
}

void Scheduler::add_host_threads() {
  if (!hosts_.several()) return;
  for (std::size_t i = 0; i < hosts_.all().size(); ++i) {
    HostThread& thread = *hosts_.all()[i];
    if (thread.wait() == nullptr || thread.ended() || !thread.wait()->reached()) continue;
    steps_.push_back(
        {thread.wait()->time(), nullptr, static_cast<std::int64_t>(i), thread.wait()->poll, &thread});
  }
}

/// A host thread may do anything, so it is never only a poll.
bool Scheduler::only_polls() const {
  return std::ranges::all_of(steps_, [](const Step& step) { return step.poll && step.host == nullptr; });
}

bool Scheduler::nothing_but_idle_polls() const {
  if (!schedule_.has_only_polled() || !only_polls()) return false;
  return schedule_.has_polled_too_long() || std::ranges::all_of(steps_, &Step::idle);
}

bool Scheduler::stuck() {
  collect();
  return steps_.empty() || nothing_but_idle_polls();
}

bool Scheduler::work_is_left() {
  collect();
  return !only_polls();
}

const Step& Scheduler::choose() {
  if (schedule_.random()) return steps_[schedule_.pick(steps_.size())];
  return *std::min_element(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    if (a.time != b.time) return a.time < b.time;
    if ((a.host == nullptr) != (b.host == nullptr))
      return a.host == nullptr;  // what is due on the GPUs first
    if (a.host == nullptr && a.operation->id != b.operation->id) return a.operation->id < b.operation->id;
    return a.item < b.item;
  });
}

/// A copy of the step: what it does may collect() again.
void Scheduler::take(Step step) {
  schedule_.step_at(step.time);
  schedule_.mix(step.operation->id);
  schedule_.mix(static_cast<std::uint64_t>(step.item));
  if (step.poll) schedule_.count_poll();  // before it is known whether the block gets on
  if (step.item == kBegin) {
    step.operation->started(step.time);
    const hb::Context context = step.operation->contexts().own();
    hb::acquire(context, step.operation);
    for (const Token& token : step.operation->waits_for) hb::acquire(context, token.get());
    step.operation->begin(step.time);
  } else {
    step.operation->step(step);
  }
  if (!step.poll) schedule_.note_progress();
}

/// Of many GPUs whose kernels wait, most steps are polls that see nothing new. These change what is possible
/// in their own kernel alone. (Nearly: a kernel may have written plainly what a stream waits for. So not too
/// often in a row.)
bool Scheduler::refresh(const Step& taken, std::uint64_t progress) {
  constexpr int kRefreshes = 64;
  if (schedule_.random() || progress != schedule_.progress() || ++refreshes_ % kRefreshes == 0) return false;
  const auto same = [&taken](const Step& step) { return step.operation == taken.operation; };
  auto first = steps_.begin() + (&taken - steps_.data());
  const auto end = std::find_if_not(first, steps_.end(), same);
  while (first != steps_.begin() && same(*std::prev(first))) --first;
  own_steps_.clear();
  taken.operation->offer(own_steps_);
  if (std::ssize(own_steps_) != end - first) return false;
  std::copy(own_steps_.begin(), own_steps_.end(), first);
  return true;
}

bool Scheduler::run_until(const HostThread::Wait& wait) {
  hosts_.current().begin_wait(wait);
  bool reached = true, known = false;
  while (hosts_.several() || !wait.reached()) {
    if (!known || steps_.empty() || nothing_but_idle_polls()) {
      collect();
      add_host_threads();
    }
    if (steps_.empty() || nothing_but_idle_polls()) {
      reached = false;
      break;
    }
    const Step& chosen = choose();
    const Step step = chosen;
    if (step.host == nullptr) {
      const std::uint64_t progress = schedule_.progress();
      take(step);
      known = step.poll && refresh(chosen, progress);
      continue;
    }
    schedule_.mix(~static_cast<std::uint64_t>(step.item));
    if (!step.poll) schedule_.note_progress();
    hosts_.switch_to(*step.host);
    break;  // somebody has chosen this thread
  }
  hosts_.current().end_wait();
  return reached;
}

bool Scheduler::run_to(double now) {
  const std::uint64_t before = schedule_.progress();
  std::uint64_t left = schedule_.random() ? 1 + schedule_.pick(8) : std::numeric_limits<std::uint64_t>::max();
  for (collect(); left > 0 && !steps_.empty(); --left, collect()) {
    if (!schedule_.random() && choose().time > now) break;
    take(choose());
  }
  return schedule_.progress() != before || !only_polls();
}

bool Scheduler::drain() {
  for (collect(); !steps_.empty() && !nothing_but_idle_polls(); collect()) take(choose());
  return std::ranges::all_of(devices_, [](const auto& device) { return device->busy_streams().empty(); });
}

}  // namespace vgpu
