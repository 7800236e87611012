#include "engine/host_thread.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "engine/runtime.hpp"
#include "vgpu/control.hpp"

namespace vgpu {
namespace {

// As much as an operating system thread has. The memory is only reserved.
constexpr std::size_t kHostStack = 8 << 20;

static_assert(sizeof(HostThread::ExceptionState) == 2 * sizeof(void*));
/// libstdc++ and libc++abi begin their state of a thread with these two members (Itanium C++ ABI, 2.2.2).
HostThread::ExceptionState& exception_state() {
  return *reinterpret_cast<HostThread::ExceptionState*>(abi::__cxa_get_globals());
}

}  // namespace

HostThreads::HostThreads() : stacks_(kHostStack) {
  threads_.push_back(std::make_unique<HostThread>());
  current_ = threads_.front().get();
  hb::start();
  current_->context = hb::host_context();
}

void HostThreads::switch_to(HostThread& thread) {
  HostThread& from = *current_;
  if (&thread == &from) return;
  from.exceptions = exception_state();
  exception_state() = thread.exceptions;
  current_ = &thread;
  hb::become_host(thread.context);
  switch_fiber(from.stack != nullptr ? *from.stack : from.fiber,
               thread.stack != nullptr ? *thread.stack : thread.fiber);
}

void HostThreads::start(HostThread& thread, int index) {
  const HostThread& parent = *current_;
  thread.number = index;
  thread.name = "host thread " + std::to_string(index);
  thread.now = parent.now;
  thread.context = hb::make_context(thread.name);
  thread.stack = &stacks_.get(&HostThreads::fiber_entry);
}

void HostThreads::fiber_entry() {
  HostThreads& threads = runtime().hosts;
  HostThread& self = threads.current();
  hb::acquire(self.context, &threads);
  hb::enter(self.context);
  (*threads.body_)(self.number);
  hb::enter(hb::runtime_context());
  hb::release(self.context, &threads.join_order_);
  self.ended = true;
  // Somebody else goes on, at the latest who waits for this thread's end. After a deadlock all do.
  const HostThread::Wait never{[] { return false; }, [] { return 0.0; }, "", false};
  for (;;) threads.runtime_->block_until(never);
}

void HostThreads::run(Runtime& runtime, int count, const std::function<void(int)>& body) {
  if (several()) throw std::logic_error("host threads cannot start others");
  if (count < 1) throw std::logic_error("at least one host thread is needed");
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  const std::function<void(int)> guarded = [&](int index) {
    try {
      body(index);
    } catch (...) {
      errors[static_cast<std::size_t>(index)] = std::current_exception();
    }
  };
  body_ = &guarded;
  runtime_ = &runtime;
  hb::release(current_->context, this);
  HostThread::Wait at_once{[] { return true; }, {}, "its start", false};
  std::vector<HostThread::Wait> starts;
  starts.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads_.push_back(std::make_unique<HostThread>());
    start(*threads_.back(), i);
    HostThread* thread = threads_.back().get();
    starts.push_back(at_once);
    starts.back().time = [thread] { return thread->now; };
    thread->wait = &starts.back();
  }
  const auto all_ended = [this] {
    return std::all_of(threads_.begin() + 1, threads_.end(),
                       [](const auto& thread) { return thread->ended; });
  };
  const auto last_end = [this] {
    double time = 0;
    for (const auto& thread : threads_) time = std::max(time, thread->now);
    return time;
  };
  const HostThread::Wait join{all_ended, last_end, "the end of its threads", false};
  while (!all_ended()) runtime.block_until(join);
  current_->now = last_end();
  hb::acquire(current_->context, &join_order_);
  for (std::size_t i = 1; i < threads_.size(); ++i) {
    stacks_.put(*threads_[i]->stack);
    hb::destroy_context(threads_[i]->context);
  }
  threads_.resize(1);
  runtime.stopping_ = false;
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void run_host_threads(int count, const std::function<void(int)>& body) {
  hb::start();
  const hb::RuntimeScope scope;
  runtime().hosts.run(runtime(), count, body);
}

int host_thread() {
  Runtime* runtime = runtime_if_started();
  return runtime == nullptr ? -1 : runtime->host().number;
}

void stop_host_threads() {
  const hb::RuntimeScope scope;
  if (runtime().hosts.several()) runtime().stop();
}

bool HostBarrier::wait() {
  const hb::RuntimeScope scope;
  HostThread& self = runtime().host();
  const std::uint64_t generation = generation_;
  Round& round = rounds_[generation % 2];
  hb::release(self.context, &round);
  latest_ = std::max(latest_, self.now);
  if (++arrived_ == count_) {
    round.opened = latest_;
    arrived_ = 0;
    latest_ = 0;
    ++generation_;
  }
  try {
    runtime().block_host([&] { return generation_ != generation; },
                         "all " + std::to_string(count_) + " threads to reach a barrier");
  } catch (const ApiError&) {
    return false;
  }
  self.now = std::max(self.now, round.opened);
  hb::acquire(self.context, &round);
  return true;
}

}  // namespace vgpu
