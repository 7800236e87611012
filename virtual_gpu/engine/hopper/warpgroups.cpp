#include "engine/hopper/warpgroups.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "engine/kernel/block.hpp"

namespace vgpu {
namespace {

/// Changes with every change of one value.
std::uint64_t sum_of(const float* values, int count) {
  std::uint64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    sum += std::uint64_t{bits} * (2 * static_cast<std::uint64_t>(i) + 1);
  }
  return sum;
}

std::string shape_of(const WgmmaRequest& request) { return "m64n" + std::to_string(request.columns) + "k16"; }

}  // namespace

Warpgroups::Warpgroup& Warpgroups::own(const char* what) {
  const std::size_t number = block_.current_number() / kWarpgroupThreads;
  if (static_cast<int>((number + 1) * kWarpgroupThreads) > block_.thread_count()) {
    block_.fault(block_.who() + what + " in warpgroup " + std::to_string(number) +
                 ", which lacks some of its 128 threads: a warpgroup begins at a multiple of 128, and the "
                 "block has " +
                 std::to_string(block_.thread_count()));
  }
  if (warpgroups_.size() <= number) warpgroups_.resize(number + 1);
  auto& warpgroup = warpgroups_[number];
  if (warpgroup == nullptr) {
    warpgroup = std::make_unique<Warpgroup>();
    warpgroup->first_thread = number * kWarpgroupThreads;
  }
  return *warpgroup;
}

Warpgroups::Member& Warpgroups::member_of(Warpgroup& warpgroup) const {
  return warpgroup.members[block_.current_number() - warpgroup.first_thread];
}

void Warpgroups::fence() {
  Member& member = member_of(own("calls fence()"));
  member.fenced = true;
  member.unfenced.clear();
}

void Warpgroups::commit() { ++member_of(own("calls commit()")).groups; }

void Warpgroups::require_fence(const Member& member, const float* fragment, const WgmmaRequest& request,
                               const void* caller) {
  if (!member.fenced) {
    block_.fault(block_.who() + "issues a wgmma" + at_line(caller) +
                 " before its first fence(): without one its earlier register accesses are not ordered");
  }
  if (!request.accumulate) return;
  for (const Seen& seen : member.unfenced) {
    if (seen.values != fragment || seen.sum == sum_of(fragment, request.columns / 2)) continue;
    block_.fault(block_.who() + "has changed its Fragment since the wait() and issues a wgmma" +
                 at_line(caller) + " that adds to it: call fence() between them");
  }
}

void Warpgroups::require_equal(const Product& product, const WgmmaRequest& request, std::size_t group,
                               const void* caller) {
  if (product.request == request && product.group == group) return;
  const char* what = product.request.a != request.a || product.request.b != request.b ? "other descriptors"
                     : product.group != group                                         ? "in another group"
                     : product.request.accumulate != request.accumulate ? "with another accumulate flag"
                                                                        : "of another shape or type";
  block_.fault(block_.who() + "issues a wgmma" + at_line(caller) + " " + what +
               " than other threads of its warpgroup" + at_line(product.caller) +
               ": all 128 must say the same");
}

void Warpgroups::multiply(float* fragment, const WgmmaRequest& request, const void* caller) {
  Warpgroup& warpgroup = own("issues a wgmma");
  Member& member = member_of(warpgroup);
  require_fence(member, fragment, request, caller);
  if (member.issued == warpgroup.forgotten + warpgroup.products.size()) {
    Product& made = warpgroup.products.emplace_back();
    made.request = request;
    made.caller = caller;
    made.group = member.groups;
  }
  Product& product = warpgroup.product(member.issued++);
  require_equal(product, request, member.groups, caller);
  product.fragments[block_.current_number() - warpgroup.first_thread] = fragment;
  member.forget(fragment);
  block_.launch().contexts().use_proxies(block_.linear_index());
  block_.release(product.order);
  block_.schedule().note_progress();
  if (++product.issued < kWarpgroupThreads) return;
  constexpr double kOperations = 2.0 * kWgmmaRows * kWgmmaDepth;
  tensor_cores_free_ =
      std::max(tensor_cores_free_, block_.now()) + kOperations * request.columns / block_.grid().tensor_rate;
  product.done_at = tensor_cores_free_;
  product.late = block_.schedule().pick(2) == 1;
}

