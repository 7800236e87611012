// Host threads and their barrier.
#include <algorithm>

#include "engine/host/host_code.hpp"
#include "engine/runtime.hpp"
#include "vgpu/control.hpp"

namespace vgpu {

void run_host_threads(int count, const std::function<void(int)>& body) {
  require_host_code("vgpu::run_host_threads()");
  hb::start();
  const hb::RuntimeScope scope;
  HostWaits& waits = runtime().waits();
  runtime().hosts().run([&waits](const HostThread::Wait& wait) { waits.block_until(wait); }, count, body);
}

int host_thread() {
  Runtime* runtime = runtime_if_started();
  return runtime == nullptr ? -1 : runtime->host().number();
}

void stop_host_threads() {
  require_host_code("vgpu::stop_host_threads()");
  const hb::RuntimeScope scope;
  if (runtime().hosts().several()) runtime().waits().stop();
}

bool HostBarrier::wait() {
  require_host_code("HostBarrier::wait()");
  if (hb::left_out("a barrier of host threads")) return true;
  const hb::RuntimeScope scope;
  HostThread& self = runtime().host();
  const std::uint64_t generation = generation_;
  Round& round = rounds_[generation % 2];
  hb::release(self.context(), &round);
  latest_ = std::max(latest_, self.now());
  if (++arrived_ == count_) {
    round.opened = latest_;
    arrived_ = 0;
    latest_ = 0;
    ++generation_;
  }
  try {
    runtime().waits().block_host([&] { return generation_ != generation; },
                                 "all " + std::to_string(count_) + " threads to reach a barrier");
  } catch (const ApiError&) {
    return false;
  }
  self.wait_until(round.opened);
  hb::acquire(self.context(), &round);
  return true;
}

}  // namespace vgpu
