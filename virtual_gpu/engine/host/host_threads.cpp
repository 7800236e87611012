#include "engine/host/host_threads.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>

namespace vgpu {

HostThreads::HostThreads() : stacks_(kHostStack) {
  threads_.push_back(std::make_unique<HostThread>());
  current_ = threads_.front().get();
  hb::start();
  current_->context_ = hb::host_context();
}

void HostThreads::switch_to(HostThread& thread) {
  HostThread& from = *current_;
  if (&thread == &from) return;
  from.exceptions_ = exception_state();
  exception_state() = thread.exceptions_;
  current_ = &thread;
  hb::become_host(thread.context_, thread.number_);
  switch_fiber(from.stack_ != nullptr ? *from.stack_ : from.fiber_,
               thread.stack_ != nullptr ? *thread.stack_ : thread.fiber_);
}

void HostThreads::start(HostThread& thread, int index) {
  const HostThread& parent = *current_;
  thread.number_ = index;
  thread.name_ = "host thread " + std::to_string(index);
  thread.now_ = parent.now_;
  thread.stack_ = &stacks_.get(&HostThreads::fiber_entry);
  thread.context_ = hb::make_context(thread.name_);
}

void HostThreads::forget_threads() {
  for (std::size_t i = 1; i < threads_.size(); ++i) {
    if (threads_[i]->stack_ == nullptr) continue;
    stacks_.put(*threads_[i]->stack_);
    hb::destroy_context(threads_[i]->context_);
  }
  threads_.resize(1);
  stopping_ = false;
}

void HostThreads::fiber_entry() {
  HostThreads& threads = *running_;
  HostThread& self = threads.current();
  hb::acquire(self.context_, &threads);
  hb::enter(self.context_);
  (*threads.body_)(self.number_);
  hb::enter(hb::runtime_context());
  hb::release(self.context_, &threads.join_order_);
  self.ended_ = true;
  // Somebody else goes on, at the latest who waits for this thread's end. After a deadlock all do.
  const HostThread::Wait never{[] { return false; }, [] { return 0.0; }, "", false};
  for (;;) (*threads.block_until_)(never);
}

void HostThreads::run(const BlockUntil& block_until, int count, const std::function<void(int)>& body) {
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
  block_until_ = &block_until;
  running_ = this;
  hb::release(current_->context_, this);
  HostThread::Wait at_once{[] { return true; }, {}, "its start", false};
  std::vector<HostThread::Wait> starts;
  starts.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads_.push_back(std::make_unique<HostThread>());
    HostThread* thread = threads_.back().get();
    try {
      start(*thread, i);
    } catch (const std::bad_alloc&) {  // no memory for its stack
      forget_threads();
      throw;
    }
    starts.push_back(at_once);
    starts.back().time = [thread] { return thread->now_; };
    thread->begin_wait(starts.back());
  }
  const auto all_ended = [this] {
    return std::all_of(threads_.begin() + 1, threads_.end(),
                       [](const auto& thread) { return thread->ended_; });
  };
  const auto last_end = [this] {
    double time = 0;
    for (const auto& thread : threads_) time = std::max(time, thread->now_);
    return time;
  };
  const HostThread::Wait join{all_ended, last_end, "the end of its threads", false};
  while (!all_ended()) block_until(join);
  current_->now_ = last_end();
  hb::acquire(current_->context_, &join_order_);
  forget_threads();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace vgpu
