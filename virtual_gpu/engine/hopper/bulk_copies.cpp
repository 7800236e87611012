#include "engine/hopper/bulk_copies.hpp"

#include <algorithm>
#include <cstring>

#include "engine/kernel/block.hpp"
#include "engine/machine_state.hpp"

namespace vgpu {
namespace {

/// Between the box as a tensor has it and shared memory, 16 bytes at a time.
template <class Move>
void for_each_chunk(const BulkRequest& request, std::byte* shared, Move move) {
  const int swizzle = request.tensor ? request.map.swizzle_bytes : 0;
  if (swizzle == 0) return move(shared, 0, request.bytes);
  constexpr std::size_t kChunk = 16;
  for (std::size_t i = 0; i < request.bytes; i += kChunk)
    move(swizzled(shared + i, swizzle), i, std::min(kChunk, request.bytes - i));
}

template <class Visit>
void for_each_global(const BulkRequest& request, Visit visit) {
  if (request.tensor) return for_each_row(request.map, request.at, visit);
  visit(request.global, std::size_t{0}, request.bytes);
}

/// Without those of the box that lie outside the tensor.
std::uint64_t bytes_moved(const BulkRequest& request) {
  std::uint64_t moved = 0;
  for_each_global(request, [&moved](const std::byte*, std::size_t, std::size_t bytes) { moved += bytes; });
  return moved;
}

}  // namespace

hb::Context BulkCopies::engine(const Copy& copy) const {
  return block_.launch().contexts().engine(block_.linear_index(), copy.thread, copy.number);
}

void BulkCopies::issue(const BulkRequest& request, std::vector<Target> targets) {
  const std::size_t thread = block_.current_number();
  const double now = block_.now();
  engine_free_ = std::max(engine_free_, now) + static_cast<double>(request.bytes) / block_.grid().bulk_rate;
  Copy& copy = copies_.emplace_back();
  copy.request = request;
  copy.thread = thread;
  copy.group = groups_[thread];
  copy.number = issued_++;
  copy.targets = std::move(targets);
  loads_ += copy.is_load();
  copy.read_at = engine_free_;
  copy.done_at = engine_free_ + block_.grid().bulk_latency_ns;
  take_link(copy);
  block_.launch().contexts().use_proxies(block_.linear_index());
  block_.release(copy.issued);
  block_.schedule().note_progress();
}

int BulkCopies::owner_of(const BulkRequest& request) const {
  const Allocation* memory =
      block_.machine_state().memory().find(request.tensor ? request.map.address : request.global);
  const bool here = memory == nullptr || memory->kind != MemoryKind::kDevice;
  return here ? block_.launch().stream->device() : memory->device;
}

// A copy occupies the link while its bytes move; a store reads its source until the last byte has left.
void BulkCopies::take_link(Copy& copy) {
  const int own = block_.launch().stream->device(), peer = owner_of(copy.request);
  if (peer == own) return;
  const bool store = copy.targets.empty();
  const Link link = block_.machine_state().link(store ? own : peer, store ? peer : own);
  const double duration = static_cast<double>(bytes_moved(copy.request)) / link.rate;
  const double end = std::max(link.out.fill(engine_free_, duration), link.in.fill(engine_free_, duration));
  copy.read_at = end;
  copy.done_at = end + block_.grid().bulk_latency_ns;
}

void BulkCopies::count(const Copy& copy) const {
  const int own = block_.launch().stream->device(), peer = owner_of(copy.request);
  const std::uint64_t bytes = bytes_moved(copy.request);
  if (peer == own || bytes == 0) return;
  const bool store = copy.targets.empty();
  block_.machine_state().traffic().add(store ? own : peer, store ? peer : own, bytes, 1);
}

void BulkCopies::commit() { ++groups_[block_.current_number()]; }

bool BulkCopies::awaited(const Waiter& waiter, const Copy& copy) const {
  return !copy.is_load() && copy.thread == waiter.number &&
         copy.group + waiter.prior < groups_.at(waiter.number);
}

bool BulkCopies::satisfied(const Waiter& waiter) const {
  return std::none_of(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    return awaited(waiter, copy) && !(waiter.read ? copy.read : copy.done);
  });
}

void BulkCopies::wait(unsigned int prior, bool read) {
  const Waiter me{&block_.current(), block_.current_number(), prior, read};
  groups_[me.number];
  if (!satisfied(me)) {
    waiters_.push_back(me);
    block_.park();
  }
  for (auto copy = copies_.begin(); copy != copies_.end();) {
    if (!awaited(me, *copy)) {
      ++copy;
      continue;
    }
    block_.acquire(copy->fetched);
    copy->read_seen = true;
    if (!read) block_.acquire(copy->written);
    copy = read ? std::next(copy) : copies_.erase(copy);
  }
}

