#include "overlap/gpu/peer_access.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {
namespace {

constexpr std::size_t kElements = std::size_t{1} << 16;  // 256 KiB: many packets on any link, yet quick
constexpr std::uint32_t kUntouched = 0xFFFFFFFFu;        // never a value of the pattern: there, bit 31 is 0

// The value of element `i` after the copy from one GPU to another. It contains the pair, so that data of
// another pair, or of an earlier copy, is detected.
std::uint32_t pattern(int from, int to, std::size_t i) {
  return (static_cast<std::uint32_t>(from & 15) << 27) | (static_cast<std::uint32_t>(to & 15) << 23) |
         static_cast<std::uint32_t>(i & ((1u << 23) - 1));
}

// Ordered pairs of GPUs for which something was done in this process. Safe from any thread.
class KnownPairs {
 public:
  bool has(int from, int to) { return (row(from) >> to & 1) != 0; }
  void add(int from, int to) { row(from) |= std::uint64_t{1} << to; }

 private:
  // Bit i: done from that GPU to GPU i. Forgotten when virtual GPUs are reset between runs.
  std::atomic<std::uint64_t>& row(int from) {
    const std::uint64_t restarts = backend::restarts();
    if (restarts_.exchange(restarts) != restarts) {
      for (auto& row : rows_) row = 0;
    }
    return rows_.at(static_cast<std::size_t>(from));
  }

  std::array<std::atomic<std::uint64_t>, 64> rows_{};
  std::atomic<std::uint64_t> restarts_ = 0;
};

KnownPairs& enabled() {
  static KnownPairs pairs;
  return pairs;
}
KnownPairs& proved() {
  static KnownPairs pairs;
  return pairs;
}

// Lets `device` reach the memory of `peer`, if the two can. CUDA cannot be asked whether it does already, and
// asking for it twice is an error, which compute-sanitizer reports: hence what was enabled here is
// remembered.
bool enable_access(int device, int peer) {
  if (enabled().has(device, peer)) return true;
  int can = 0;
  CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
  if (can == 0) return false;
  const DeviceGuard guard(device);
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();  // the program has done it itself, or a library such as NCCL
  } else {
    CUDA_CHECK(error);
  }
  enabled().add(device, peer);
  return true;
}

}  // namespace

PeerCopy prove_copy(int from, int to) {
  PeerCopy result;
  result.elements = kElements;
  result.direct = enable_access(from, to) && enable_access(to, from);

  std::vector<std::uint32_t> host(kElements);
  DeviceBuffer<std::uint32_t> source(from, kElements), target(to, kElements);
  for (std::size_t i = 0; i < kElements; ++i) host[i] = pattern(from, to, i);
  CUDA_CHECK(cudaMemcpy(source.data(), host.data(), source.bytes(), cudaMemcpyHostToDevice));
  std::fill(host.begin(), host.end(), kUntouched);
  CUDA_CHECK(cudaMemcpy(target.data(), host.data(), target.bytes(), cudaMemcpyHostToDevice));

  CUDA_CHECK(cudaMemcpyPeer(target.data(), to, source.data(), from, source.bytes()));
  for (const int device : {from, to}) {  // a copy between GPUs may return before it is done
    const DeviceGuard guard(device);
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  CUDA_CHECK(cudaMemcpy(host.data(), target.data(), target.bytes(), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < kElements; ++i) {
    if (host[i] == pattern(from, to, i)) continue;
    if (result.wrong++ == 0) {
      result.first_wrong = i;
      result.expected = pattern(from, to, i);
      result.found = host[i];
    }
  }
  return result;
}

void require_peer_access(int gpus) {
  for (int from = 0; from < gpus; ++from) {
    for (int to = 0; to < gpus; ++to) {
      if (from == to || proved().has(from, to)) continue;
      const PeerCopy copy = prove_copy(from, to);
      const std::string pair = "GPU " + std::to_string(from) + " to GPU " + std::to_string(to);
      if (!copy.direct) throw Skip("no peer access from " + pair);
      if (copy.wrong != 0) {
        throw WrongResult("the copy from " + pair + " is wrong in " + std::to_string(copy.wrong) + " of " +
                          std::to_string(copy.elements) + " elements");
      }
      proved().add(from, to);
    }
  }
}

}  // namespace overlap
