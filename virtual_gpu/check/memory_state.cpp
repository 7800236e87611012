#include "check/memory_state.hpp"

#if VGPU_CHECK

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "check/shadow.hpp"

namespace vgpu::memcheck {
namespace {

// All are there before any static object of a program is made.
constinit Rights host_rights = [] {
  Rights rights;
  rights.allows[kHost] = true;
  return rights;
}();
constinit Rights runtime_rights;
/// By GPU: of its kernels, and of its libraries.
constinit std::array<std::array<Rights, 2>, kOwners - kFirstGpu> gpu_rights = [] {
  std::array<std::array<Rights, 2>, kOwners - kFirstGpu> all{};
  for (std::size_t gpu = 0; gpu < all.size(); ++gpu) {
    for (Rights& each : all[gpu])
      each.allows[kHost] = each.allows[kBlock] = each.allows[kFirstGpu + gpu] = true;
    all[gpu][1].reads_unwritten = true;
  }
  return all;
}();

void* map(int protection) {
  void* begin = mmap(nullptr, kReserved, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return begin == MAP_FAILED ? nullptr : begin;
}

}  // namespace

constinit Shadow shadow;

void* reserve(std::size_t bytes) {
  static std::size_t used = 0;
  if (shadow.states == nullptr) {
    void* const memory = map(PROT_NONE);
    shadow.states = static_cast<State*>(map(PROT_READ | PROT_WRITE));
    if (memory == nullptr || shadow.states == nullptr) return nullptr;
    shadow.begin = reinterpret_cast<std::uintptr_t>(memory);
  }
  if (bytes > kReserved - used) return nullptr;
  used += bytes;
  return reinterpret_cast<void*>(shadow.begin + used - bytes);
}

void set_owner(const void* begin, std::size_t bytes, Owner owner, bool written) {
  State* const first = states(begin);
  if (first != nullptr) std::fill_n(first, bytes, state_of(owner, written));
}

void allow_peer(int gpu, int other, bool allowed) {
  for (Rights& each : gpu_rights[gpu]) each.allows[kFirstGpu + other] = allowed;
}

Rights* host() { return &host_rights; }
Rights* gpu(int number) { return &gpu_rights[number][0]; }
Rights* library(int gpu) { return &gpu_rights[gpu][1]; }
Rights* in_runtime() { return &runtime_rights; }
Rights* running() { return shadow.running == nullptr ? &host_rights : shadow.running; }
void enter(Rights* rights) { shadow.running = rights; }

const void* access(const void* memory, std::size_t bytes, bool write) {
  State* const first = states(memory);
  if (first == nullptr) return nullptr;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (owner_of(first[i]) == kNobody) return static_cast<const std::byte*>(memory) + i;
    if (write) first[i] |= kWritten;
  }
  return nullptr;
}

bool written(const void* byte) {
  const State* const state = states(byte);
  return state == nullptr || (*state & kWritten) != 0;
}

void forget_written(void* memory, std::size_t bytes) {
  State* const first = states(memory);
  for (std::size_t i = 0; first != nullptr && i < bytes; ++i) first[i] = state_of(owner_of(first[i]), false);
}

void Written::read(std::size_t offset, const void* from, std::size_t bytes) {
  bytes_.resize(std::max(bytes_.size(), offset + bytes), true);
  const State* const first = states(from);
  for (std::size_t i = 0; i < bytes; ++i) bytes_[offset + i] = first == nullptr || (first[i] & kWritten) != 0;
}

void Written::write(void* to, std::size_t offset, std::size_t bytes) const {
  State* const first = states(to);
  if (first == nullptr) return;
  for (std::size_t i = 0; i < bytes; ++i) {
    const bool written = offset + i >= bytes_.size() || bytes_[offset + i];
    first[i] = state_of(owner_of(first[i]), written);
  }
}

void Written::keep_if_in(const Written& other) {
  bytes_.resize(std::max(bytes_.size(), other.bytes_.size()), true);
  for (std::size_t i = 0; i < other.bytes_.size(); ++i) bytes_[i] = bytes_[i] && other.bytes_[i];
}

}  // namespace vgpu::memcheck

#endif
