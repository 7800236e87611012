// The implementation of <cuda/ptx>: mbarriers, bulk copies and the proxy fence, called by the running CUDA
// thread. A bulk copy runs at the wait that observes it or, with a seed, at any time from its issue on.
#pragma once

#include <cstdint>

namespace vgpu {

void mbarrier_init(std::uint64_t* barrier, std::uint32_t count);
void fence_mbarrier_init();
/// Expects `bytes` bytes more, then arrives `count` times. Returns the state for a wait.
std::uint64_t mbarrier_arrive(std::uint64_t* barrier, std::uint32_t count, std::uint32_t bytes, bool release);
/// True once the phase of that parity is complete. Waits for it, mostly, if it `may_wait`.
bool mbarrier_wait(std::uint64_t* barrier, bool parity, bool may_wait, bool acquire);

void bulk_load(void* shared, const void* global, std::uint32_t bytes, std::uint64_t* barrier);
void bulk_store(void* global, const void* shared, std::uint32_t bytes);
/// `at`: the box's first index in each of the `rank` dimensions.
void tensor_load(void* shared, const void* map, const std::int32_t* at, int rank, std::uint64_t* barrier);
/// The same to the blocks of the cluster whose bits the mask has.
void tensor_multicast(void* shared, const void* map, const std::int32_t* at, int rank, std::uint64_t* barrier,
                      std::uint16_t mask);
void tensor_store(const void* map, const std::int32_t* at, int rank, const void* shared);
/// The same, but adds to the destination.
void tensor_add(const void* map, const std::int32_t* at, int rank, const void* shared);
void bulk_commit();
/// Waits for all but the last `prior` groups; `read`: until their sources are read.
void bulk_wait(unsigned int prior, bool read);
void fence_proxy_async(bool shared, bool global);

}  // namespace vgpu
