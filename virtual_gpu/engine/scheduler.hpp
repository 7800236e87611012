// The discrete-event scheduler. Everything that happens on the virtual GPUs is a step; one happens at a time.
// Which one of the possible steps comes next is decided by the modelled clock or, with a seed, at random.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/host/host_threads.hpp"
#include "engine/model/device.hpp"
#include "engine/schedule.hpp"
#include "engine/streams/operation.hpp"

namespace vgpu {

class Scheduler {
 public:
  Scheduler(const Devices& devices, HostThreads& hosts, Schedule& schedule)
      : devices_(devices), hosts_(hosts), schedule_(schedule) {}

  /// Runs steps, other host threads among them, until the running host thread's wait is over and it is its
  /// turn. Returns false on a deadlock: nothing can happen any more, or only polls that see nothing new.
  bool run_until(const HostThread::Wait& wait);
  /// Gives the GPUs the time until `now` on the modelled clock; with a seed, a random number of steps. For
  /// queries. Returns false if polls that saw nothing new are all that has happened and all that can happen.
  bool run_to(double now);
  /// Runs all that the GPUs hold, without any host thread. Returns false if some of it waits for ever.
  bool drain();

  /// True if some step other than polls could come next on the GPUs.
  bool work_is_left();
  /// True if nothing can happen any more on the GPUs, or only polls that see nothing new.
  bool stuck();

 private:
  void take(Step step);
  /// Gathers the steps that are possible.
  void collect();
  void add_host_threads();
  /// Brings the steps up to date after that one, if that is less work than collect(). `progress`: before it.
  bool refresh(const Step& taken, std::uint64_t progress);
  bool only_polls() const;
  bool nothing_but_idle_polls() const;
  const Step& choose();

  const Devices& devices_;
  HostThreads& hosts_;
  Schedule& schedule_;
  std::vector<Step> steps_, own_steps_;  // possible ones; kept to reuse their memory
  std::uint64_t refreshes_ = 0;
};

}  // namespace vgpu
