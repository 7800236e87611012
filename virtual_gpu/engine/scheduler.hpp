// The discrete-event scheduler. Everything that happens on the virtual GPUs is a step; one happens at a time.
// Which one of the possible steps comes next is decided by the modelled clock or, with a seed, at random.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/host/host_threads.hpp"
#include "engine/model/device.hpp"
#include "engine/streams/operation.hpp"

namespace vgpu {

class Scheduler {
 public:
  Scheduler(const Devices& devices, HostThreads& hosts, std::optional<std::uint64_t> seed);

  /// Runs steps, other host threads among them, until the running host thread's wait is over and it is its
  /// turn. Returns false on a deadlock: nothing can happen any more, or only polls that see nothing new.
  bool run_until(const HostThread::Wait& wait);
  /// Gives the GPUs the time until `now` on the modelled clock; with a seed, a random number of steps. For
  /// queries. Returns false if polls that saw nothing new are all that has happened and all that can happen.
  bool run_to(double now);
  /// Runs all that the GPUs hold, without any host thread. Returns false if some of it waits for ever.
  bool drain();

  bool random() const { return seed_.has_value(); }
  /// With a seed: a random number below `bound`. Without: 0.
  std::uint64_t pick(std::uint64_t bound) { return random() && bound > 1 ? generator_() % bound : 0; }
  std::uint64_t hash() const { return hash_; }
  /// Something happened that a polling block may be waiting for.
  void note_progress() { ++progress_; }
  /// Grows with everything that happens but polls.
  std::uint64_t progress() const { return progress_; }
  /// True if some step other than polls could come next on the GPUs.
  bool work_is_left();
  /// True if nothing can happen any more on the GPUs, or only polls that see nothing new.
  bool stuck();
  /// So many polls have seen nothing new that a block has to know whether it repeats itself.
  bool is_in_doubt() const;
  /// The last poll is of a block that computes, or that waits for time to pass: it may go on without news.
  /// Not for ever: `weight` says how soon such polls, too, are called a deadlock.
  void note_computation(std::int64_t weight) {
    computations_ += weight;
    computed_at_ = polls_;
  }
  /// Time of the last step, ns.
  double now() const { return now_; }
  /// "schedule 17, hash 7a42e5de413b0806", or "schedule time order, ...".
  std::string describe() const;

 private:
  void take(Step step);
  /// Gathers the steps that are possible.
  void collect();
  void add_host_threads();
  /// Brings the steps up to date after that one, if that is less work than collect(). `progress`: before it.
  bool refresh(const Step& taken, std::uint64_t progress);
  bool only_polls() const;
  void count_poll();
  bool nothing_but_idle_polls() const;
  const Step& choose();
  void mix(std::uint64_t value);

  const Devices& devices_;
  HostThreads& hosts_;
  std::optional<std::uint64_t> seed_;
  std::mt19937_64 generator_;
  std::vector<Step> steps_, own_steps_;  // possible ones; kept to reuse their memory
  std::uint64_t refreshes_ = 0;
  std::uint64_t hash_ = 14695981039346656037u;
  std::int64_t polls_ = 0;             // since the last progress
  std::int64_t computations_ = 0;      // of those that are one, the sum of their weights
  std::int64_t computed_at_ = 0;       // the last such poll's number
  std::uint64_t polled_progress_ = 0;  // `progress_` at the last poll
  std::uint64_t progress_ = 0;
  double now_ = 0;
};

}  // namespace vgpu