void Warpgroups::wait(unsigned int pending) {
  Warpgroup& warpgroup = own("calls wait()");
  Member& member = member_of(warpgroup);
  std::size_t awaited = member.issued;
  while (awaited > member.seen && warpgroup.product(awaited - 1).group + pending >= member.groups) --awaited;
  if (awaited == member.seen) return;
  if (warpgroup.done < awaited) {
    warpgroup.waiters.push_back({&block_.current(), awaited});
    block_.park();
  }
  block_.see(warpgroup.product(awaited - 1).done);
  for (; member.seen < awaited; ++member.seen) {
    Product& product = warpgroup.product(member.seen);
    ++product.seen;
    const std::size_t index = block_.current_number() - warpgroup.first_thread;
    const float* fragment = product.fragments[index];
    member.forget(fragment);
    bool in_flight = false;
    for (std::size_t later = member.seen + 1; later < member.issued; ++later)
      in_flight = in_flight || warpgroup.product(later).fragments[index] == fragment;
    if (!in_flight) member.unfenced.push_back({fragment, sum_of(fragment, product.request.columns / 2)});
  }
  // Each thread sees them in their order, so the first one is seen by all first.
  auto& products = warpgroup.products;
  for (; !products.empty() && products.front().seen == kWarpgroupThreads; ++warpgroup.forgotten)
    products.pop_front();
}

void Warpgroups::end_fragment(const float* values) {
  const std::size_t number = block_.current_number() / kWarpgroupThreads;
  if (number >= warpgroups_.size() || warpgroups_[number] == nullptr) return;
  Warpgroup& warpgroup = *warpgroups_[number];
  const std::size_t index = block_.current_number() - warpgroup.first_thread;
  Member& member = member_of(warpgroup);
  for (std::size_t i = member.seen; i < member.issued; ++i) {
    const Product& product = warpgroup.product(i);
    if (product.fragments[index] != values) continue;
    block_.fault(block_.who() + "destroys a Fragment that a wgmma" + at_line(product.caller) +
                 " may still write: call commit() and wait() first");
  }
  member.forget(values);
}

Warpgroups::Warpgroup* Warpgroups::next_needed() const {
  Warpgroup* next = nullptr;
  for (const auto& warpgroup : warpgroups_) {
    if (warpgroup == nullptr || warpgroup->waiters.empty() || !warpgroup->can_go_on()) continue;
    const auto done_at = [](const Warpgroup& some) { return some.product(some.done).done_at; };
    if (next == nullptr || done_at(*warpgroup) < done_at(*next)) next = warpgroup.get();
  }
  return next;
}

std::optional<double> Warpgroups::needed_at() const {
  const Warpgroup* next = next_needed();
  if (next == nullptr) return std::nullopt;
  return next->product(next->done).done_at;
}

void Warpgroups::do_needed() { do_next_on_demand(*next_needed()); }

bool Warpgroups::can_do_any() const {
  return std::any_of(warpgroups_.begin(), warpgroups_.end(),
                     [](const auto& warpgroup) { return warpgroup != nullptr && warpgroup->can_go_on(); });
}

std::vector<Warpgroups::Warpgroup*> Warpgroups::ready(bool late) const {
  std::vector<Warpgroup*> found;
  for (const auto& warpgroup : warpgroups_) {
    if (warpgroup != nullptr && warpgroup->can_go_on() && (late || !warpgroup->product(warpgroup->done).late))
      found.push_back(warpgroup.get());
  }
  return found;
}

void Warpgroups::do_any() {
  const auto some = ready(true);
  do_next_on_demand(*some[block_.schedule().pick(some.size())]);
}

void Warpgroups::maybe_do_one() {
  if (!block_.schedule().random() || !can_do_any()) return;
  const auto some = ready(false);
  if (!some.empty() && block_.schedule().pick(2) == 1) do_next(*some[block_.schedule().pick(some.size())]);
}

void Warpgroups::do_next_on_demand(Warpgroup& warpgroup) {
  block_.pass_time_until(warpgroup.product(warpgroup.done).done_at);
  do_next(warpgroup);
}

