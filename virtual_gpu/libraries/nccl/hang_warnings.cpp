#include "libraries/nccl/hang_warnings.hpp"

#include <algorithm>
#include <cstdio>

namespace vgpu::nccl {
namespace {

constexpr std::size_t kMaxRecords = 16;  // exchanges further apart hardly run at a time

void warn(Runtime& runtime, const std::string& sentence) {
  if (runtime.kernels().first_warning(nullptr, sentence))
    std::fprintf(stderr, "virtual GPUs: warning: %s\n", sentence.c_str());
}

}  // namespace

void HangWarnings::note(Runtime& runtime, const void* clique, const std::shared_ptr<Exchange>& exchange,
                        const Call& call, int device) {
  if constexpr (!hb::kEnabled) return;
  auto found = std::find_if(latest_.begin(), latest_.end(),
                            [&](const Record& record) { return record.exchange == exchange; });
  if (found == latest_.end()) {
    if (latest_.size() == kMaxRecords) latest_.pop_front();
    found = latest_.insert(latest_.end(), {exchange, clique, {}});
  }
  for (const auto& [gpu, other] : found->calls) {
    if (call.grouped || other.call.grouped || call.host_thread != other.call.host_thread) continue;
    warn(runtime,
         "one host thread makes " + other.call.describe_fully() + ", and " + call.describe_fully() +
             ", without a group: on real GPUs the first call may wait for the second one, which is never "
             "made; ncclGroupStart() and ncclGroupEnd() belong around them");
  }
  found->calls.emplace(device, Called{++calls_, call});
  if (call.is_pair() || !exchange->complete()) return;
  for (const Record& other : latest_) {
    if (other.clique != clique && other.exchange->complete()) warn_of_order(runtime, other, *found);
  }
}

void HangWarnings::warn_of_order(Runtime& runtime, const Record& one, const Record& other) {
  const Called* first = nullptr;  // a call of `one` that comes before the same GPU's call of `other`
  const Called* last = nullptr;   // ... behind it
  for (const auto& [gpu, called] : one.calls) {
    const auto same = other.calls.find(gpu);
    if (same != other.calls.end()) (called.number < same->second.number ? first : last) = &called;
  }
  if (first == nullptr || last == nullptr) return;
  const Call& call = other.calls.begin()->second.call;
  warn(
      runtime,
      first->call.describe_fully() + ", comes before " + call.name() + " of another communicator, and " +
          last->call.describe_fully() +
          ", behind it: real GPUs may hang, because each kernel of NCCL waits for the other ranks' and keeps "
          "its multiprocessors; all ranks have to call collectives of several communicators in one order");
}

}  // namespace vgpu::nccl
