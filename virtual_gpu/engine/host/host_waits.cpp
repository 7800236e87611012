#include "engine/host/host_waits.hpp"

#include <algorithm>
#include <cstdio>

namespace vgpu {
namespace {

// Queries in a row while nothing can happen, after which a polling host is called deadlocked.
constexpr std::uint64_t kIdleQueries = 100000;

/// Returns false if there is nothing in any stream.
bool print_streams(const Devices& devices) {
  bool idle = true;
  for (const auto& device : devices) {
    for (const auto& stream : device->streams()) {
      const Operation* head = stream->head();
      if (head == nullptr) continue;
      idle = false;
      std::fprintf(stderr, "  %s: %s: %s; %zu more behind it\n", head->origin().c_str(),
                   head->describe().c_str(), head->progress().c_str(), stream->queue().size() - 1);
    }
  }
  return !idle;
}

/// The program has ended: prints every stream's head, with what it waits for.
void report_unfinished(const Schedule& schedule, const Devices& devices) {
  std::fprintf(
      stderr,
      "virtual GPUs: main() has returned or exit() was called, and this work still waits for the host, which "
      "has not synchronised with it (%s)\n",
      schedule.describe().c_str());
  print_streams(devices);
}

/// Nothing can happen any more: prints every host thread that waits, too.
void report_deadlock(const Schedule& schedule, const Devices& devices, const HostThreads& hosts) {
  std::fprintf(stderr, "virtual GPUs: deadlock: the host waits, and no work can go on (%s)\n",
               schedule.describe().c_str());
  // If there is none, what the host waits for is all that there is to say.
  const bool idle = !print_streams(devices);
  for (const auto& thread : hosts.all()) {
    if ((!hosts.several() && !idle) || thread->wait() == nullptr || thread->ended()) continue;
    std::fprintf(stderr, "  %s (GPU %d): waits for %s\n", thread->name().c_str(), thread->device(),
                 thread->wait()->what.c_str());
  }
}

}  // namespace

void HostWaits::wait(const std::vector<Token>& tokens) {
  if (hosts_.stopping()) return;
  HostThread& self = hosts_.current();
  self.count_wait();
  const auto complete = [&] {
    return std::ranges::all_of(tokens, [](const Token& token) { return !token || token->complete; });
  };
  const auto time = [&] {
    double latest = self.now();
    for (const Token& token : tokens) latest = token ? std::max(latest, token->time) : latest;
    return latest;
  };
  machine_.schedule().note_progress();  // the host may have written what a kernel polls for
  block_until({[&] { return given_up() || complete(); }, time, "work that was enqueued"});
  throw_if_given_up();
  self.wait_until(time());
  for (const Token& token : tokens) {
    if (token) hb::acquire(hb::host_context(), token.get());
  }
}

void HostWaits::block_host(const std::function<bool()>& reached, const std::string& what) {
  HostThread& self = hosts_.current();
  machine_.schedule().note_progress();
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
    const std::uint64_t before = machine_.schedule().progress();
    block_until({[] { return true; }, [&] { return self.now(); }, "its turn", true});
    alive = machine_.schedule().progress() != before || scheduler_.work_is_left();
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
      return !token ||
             (token->complete && (machine_.schedule().random() || token->time <= hosts_.current().now()));
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
  machine_.schedule().note_progress();  // the host may have written what a kernel polls for
  if (given_up() || scheduler_.drain() || machine_.errors().faulted()) return true;
  report_unfinished(machine_.schedule(), machine_.devices());
  return false;
}

void HostWaits::stop() {
  hosts_.stop();
  for (const auto& device : machine_.devices())
    device->discard_work(hosts_.current().now(), hosts_.join_order());
}

void HostWaits::give_up_for_deadlock() {
  report_deadlock(machine_.schedule(), machine_.devices(), hosts_);
  deadlock_reported_ = true;
  machine_.errors().fault(cudaErrorLaunchTimeout, "deadlock on the virtual GPUs (reported above)");
}

void HostWaits::throw_if_given_up() const {
  machine_.errors().throw_if_faulted();
  if (hosts_.stopping()) throw ApiError(cudaErrorUnknown, "the host threads are being stopped");
}

}  // namespace vgpu