bool BulkCopies::needed(const Copy& copy) const {
  if (copy.is_load()) {
    return std::any_of(copy.targets.begin(), copy.targets.end(),
                       [](const Target& target) { return !target.barrier->waiting().empty(); });
  }
  return std::any_of(waiters_.begin(), waiters_.end(), [&](const Waiter& waiter) {
    return awaited(waiter, copy) && !(waiter.read ? copy.read : copy.done);
  });
}

BulkCopies::Copy* BulkCopies::next_needed() {
  // Quick: a block may have many stores that no thread waits for.
  if (waiters_.empty() && loads_ == 0) return nullptr;
  const auto next = std::find_if(copies_.begin(), copies_.end(),
                                 [this](const Copy& copy) { return !copy.done && needed(copy); });
  return next == copies_.end() ? nullptr : &*next;
}

std::optional<double> BulkCopies::needed_at() {
  const Copy* next = next_needed();
  return next == nullptr ? std::nullopt : std::optional(step_at(*next));
}

bool BulkCopies::can_do_any() const {
  return std::any_of(copies_.begin(), copies_.end(), [](const Copy& copy) { return !copy.done; });
}

bool BulkCopies::reaching_others() const {
  return std::any_of(copies_.begin(), copies_.end(), [this](const Copy& copy) {
    return !copy.done && std::any_of(copy.targets.begin(), copy.targets.end(),
                                     [this](const Target& target) { return target.block != &block_; });
  });
}

const void* BulkCopies::reaching(const Block& block) const {
  for (const Copy& copy : copies_) {
    for (const Target& target : copy.targets) {
      if (!copy.done && target.block == &block) return copy.request.caller;
    }
  }
  return nullptr;
}

bool BulkCopies::do_needed() {
  Copy* next = next_needed();
  if (next != nullptr) advance_on_demand(*next);
  return next != nullptr;
}

std::vector<BulkCopies::Copy*> BulkCopies::unfinished(bool loads) {
  std::vector<Copy*> left;
  for (Copy& copy : copies_) {
    if (!copy.done && (copy.is_load() || !loads)) left.push_back(&copy);
  }
  return left;
}

bool BulkCopies::do_any(bool loads) {
  if (loads && loads_ == 0) return false;
  const std::vector<Copy*> left = unfinished(loads);
  if (left.empty()) return false;
  advance_on_demand(*left[block_.schedule().pick(left.size())]);
  return true;
}

void BulkCopies::maybe_do_one() {
  if (copies_.empty() || !block_.schedule().random() || block_.schedule().pick(2) == 0) return;
  const std::vector<Copy*> left = unfinished(false);
  if (!left.empty()) advance(*left[block_.schedule().pick(left.size())]);
}

void BulkCopies::advance_on_demand(Copy& copy) {
  block_.pass_time_until(step_at(copy));
  advance(copy);
}

void BulkCopies::advance(Copy& copy) {
  if (!accessible(copy)) return;
  block_.schedule().note_progress();
  if (!copy.read)
    fetch(copy);
  else
    deliver(copy);
  if (copy.is_load()) {  // it has one step
    deliver(copy);
    const auto bytes = static_cast<std::uint32_t>(copy.request.bytes);
    const void* caller = copy.request.caller;
    for (const Target& target : copy.targets) finish_step(copy, Mbarriers::point(*target.barrier));
    const std::vector<Target> targets = std::move(copy.targets);
    --loads_;
    copies_.remove_if([&copy](const Copy& other) { return &other == &copy; });
    for (const Target& target : targets)
      target.barriers->complete(*target.barrier, bytes, block_.now(), caller);
    return;
  }
  finish_step(copy, copy.done ? copy.written : copy.fetched);
  std::erase_if(waiters_, [this](const Waiter& waiter) {
    const bool goes_on = satisfied(waiter);
    if (goes_on) block_.wake(*waiter.thread);
    return goes_on;
  });
}

void BulkCopies::fetch(Copy& copy) {
  const BulkRequest& request = copy.request;
  auto& contexts = block_.launch().contexts();
  hb::acquire(engine(copy), &copy.issued.generic);
  // Of the three views, those that note() asks; each costs contexts.
  for (const auto& [view, point] : {std::pair{View::kGlobal, &copy.issued.global},
                                    copy.is_load() ? std::pair{View::kOverwriting, &copy.issued.overwriting}
                                                   : std::pair{View::kShared, &copy.issued.shared}})
    hb::acquire(contexts.probe(view, block_.linear_index(), copy.thread, copy.number), point);
  copy.box.assign(request.bytes, std::byte{0});
  if (copy.is_load()) {
    note_global(copy, false);
    for_each_global(request, [&copy](const std::byte* from, std::size_t offset, std::size_t bytes) {
      std::memcpy(copy.box.data() + offset, from, bytes);
      copy.known.read(offset, from, bytes);
    });
  } else {
    note(copy, Space::kShared, request.shared, request.bytes, false);
    for_each_chunk(request, request.shared,
                   [&copy](const std::byte* from, std::size_t offset, std::size_t bytes) {
                     std::memcpy(copy.box.data() + offset, from, bytes);
                     copy.known.read(offset, from, bytes);
                   });
  }
  copy.read = true;
}

