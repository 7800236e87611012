#include "engine/hopper/register_pool.hpp"

#include "engine/hopper/wgmma_product.hpp"
#include "engine/kernel/block.hpp"

namespace vgpu {
namespace {

constexpr int kRegisters = 65536;  // of a multiprocessor

std::string name_of(int count, bool more) {
  return (more ? "registers_up<" : "registers_down<") + std::to_string(count) + ">";
}

}  // namespace

int RegisterPool::taken() const {
  int sum = 0;
  for (const Warpgroup& warpgroup : warpgroups_) sum += warpgroup.count * kWarpgroupThreads;
  return sum;
}

void RegisterPool::set(int count, bool more, const void* caller) {
  const std::size_t number = block_.current_number() / kWarpgroupThreads;
  const std::size_t member = block_.current_number() % kWarpgroupThreads;
  if (static_cast<int>((number + 1) * kWarpgroupThreads) > block_.thread_count()) {
    block_.fault(block_.who() + "calls " + name_of(count, more) + " in warpgroup " + std::to_string(number) +
                 ", which lacks some of its 128 threads: the block has " +
                 std::to_string(block_.thread_count()));
  }
  if (warpgroups_.size() <= number) warpgroups_.resize(number + 1);
  Warpgroup& warpgroup = warpgroups_[number];
  warpgroup.made.resize(kWarpgroupThreads);
  const std::size_t index = warpgroup.made[member]++;
  if (index == warpgroup.calls.size()) warpgroup.calls.push_back({count, more, caller});
  Call& call = warpgroup.calls[index];
  if (call.count != count || call.more != more) {
    block_.fault(block_.who() + "calls " + name_of(count, more) + at_line(caller) +
                 " where other threads of its warpgroup call " + name_of(call.count, call.more) +
                 at_line(call.caller));
  }
  ++call.threads;
  if (call.more && !call.granted) {
    const int without = taken() - warpgroup.count * kWarpgroupThreads;
    if (without + count * kWarpgroupThreads > kRegisters) return block_.park(&warpgroup.waiting);
    call.granted = true;
    warpgroup.count = count;
  } else if (!call.more && call.threads == kWarpgroupThreads) {
    warpgroup.count = count;
    grant_waiting();
  }
}

void RegisterPool::grant_waiting() {
  for (Warpgroup& warpgroup : warpgroups_) {
    if (warpgroup.waiting.empty()) continue;
    Call& call = warpgroup.calls.back();
    if (taken() + (call.count - warpgroup.count) * kWarpgroupThreads > kRegisters) continue;
    call.granted = true;
    warpgroup.count = call.count;
    block_.wake(warpgroup.waiting);
  }
}

std::string RegisterPool::describe() const {
  std::string text;
  for (std::size_t i = 0; i < warpgroups_.size(); ++i) {
    const Warpgroup& warpgroup = warpgroups_[i];
    if (warpgroup.waiting.empty()) continue;
    const Call& call = warpgroup.calls.back();
    text += " " + std::to_string(warpgroup.waiting.size()) + " waiting for registers (warpgroup " +
            std::to_string(i) + " in " + name_of(call.count, call.more) + at_line(call.caller);
    for (std::size_t other = 0; other < warpgroups_.size(); ++other) {
      if (other != i && warpgroups_[other].count != 0)
        text += ", warpgroup " + std::to_string(other) + " has " + std::to_string(warpgroups_[other].count);
    }
    text += " for each of 128 threads; a multiprocessor has " + std::to_string(kRegisters) + ")";
  }
  return text;
}

std::string RegisterPool::describe_unfinished() const {
  for (std::size_t i = 0; i < warpgroups_.size(); ++i) {
    for (const Call& call : warpgroups_[i].calls) {
      if (call.threads == kWarpgroupThreads) continue;
      return "ends although only " + std::to_string(call.threads) + " of 128 threads of warpgroup " +
             std::to_string(i) + " have called " + name_of(call.count, call.more) + at_line(call.caller);
    }
  }
  return {};
}

}  // namespace vgpu
