#include "scheduler.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace vgpu {
namespace {
// Polls in a row, by all blocks together, that must see nothing new before the wait is called a deadlock.
constexpr std::int64_t kIdlePolls = 20000;
}  // namespace

Scheduler::Scheduler(std::vector<std::unique_ptr<Device>>& devices, std::optional<std::uint64_t> seed)
    : devices_(devices), seed_(seed), generator_(seed.value_or(0)) {}

bool Scheduler::collect() {
  steps_.clear();
  for (const auto& device : devices_) {
    for (const auto& stream : device->streams) {
      Operation* head = stream->head();
      if (head == nullptr) continue;
      if (head->begun) {
        head->offer(steps_);
      } else if (double time; stream->can_begin(time)) {
        steps_.push_back({time, head, kBegin});
      }
    }
  }
  const bool only_polls =
      std::all_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.poll; });
  return !only_polls || (!steps_.empty() && idle_polls_ <= kIdlePolls);
}

bool Scheduler::possible() { return collect(); }

const Step& Scheduler::choose() {
  if (random()) return steps_[pick(steps_.size())];
  return *std::min_element(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.operation->id != b.operation->id) return a.operation->id < b.operation->id;
    return a.item < b.item;
  });
}

/// FNV-1a. Modelled times stay out of it: they depend on how the compiler cut a kernel into basic blocks.
void Scheduler::mix(std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) {
    hash_ = (hash_ ^ (value >> (8 * byte) & 0xff)) * 1099511628211u;
  }
}

bool Scheduler::step(double not_after) {
  if (!collect()) return false;
  const Step step = choose();
  if (!random() && step.time > not_after) return false;
  mix(step.operation->id);
  mix(static_cast<std::uint64_t>(step.item));
  if (step.poll) ++idle_polls_;  // the polling block resets the count if it gets on
  if (step.item == kBegin) {
    step.operation->begun = true;
    const hb::Context context = step.operation->stream->contexts.own();
    hb::acquire(context, step.operation);
    for (const Token& token : step.operation->waits_for) hb::acquire(context, token.get());
    step.operation->begin(step.time);
  } else {
    step.operation->step(step);
  }
  if (!step.poll) note_progress();
  return true;
}

bool Scheduler::run_until(const std::function<bool()>& reached) {
  while (!reached()) {
    if (!step(std::numeric_limits<double>::infinity())) return false;
  }
  return true;
}

void Scheduler::run_to(double now) {
  if (!random()) {
    while (step(now)) {
    }
    return;
  }
  for (std::uint64_t steps = 1 + pick(8); steps > 0 && step(now); --steps) {
  }
}

std::string Scheduler::schedule_name() const { return random() ? std::to_string(*seed_) : "time order"; }

}  // namespace vgpu
