// Memory for NCCL's collectives, plain or in a window, and the communicator that goes with it.
#pragma once

#include <cstddef>

#include "overlap/gpu/nccl_mode.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

// As NCCL's header has it, so that not every chapter compiles that.
struct ncclWindow_vidmem;

namespace overlap {

/// The untyped part of NcclBuffer.
class NcclMemory {
 public:
  NcclMemory(Rank& rank, std::size_t bytes, NcclMode mode);
  ~NcclMemory();
  NcclMemory(const NcclMemory&) = delete;
  NcclMemory& operator=(const NcclMemory&) = delete;

  void* data() const { return window_memory_ != nullptr ? window_memory_ : plain_.data(); }
  ncclComm* communicator() const { return communicator_; }  ///< for its collectives

 private:
  void release() noexcept;

  Rank& rank_;
  ncclComm* communicator_;
  DeviceBuffer<std::byte> plain_;
  void* window_memory_ = nullptr;  // of the newer modes, by ncclMemAlloc
  ncclWindow_vidmem* window_ = nullptr;
};

/// `elements` values of T on every rank's GPU, not initialised, for the collectives of `communicator()` in
/// one of NCCL's modes. For the newer modes the memory comes from ncclMemAlloc and is registered in a
/// symmetric window: send and receive buffers lie in it, at the same offset on all ranks but for a
/// collective's own part (in place). Constructor and destructor are collective in these modes; the destructor
/// waits for the GPU and for all ranks before it takes the window away, except while the run is being
/// stopped. Throws Skip on all ranks where the mode is not available; NcclError or CudaError if the memory
/// cannot be allocated.
template <typename T>
class NcclBuffer {
 public:
  NcclBuffer(Rank& rank, std::size_t elements, NcclMode mode)
      : memory_(rank, detail::checked_bytes(elements, sizeof(T)), mode) {}

  T* data() const { return static_cast<T*>(memory_.data()); }        ///< the first element
  ncclComm* communicator() const { return memory_.communicator(); }  ///< of all ranks, in this mode

 private:
  NcclMemory memory_;
};

/// True if this program was built with an NCCL that has ncclCommRegister (2.19).
bool can_register_memory();

/// Registers memory with a communicator (ncclCommRegister) while this lives; in no window, and any memory of
/// this rank will do. Throws NcclError.
class RegisteredMemory {
 public:
  RegisteredMemory(ncclComm* communicator, void* memory, std::size_t bytes);
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

 private:
  ncclComm* communicator_;
  void* handle_ = nullptr;
};

}  // namespace overlap
