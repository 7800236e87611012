// The check build's shadow of all memory that the virtual GPUs hand out: for each byte its owner, and whether
// it was written. Programs are compiled with calls before each access (check/hooks.cpp), which look the bytes
// up here. In other builds all of this is empty.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#ifndef VGPU_CHECK
#define VGPU_CHECK 0
#endif

namespace vgpu::memcheck {

inline constexpr bool kEnabled = VGPU_CHECK != 0;

/// Whose bytes.
enum Owner { kNobody, kHost, kBlock, kFirstGpu, kOwners = 128 };

constexpr Owner owner_gpu(int number) { return static_cast<Owner>(kFirstGpu + number); }

/// By owner, whether who runs may access such bytes; and whether it may read what nothing has written:
/// libraries carry that to their results.
struct Rights {
  std::array<bool, kOwners> allows{};
  bool reads_unwritten = false;
};

#if VGPU_CHECK

/// Addresses that are no one's and will not be given out again, inaccessible. nullptr if there are no more.
void* reserve(std::size_t bytes);
/// The bytes are the owner's from now on, or nobody's.
void set_owner(const void* begin, std::size_t bytes, Owner owner, bool written = false);
/// Kernels on that GPU may access the memory of the other one.
void allow_peer(int gpu, int other, bool allowed);

/// Who runs: the host, the kernels of a GPU, its libraries, or the runtime, whose accesses are not looked at.
///@{
Rights* host();
Rights* gpu(int number);
Rights* library(int gpu);
Rights* in_runtime();
Rights* running();
void enter(Rights* rights);
///@}

/// An access of the runtime for the program: the first byte without an owner, or nullptr. A write marks the
/// bytes as written.
const void* access(const void* memory, std::size_t bytes, bool write);
bool written(const void* byte);
void forget_written(void* memory, std::size_t bytes);
/// Which bytes of a piece were written, to go with a copy of it.
class Written {
 public:
  void read(std::size_t offset, const void* from, std::size_t bytes);
  void write(void* to, std::size_t offset, std::size_t bytes) const;
  /// Of a sum: bytes that were not written in the other piece count as unwritten, too.
  void keep_if_in(const Written& other);

 private:
  std::vector<bool> bytes_;
};

#else

inline void* reserve(std::size_t) { return nullptr; }
inline void set_owner(const void*, std::size_t, Owner, bool = false) {}
inline void allow_peer(int, int, bool) {}
inline Rights* host() { return nullptr; }
inline Rights* gpu(int) { return nullptr; }
inline Rights* library(int) { return nullptr; }
inline Rights* in_runtime() { return nullptr; }
inline Rights* running() { return nullptr; }
inline void enter(Rights*) {}
inline bool written(const void*) { return true; }
inline void forget_written(void*, std::size_t) {}
class Written {
 public:
  void read(std::size_t, const void*, std::size_t) {}
  void write(void*, std::size_t, std::size_t) const {}
  void keep_if_in(const Written&) {}
};

#endif

}  // namespace vgpu::memcheck
