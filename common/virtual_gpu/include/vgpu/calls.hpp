// The calls that a program makes, for whoever writes them down; and calls that are made in another's name,
// for whoever makes them again.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

namespace vgpu {

/// An argument of a call. A number is sign-extended, a pointer is its address; what it points to still lives
/// while an observer is told.
struct CallArgument {
  template <class T>
  CallArgument(T argument) : is_pointer(std::is_pointer_v<T>) {
    if constexpr (std::is_pointer_v<T>) {
      value = reinterpret_cast<std::uintptr_t>(argument);
    } else {
      static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
      value = static_cast<std::uint64_t>(argument);
    }
  }
  CallArgument(std::uint64_t bits, bool pointer) : value(bits), is_pointer(pointer) {}
  std::uint64_t value;
  bool is_pointer;
};

/// A call of CUDA, cuBLAS or NCCL that has ended, or the meeting of host threads ("host barrier").
struct Call {
  const char* name;  // "cudaMemcpyAsync"
  /// In the order of the declaration. None: the virtual GPUs do not tell those of this function.
  std::span<const CallArgument> arguments;
  bool failed;      // it returned an error (of cuBLAS: an error of CUDA)
  int host_thread;  // which one made it, as host_thread() counts
};

/// Is told of calls.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  /// A call has ended, on the host thread that made it. Makes no call itself.
  virtual void called(const Call& call) = 0;
};

/// From now on the observer is told of each call, in the order in which they end; nullptr: nobody is. It
/// lives at least as long. reset() forgets it.
void observe_calls(CallObserver* observer);

/// What the calling host thread calls from now on counts, in reports, as called at this place of a program,
/// such as "ring.cuh:59": the text outlives the virtual GPUs. nullptr: where it is called.
void called_from(const char* place);

}  // namespace vgpu
