// Counts the library's calls that enable and prove peer access. The compiler includes this header before
// peer_access.cpp, so that its calls resolve to these; the test includes it to read the counts.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>

/// Calls so far.
struct CountedPeerCalls {
  std::atomic<int> enabled = 0;          // successful cudaDeviceEnablePeerAccess()
  std::atomic<int> already_enabled = 0;  // refused, because already enabled
  std::atomic<int> copies = 0;           // cudaMemcpyPeer()
};
inline CountedPeerCalls counted_peer_calls;

inline cudaError_t counted_enable_peer_access(int peer, unsigned flags) {
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, flags);
  if (error == cudaSuccess) ++counted_peer_calls.enabled;
  if (error == cudaErrorPeerAccessAlreadyEnabled) ++counted_peer_calls.already_enabled;
  return error;
}

inline cudaError_t counted_memcpy_peer(void* target, int target_device, const void* source, int source_device,
                                       std::size_t bytes) {
  ++counted_peer_calls.copies;
  return cudaMemcpyPeer(target, target_device, source, source_device, bytes);
}

#ifdef OVERLAP_COUNT_PEER_CALLS
#define cudaDeviceEnablePeerAccess counted_enable_peer_access
#define cudaMemcpyPeer counted_memcpy_peer
#endif
