#include "engine/scheduler.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

namespace vgpu {
namespace {
// Polls in a row, by all blocks together, that must see nothing new before the wait is called a deadlock, if
// each of the blocks repeats itself: one that computes for long does not.
constexpr std::int64_t kIdlePolls = 20000;
// From here on blocks look whether they do. Not before: most waits are over sooner.
constexpr std::int64_t kDoubtfulPolls = kIdlePolls / 2;
// The same if a block does not repeat itself, since a wait may count its looks.
constexpr std::int64_t kPolls = 1'000'000;
// And if a block computes or waits for time to pass: so many times that with weight 1.
constexpr std::int64_t kComputations = 10'000'000;
}  // namespace

Scheduler::Scheduler(const Devices& devices, HostThreads& hosts, std::optional<std::uint64_t> seed)
    : devices_(devices), hosts_(hosts), seed_(seed), generator_(seed.value_or(0)) {}

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
  return std::all_of(steps_.begin(), steps_.end(),
                     [](const Step& step) { return step.poll && step.host == nullptr; });
}

void Scheduler::count_poll() {
  if (progress_ != polled_progress_) polls_ = computations_ = computed_at_ = 0;
  polled_progress_ = progress_;
  ++polls_;
}

bool Scheduler::is_in_doubt() const { return polls_ > kDoubtfulPolls && progress_ == polled_progress_; }

bool Scheduler::nothing_but_idle_polls() const {
  if (polls_ <= kIdlePolls || progress_ != polled_progress_ || !only_polls()) return false;
  return polls_ - computed_at_ > kPolls || computations_ > kComputations ||
         std::all_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.idle; });
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
  if (random()) return steps_[pick(steps_.size())];
  return *std::min_element(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    if (a.time != b.time) return a.time < b.time;
    if ((a.host == nullptr) != (b.host == nullptr))
      return a.host == nullptr;  // what is due on the GPUs first
    if (a.host == nullptr && a.operation->id != b.operation->id) return a.operation->id < b.operation->id;
    return a.item < b.item;
  });
}

/// FNV-1a. Modelled times stay out of it: they depend on how the compiler cut a kernel into basic blocks.
void Scheduler::mix(std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) {
    hash_ = (hash_ ^ (value >> (8 * byte) & 0xff)) * 1099511628211u;
  }
}

/// A copy of the step: what it does may collect() again.
void Scheduler::take(Step step) {
  now_ = step.time;
  mix(step.operation->id);
  mix(static_cast<std::uint64_t>(step.item));
  if (step.poll) count_poll();  // before it is known whether the block gets on
  if (step.item == kBegin) {
    step.operation->started(step.time);
    const hb::Context context = step.operation->contexts().own();
    hb::acquire(context, step.operation);
    for (const Token& token : step.operation->waits_for) hb::acquire(context, token.get());
    step.operation->begin(step.time);
  } else {
    step.operation->step(step);
  }
  if (!step.poll) note_progress();
}

/// Of many GPUs whose kernels wait, most steps are polls that see nothing new. These change what is possible
/// in their own kernel alone. (Nearly: a kernel may have written plainly what a stream waits for. So not too
/// often in a row.)
bool Scheduler::refresh(const Step& taken, std::uint64_t progress) {
  constexpr int kRefreshes = 64;
  if (random() || progress != progress_ || ++refreshes_ % kRefreshes == 0) return false;
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
      const std::uint64_t progress = progress_;
      take(step);
      known = step.poll && refresh(chosen, progress);
      continue;
    }
    mix(~static_cast<std::uint64_t>(step.item));
    if (!step.poll) note_progress();
    hosts_.switch_to(*step.host);
    break;  // somebody has chosen this thread
  }
  hosts_.current().end_wait();
  return reached;
}

bool Scheduler::run_to(double now) {
  const std::uint64_t before = progress_;
  std::uint64_t left = random() ? 1 + pick(8) : std::numeric_limits<std::uint64_t>::max();
  for (collect(); left > 0 && !steps_.empty(); --left, collect()) {
    if (!random() && choose().time > now) break;
    take(choose());
  }
  return progress_ != before || !only_polls();
}

bool Scheduler::drain() {
  for (collect(); !steps_.empty() && !nothing_but_idle_polls(); collect()) take(choose());
  return std::ranges::all_of(devices_, [](const auto& device) { return device->busy_streams().empty(); });
}

std::string Scheduler::describe() const {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(hash_));
  return "schedule " + (random() ? std::to_string(*seed_) : "time order") + ", hash " + hash;
}

}  // namespace vgpu