void BulkCopies::deliver(Copy& copy) {
  const BulkRequest& request = copy.request;
  if (copy.is_load()) {
    for (const Target& target : copy.targets) {
      note(copy, Space::kShared, target.shared, request.bytes, true);
      for_each_chunk(request, target.shared, [&copy](std::byte* to, std::size_t offset, std::size_t bytes) {
        std::memcpy(to, copy.box.data() + offset, bytes);
        copy.known.write(to, offset, bytes);
      });
    }
  } else {
    note_global(copy, true);
    for_each_global(request, [&](std::byte* to, std::size_t offset, std::size_t bytes) {
      const std::byte* from = copy.box.data() + offset;
      if (request.adds && add_elements(request.map.element, to, from, bytes)) return;
      std::memcpy(to, from, bytes);
      copy.known.write(to, offset, bytes);
    });
  }
  count(copy);
  copy.done = true;
  copy.box.clear();
}

void BulkCopies::note_global(Copy& copy, bool write) {
  if constexpr (!hb::kEnabled && !memcheck::kEnabled) return;
  for_each_global(copy.request, [&](const std::byte* memory, std::size_t, std::size_t bytes) {
    note(copy, Space::kGlobal, memory, bytes, write);
  });
}

// First the access, then the probe for a missing proxy fence; then memory is written. A probe that writes
// comes first and reports last. Global memory is probed by reads: a copy that overwrites what threads have
// read was never seen to need a fence.
void BulkCopies::note(Copy& copy, Space space, const void* memory, std::size_t bytes, bool write) {
  if constexpr (memcheck::kEnabled)
    return (write ? hb::write : hb::read)(nullptr, block_.launch().site, memory, bytes, copy.request.caller);
  if constexpr (!hb::kEnabled) return;
  const auto probe_of = [&](View view) {
    return block_.launch().contexts().probe(view, block_.linear_index(), copy.thread, copy.number);
  };
  const hb::CallSite& site = block_.launch().site;
  const void* caller = copy.request.caller;
  if (write && space == Space::kShared) {
    const hb::Context probe = probe_of(View::kOverwriting);
    const hb::LateReport missing_fence([&] { hb::write(probe, site, memory, bytes, caller); });
    hb::release(probe, &copy.probed);
    hb::acquire(engine(copy), &copy.probed);
    hb::write(engine(copy), site, memory, bytes, caller);
    return;
  }
  const hb::Context probe = probe_of(space == Space::kShared ? View::kShared : View::kGlobal);
  const bool adds = write && copy.request.adds;  // atomically: additions do not race with each other
  {
    const hb::ReadsForAWrite scope(write);
    const auto look = adds ? &hb::read_atomically : &hb::read;
    look(engine(copy), site, memory, bytes, caller);
    look(probe, site, memory, bytes, caller);
  }
  hb::release(probe, &copy.probed);
  hb::acquire(engine(copy), &copy.probed);
  const auto change = adds ? &hb::write_atomically : &hb::write;
  if (write) change(engine(copy), site, memory, bytes, caller);
}

void BulkCopies::finish_step(Copy& copy, OrderPoint& point) {
  for (const char* address : {&point.generic, &point.shared, &point.global, &point.overwriting})
    hb::release(engine(copy), address);
}

/// True if all of the global memory that the copy touches is allocated; otherwise the block has failed.
bool BulkCopies::accessible(const Copy& copy) {
  const std::byte* lowest = nullptr;
  const std::byte* behind = nullptr;
  for_each_global(copy.request, [&](const std::byte* memory, std::size_t, std::size_t bytes) {
    if (lowest == nullptr || memory < lowest) lowest = memory;
    behind = std::max(behind, memory + bytes);
  });
  if (lowest == nullptr) return true;  // a box outside the tensor
  const Memory& memory = block_.machine_state().memory();
  const Allocation* allocation = block_.machine_state().memory().find(lowest);
  if (allocation != nullptr && behind <= allocation->begin + allocation->bytes) return true;
  block_.fail("kernel '" + block_.grid().name + "': a bulk copy of " + std::to_string(copy.request.bytes) +
                  " bytes touches memory that is not allocated: " +
                  memory.locate(allocation == nullptr ? lowest : behind - 1),
              cudaErrorIllegalAddress);
  return false;
}

std::string BulkCopies::finish() {
  for (const Copy& copy : copies_) {
    if (!copy.is_load() && !copy.read_seen) {
      return "ends although a bulk store of " + std::to_string(copy.request.bytes) +
             " bytes may still read its shared memory: call cp_async_bulk_wait_group_read first";
    }
  }
  while (!block_.failed() && do_any(false)) {
  }
  return {};
}

}  // namespace vgpu