/// The memory of the operand's chunks; none if some of it is not the block's, which has failed then.
std::vector<const std::byte*> Warpgroups::find(const WgmmaOperand& operand, const Product& product,
                                               const char* name) {
  std::vector<const std::byte*> chunks(static_cast<std::size_t>(operand.chunks()));
  for (int i = 0; i < operand.chunks(); ++i) {
    const std::uint32_t address = operand.address(i);
    chunks[static_cast<std::size_t>(i)] = block_.shared().at(address, WgmmaOperand::kChunkBytes);
    if (chunks[static_cast<std::size_t>(i)] != nullptr) continue;
    char text[32];
    std::snprintf(text, sizeof text, "0x%x", address);
    block_.fail("kernel '" + block_.grid().name + "': a wgmma" + at_line(product.caller) +
                    " reads its operand " + name + " at shared address " + text +
                    ", which is not in the shared memory of its block",
                cudaErrorIllegalAddress);
    return {};
  }
  return chunks;
}

void Warpgroups::do_next(Warpgroup& warpgroup) {
  // Not on the stack, which is that of a CUDA thread.
  static float a[kWgmmaRows * kWgmmaDepth], b[kWgmmaDepth * kWgmmaMostColumns];
  Product& product = warpgroup.product(warpgroup.done);
  const WgmmaRequest& request = product.request;
  const WgmmaOperand rows(request.a, request.a_mn_major, kWgmmaRows);
  const WgmmaOperand columns(request.b, request.b_mn_major, request.columns);
  const auto row_chunks = find(rows, product, "A");
  const auto column_chunks = row_chunks.empty() ? row_chunks : find(columns, product, "B");
  if (column_chunks.empty()) return;
  block_.schedule().note_progress();
  if constexpr (hb::kEnabled) {
    auto all = row_chunks;
    all.insert(all.end(), column_chunks.begin(), column_chunks.end());
    note(warpgroup, product, all);
  }
  rows.to_float(row_chunks, request.bfloat16, false, a);
  columns.to_float(column_chunks, request.bfloat16, true, b);
  multiply_fragments(product.fragments, request.columns, a, b, request.accumulate);
  ++warpgroup.done;
  std::erase_if(warpgroup.waiters, [&](const Waiter& waiter) {
    const bool goes_on = waiter.products <= warpgroup.done;
    if (goes_on) block_.wake(*waiter.thread);
    return goes_on;
  });
}

// First what nothing orders, then what no proxy fence orders, as bulk copies do it.
void Warpgroups::note(const Warpgroup& warpgroup, Product& product,
                      const std::vector<const std::byte*>& chunks) {
  auto& contexts = block_.launch().contexts();
  const hb::Context engine = contexts.tensor_cores(block_.linear_index(), warpgroup.first_thread);
  const hb::Context probe = contexts.tensor_probe(block_.linear_index(), warpgroup.first_thread);
  const hb::CallSite& site = block_.launch().site;
  hb::acquire(engine, &product.order.generic);
  hb::acquire(probe, &product.order.shared);
  for (const std::byte* chunk : chunks) {
    hb::read(engine, site, chunk, WgmmaOperand::kChunkBytes, product.caller);
    hb::read(probe, site, chunk, WgmmaOperand::kChunkBytes, product.caller);
  }
  hb::release(probe, &product.done);
  hb::acquire(engine, &product.done);
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(product.request.columns / 2);
  for (float* fragment : product.fragments) hb::write(engine, site, fragment, bytes, product.caller);
  hb::release(engine, &product.done);
}

std::string Warpgroups::describe() const {
  std::string text;
  for (std::size_t i = 0; i < warpgroups_.size(); ++i) {
    const Warpgroup* warpgroup = warpgroups_[i].get();
    if (warpgroup == nullptr || warpgroup->waiters.empty()) continue;
    const Product& next = warpgroup->product(warpgroup->done);
    text += " " + std::to_string(warpgroup->waiters.size()) + " waiting for wgmma of warpgroup " +
            std::to_string(i) + " (" + std::to_string(next.issued) + " of 128 threads have issued wgmma" +
            at_line(next.caller) + ")";
  }
  return text;
}

std::string Warpgroups::describe_unawaited() const {
  for (std::size_t i = 0; i < warpgroups_.size(); ++i) {
    if (warpgroups_[i] == nullptr || warpgroups_[i]->products.empty()) continue;
    const Product& product = warpgroups_[i]->products.front();
    return "ends although not all threads of warpgroup " + std::to_string(i) + " have waited for its wgmma " +
           shape_of(product.request) + at_line(product.caller) + ", which " + std::to_string(product.issued) +
           " of 128 have issued";
  }
  return {};
}

}  // namespace vgpu
