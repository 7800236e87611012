#include "engine/hopper/mbarrier.hpp"

#include <algorithm>
#include <cstdio>

#include "engine/kernel/block.hpp"

namespace vgpu {
namespace {

constexpr std::uint32_t kMaxArrivals = (1u << 20) - 1;
constexpr std::int64_t kMaxBytes = (std::int64_t{1} << 20) - 1;

}  // namespace

std::string Mbarriers::name_of(const void* word) const {
  char text[64];
  std::snprintf(text, sizeof text, "the mbarrier at shared address 0x%x",
                block_.shared().offset_of(word, sizeof(std::uint64_t)).value_or(0));
  return text;
}

void Mbarriers::init(const void* word, std::uint32_t count, const void* caller) {
  if (reinterpret_cast<std::uintptr_t>(word) % sizeof(std::uint64_t) != 0 ||
      !block_.shared().offset_of(word, sizeof(std::uint64_t))) {
    block_.fault(block_.who() + "initialises an mbarrier that is not an aligned word of its shared memory");
  }
  if (count == 0 || count > kMaxArrivals)
    block_.fault(block_.who() + "initialises an mbarrier for " + std::to_string(count) +
                 " arrivals: 1 to 2^20 - 1 are possible");
  block_.note_access(word, sizeof(std::uint64_t), true, caller);
  auto& barrier = barriers_[word];
  if (barrier == nullptr || barrier->published_) ++unpublished_;
  if (barrier == nullptr) barrier = std::make_unique<Mbarrier>();
  if (!barrier->waiting_.empty())
    block_.fault(block_.who() + "initialises " + name_of(word) + " while threads wait for it");
  *barrier = Mbarrier();
  barrier->count_ = barrier->arrivals_ = count;
  barrier->made_at_ = caller;
  barrier->made_by_ = block_.current_number();
}

Mbarrier& Mbarriers::find(Block& by, const void* word, const void* caller) {
  const auto found = barriers_.find(word);
  if (found == barriers_.end()) {
    by.fault(by.who() + "uses an mbarrier" + (&by == &block_ ? "" : " of " + block_.name()) +
             " before mbarrier_init" + at_line(caller) + ": " +
             (block_.shared().offset_of(word, sizeof(std::uint64_t)) ? name_of(word)
                                                                     : "no shared memory of its block"));
  }
  // For the race detector its word is never written but by the initialisation: all else only comes after it.
  by.note_access(word, sizeof(std::uint64_t), false, caller);
  return *found->second;
}

void Mbarriers::publish(std::size_t thread, bool proxy) {
  if (unpublished_ == 0) return;
  for (const auto& [word, barrier] : barriers_) {
    if (barrier->published_) continue;
    if (barrier->made_by_ == thread) {
      barrier->published_ = true;
      --unpublished_;
    } else if (proxy) {
      barrier->published_for_.insert(thread);
    }
  }
}

Mbarrier& Mbarriers::find_published(Block& by, const void* word, const void* caller) {
  Mbarrier& barrier = find(by, word, caller);
  const bool published =
      barrier.published_ || (&by == &block_ && barrier.published_for_.contains(by.current_number()));
  if (!published) {
    by.fault(by.who() + "issues a bulk copy" + at_line(caller) + " that reports to " + name_of(word) +
             at_line("initialised", barrier.made_at_) +
             ", but no fence has published that to bulk copies: fence_mbarrier_init or fence_proxy_async, by "
             "the thread that initialised it");
  }
  return barrier;
}

std::uint64_t Mbarriers::arrive(Block& by, const void* word, std::uint32_t count, std::uint32_t bytes,
                                bool release, const void* caller) {
  Mbarrier& barrier = find(by, word, caller);
  const std::uint64_t phase = barrier.phase_;
  if (bytes > 0) barrier.expected_at_ = caller;
  barrier.bytes_ += bytes;
  if (bytes > kMaxBytes || barrier.bytes_ > kMaxBytes) {
    by.fault(by.who() + "expects more bytes at " + name_of(word) +
             " than the 2^20 - 1 that an mbarrier can count");
  }
  if (release) by.release(point(barrier));
  barrier.arrivals_ -= count;
  if (barrier.arrivals_ < 0) {
    by.fault(by.who() + "arrives at " + name_of(word) + " once more than the " +
             std::to_string(barrier.count_) + " times of a phase" + at_line("initialised", barrier.made_at_));
  }
  advance(barrier, by.now());
  return phase;
}

void Mbarriers::complete(Mbarrier& barrier, std::uint32_t bytes, double time, const void* copied_at) {
  barrier.bytes_ -= bytes;
  barrier.copied_ = barrier.phase_ + 1;
  barrier.copied_at_ = copied_at;
  advance(barrier, time);
}

void Mbarriers::advance(Mbarrier& barrier, double time) {
  barrier.latest_ = std::max(barrier.latest_, time);
  if (barrier.arrivals_ != 0 || barrier.bytes_ != 0) return;
  barrier.completed_at_[barrier.phase_ & 1] = barrier.latest_;
  ++barrier.phase_;
  barrier.arrivals_ = barrier.count_;
  block_.wake(barrier.waiting_);
}

bool Mbarriers::wait(const void* word, bool parity, bool may_park, bool acquire, const void* caller) {
  Mbarrier& barrier = find(block_, word, caller);
  std::uint64_t behind = barrier.phase_;  // phases up to the one that is waited for
  if ((barrier.phase_ & 1) == static_cast<std::uint64_t>(parity)) {
    if (!may_park || block_.schedule().pick(4) == 1) return false;
    ++behind;
    block_.park(&barrier.waiting_);
  } else if (hb::kEnabled) {  // for reports of races
    block_.notes_of(block_.current()).passed = {word, caller, parity, barrier.phase_};
  }
  barrier.seen_ = std::max(barrier.seen_, behind);
  // The clock of another block may be ahead of this one's.
  if (block_.has_neighbours()) block_.pass_time_until(barrier.completed_at_[(behind & 1) ^ 1]);
  if (acquire) block_.acquire(barrier.order_[(behind & 1) ^ 1]);
  return true;
}

std::string Mbarriers::describe(const PassedWait& wait) const {
  const auto found = barriers_.find(wait.word);
  // Since then its phase may have ended; two phases later that wait was long ago.
  if (found == barriers_.end() || found->second->phase_ > wait.phase + 1) return {};
  return wait.describe();
}

std::uint64_t Mbarriers::bits(const void* word) const {
  const Mbarrier& barrier = *barriers_.at(word);
  return barrier.phase_ << 42 ^ static_cast<std::uint64_t>(barrier.arrivals_) << 21 ^
         static_cast<std::uint64_t>(barrier.bytes_ + kMaxBytes);
}

std::string Mbarriers::describe() const {
  std::string text;
  for (const auto& [word, barrier] : barriers_) {
    if (barrier->waiting_.empty()) continue;
    text += " " + std::to_string(barrier->waiting_.size()) + " waiting for " + name_of(word) + " (phase " +
            std::to_string(barrier->phase_) + ": " + std::to_string(barrier->arrivals_) + " of " +
            std::to_string(barrier->count_) + " arrivals and " +
            std::to_string(barrier->bytes_ < 0 ? -barrier->bytes_ : barrier->bytes_) +
            (barrier->bytes_ < 0 ? " bytes too many" : " bytes missing") +
            at_line("initialised", barrier->made_at_) + at_line("bytes expected", barrier->expected_at_) +
            ")";
  }
  return text;
}

std::string Mbarriers::describe_unseen() const {
  for (const auto& [word, barrier] : barriers_) {
    if (barrier->copied_ > barrier->seen_) {
      return "ends although no thread has waited for a bulk copy into its shared memory: " + name_of(word) +
             ", phase " + std::to_string(barrier->copied_ - 1) + at_line("copied", barrier->copied_at_);
    }
  }
  return {};
}

}  // namespace vgpu
