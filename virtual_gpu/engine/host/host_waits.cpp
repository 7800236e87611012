#include "engine/host/host_waits.hpp"

#include <algorithm>

#include "engine/host/deadlock_report.hpp"

namespace vgpu {
namespace {

// Queries in a row while nothing can happen, after which a polling host is called deadlocked.
constexpr std::uint64_t kIdleQueries = 100000;

}  // namespace

void HostWaits::wait(const std::vector<Token>& tokens) {
  if (hosts_.stopping()) return;
  HostThread& self = hosts_.current();
  self.count_wait();
  const auto complete = [&] {
    return std::all_of(tokens.begin(), tokens.end(),
                       [](const Token& token) { return !token || token->complete; });
  };
  const auto time = [&] {
    double latest = self.now();
    for (const Token& token : tokens) latest = token ? std::max(latest, token->time) : latest;
    return latest;
  };
  schedule_.note_progress();  // the host may have written what a kernel polls for
  block_until({[&] { return given_up() || complete(); }, time, "work that was enqueued"});
  throw_if_given_up();
  self.wait_until(time());
  for (const Token& token : tokens) {
    if (token) hb::acquire(hb::host_context(), token.get());
  }
}

void HostWaits::block_host(const std::function<bool()>& reached, const std::string& what) {
  HostThread& self = hosts_.current();
  schedule_.note_progress();
  block_until({[&] { return given_up() || reached(); }, [&] { return self.now(); }, what});
  throw_if_given_up();
}

void HostWaits::block_until(const HostThread::Wait& wait) {
  if (scheduler_.run_until(wait)) return;
  hosts_.current().begin_wait(wait);  // it waits still
  give_up_for_deadlock();
  hosts_.current().end_wait();
}

void HostWaits::yield() {
  bool alive;
  if (hosts_.several()) {
    const HostThread& self = hosts_.current();
    const std::uint64_t before = schedule_.progress();
    block_until({[] { return true; }, [&] { return self.now(); }, "its turn", true});
    alive = schedule_.progress() != before || scheduler_.work_is_left();
  } else {
    alive = scheduler_.run_to(hosts_.current().now());
  }
  throw_if_given_up();
  idle_queries_ = alive ? 0 : idle_queries_ + 1;
  if (idle_queries_ > kIdleQueries && scheduler_.stuck()) give_up_for_deadlock();
  throw_if_given_up();
}

bool HostWaits::observe(const std::vector<Token>& tokens) {
  hosts_.current().count_wait();
  const auto known = [&] {
    return std::all_of(tokens.begin(), tokens.end(), [&](const Token& token) {
      return !token || (token->complete && (schedule_.random() || token->time <= hosts_.current().now()));
    });
  };
  if (hosts_.several() || !known()) yield();
  if (!known()) return false;
  for (const Token& token : tokens) {
    if (token) hb::acquire(hb::host_context(), token.get());
  }
  return true;
}

bool HostWaits::drain() {
  schedule_.note_progress();  // the host may have written what a kernel polls for
  if (given_up() || scheduler_.drain() || errors_.faulted()) return true;
  report_unfinished(schedule_, devices_);
  return false;
}

void HostWaits::stop() {
  hosts_.stop();
  for (const auto& device : devices_) device->discard_work(hosts_.current().now(), hosts_.join_order());
}

void HostWaits::give_up_for_deadlock() {
  report_deadlock(schedule_, devices_, hosts_);
  deadlock_reported_ = true;
  errors_.fault(cudaErrorLaunchTimeout, "deadlock on the virtual GPUs (reported above)");
}

void HostWaits::throw_if_given_up() const {
  errors_.throw_if_faulted();
  if (hosts_.stopping()) throw ApiError(cudaErrorUnknown, "the host threads are being stopped");
}

}  // namespace vgpu
