#include "engine/kernel/async_copy.hpp"

#include <cstring>

#include "engine/streams/stream.hpp"

namespace vgpu {

StreamContexts& AsyncCopies::contexts() const { return launch_.contexts(); }

AsyncCopies::ThreadCopies& AsyncCopies::of(std::size_t thread) {
  if (by_thread_.empty()) by_thread_.resize(threads_);
  return by_thread_[thread];
}

void AsyncCopies::issue(std::size_t thread, const Request& request) {
  ThreadCopies& mine = of(thread);
  mine.copies.push_back({request, mine.groups, std::make_unique<char>()});
  hb::release(contexts().of(block_, thread), mine.copies.back().order.get());
  maybe_do_one();
}

void AsyncCopies::commit(std::size_t thread) {
  ++of(thread).groups;
  maybe_do_one();
}

void AsyncCopies::wait(std::size_t thread, unsigned int prior) {
  ThreadCopies& mine = of(thread);
  while (!mine.copies.empty() && mine.copies.front().group + prior < mine.groups) {
    if (mine.done == 0) do_next(thread);
    hb::acquire(contexts().of(block_, thread), mine.copies.front().order.get());
    mine.copies.erase(mine.copies.begin());
    --mine.done;
  }
  maybe_do_one();
}

void AsyncCopies::finish() {
  for (std::size_t thread = 0; thread < by_thread_.size(); ++thread) {
    while (by_thread_[thread].done < by_thread_[thread].copies.size()) do_next(thread);
  }
}

void AsyncCopies::maybe_do_one() {
  if (!schedule_.random() || schedule_.pick(2) == 0) return;
  const std::size_t thread = schedule_.pick(threads_);
  const ThreadCopies& some = of(thread);
  if (some.done < some.copies.size()) do_next(thread);
}

void AsyncCopies::do_next(std::size_t thread) {
  ThreadCopies& owner = of(thread);
  Copy& copy = owner.copies[owner.done];
  const auto& [to, from, bytes, zeros, caller] = copy.request;
  hb::Context context = contexts().copying(block_, thread);
  hb::acquire(context, copy.order.get());
  hb::read(context, launch_.site, from, bytes, caller);
  hb::write(context, launch_.site, to, bytes + zeros, caller);
  hb::release(context, copy.order.get());
  std::memcpy(to, from, bytes);
  std::memset(static_cast<std::byte*>(to) + bytes, 0, zeros);
  ++owner.done;
  schedule_.note_progress();
}

}  // namespace vgpu
