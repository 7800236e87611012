#include "overlap/gpu/nccl_buffer.hpp"

#include <nccl.h>

#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

constexpr std::size_t kWindowAlignment = 4096;  // NCCL_WIN_REQUIRED_ALIGNMENT

void* allocate_for_window(std::size_t bytes) {
  void* memory = nullptr;
  try {
    NCCL_CHECK(ncclMemAlloc(&memory, bytes));
  } catch (NcclError& error) {
    error.add_detail(detail::memory_asked_for(bytes));
    throw;
  }
  return memory;
}

ncclComm_t communicator_for(NcclMode mode, Rank& rank) {
  if (const std::string reason = why_not(mode); !reason.empty()) throw Skip(reason);
  return rank.nccl(mode);
}

// Older versions of NCCL have no windows; why_not() has then refused the modes that need them.
#ifdef NCCL_WIN_COLL_SYMMETRIC
ncclResult_t register_window(ncclComm_t communicator, void* memory, std::size_t bytes, ncclWindow_t* window) {
  return ncclCommWindowRegister(communicator, memory, bytes, window, NCCL_WIN_COLL_SYMMETRIC);
}
void deregister_window(ncclComm_t communicator, ncclWindow_t window) {
  ncclCommWindowDeregister(communicator, window);
}
#else
ncclResult_t register_window(ncclComm_t, void*, std::size_t, ncclWindow_vidmem**) { return ncclInvalidUsage; }
void deregister_window(ncclComm_t, ncclWindow_vidmem*) {}
#endif

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
constexpr bool kHasRegistration = true;
ncclResult_t register_memory(ncclComm_t communicator, void* memory, std::size_t bytes, void** handle) {
  return ncclCommRegister(communicator, memory, bytes, handle);
}
void deregister_memory(ncclComm_t communicator, void* handle) { ncclCommDeregister(communicator, handle); }
#else
constexpr bool kHasRegistration = false;
ncclResult_t register_memory(ncclComm_t, void*, std::size_t, void**) { return ncclInvalidUsage; }
void deregister_memory(ncclComm_t, void*) {}
#endif

}  // namespace

NcclMemory::NcclMemory(Rank& rank, std::size_t bytes, NcclMode mode)
    : rank_(rank),
      communicator_(communicator_for(mode, rank)),
      plain_(rank.device(), mode == NcclMode::kPlain ? bytes : 0) {
  if (mode == NcclMode::kPlain) return;
  const std::size_t whole = (bytes + kWindowAlignment - 1) / kWindowAlignment * kWindowAlignment;
  window_memory_ = allocate_for_window(whole);
  NCCL_CHECK(register_window(communicator_, window_memory_, whole, &window_));
  // If GPUs cannot map each other's memory, NCCL returns success and no window.
  for (const int missing : rank.exchange(window_ == nullptr ? 1 : 0)) {
    if (missing == 0) continue;
    release();
    throw Skip(std::string("'") + name_of(mode) +
               "' needs GPUs that reach each other's memory: NCCL has made no window");
  }
}

NcclMemory::~NcclMemory() {
  if (window_memory_ != nullptr) release();
}

void NcclMemory::release() noexcept {
  detail::before_release();
  if (rank_.stopping()) return;  // the communicator is aborted, and its windows with it
  try {
    CUDA_CHECK(cudaDeviceSynchronize());
    rank_.barrier();  // a peer may still read or write
  } catch (...) {
    return;  // stopped meanwhile, or the GPU has failed: the next call says so
  }
  if (window_ != nullptr) deregister_window(communicator_, window_);
  ncclMemFree(window_memory_);
  window_memory_ = nullptr;
}

bool can_register_memory() { return kHasRegistration; }

RegisteredMemory::RegisteredMemory(ncclComm* communicator, void* memory, std::size_t bytes)
    : communicator_(communicator) {
  NCCL_CHECK(register_memory(communicator, memory, bytes, &handle_));
}
RegisteredMemory::~RegisteredMemory() { deregister_memory(communicator_, handle_); }

}  // namespace overlap
