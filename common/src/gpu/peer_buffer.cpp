#include "overlap/gpu/peer_buffer.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>

#include "gpu/team.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/peer_access.hpp"

namespace overlap {
namespace {

/// Rank 0 proves peer access for all ranks, unless that was done before. If there is none, all of them throw,
/// so that they may go on together without it. Ranks that share a GPU need none. It is not enabled for them
/// either: it would make each allocation and each release the business of GPUs that take no part.
Rank& with_peer_access(Rank& rank) {
  Team& team = rank.team();
  if (rank.id() == 0 && team.peer_access_refused.empty()) {
    try {
      require_peer_access(rank.shares_gpu() ? 1 : rank.size());
    } catch (const Skip& skip) {
      team.peer_access_refused = skip.what();
    }
  }
  rank.barrier();
  if (!team.peer_access_refused.empty()) throw Skip(team.peer_access_refused);
  return rank;
}

}  // namespace

PeerMemory::PeerMemory(Rank& rank, std::size_t bytes)
    : rank_(with_peer_access(rank)), own_(rank.device(), bytes) {
  const std::vector<std::size_t> sizes = rank.exchange(bytes);
  if (std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) != sizes.end()) {
    throw std::invalid_argument("PeerBuffer: this rank asks for " + std::to_string(bytes) +
                                " bytes, another one for a different number");
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  all_ = rank.exchange(static_cast<void*>(own_.data()));
}

PeerMemory::~PeerMemory() { settle(); }

void PeerMemory::settle() noexcept {
  detail::before_release();
  if (rank_.stopping()) return;
  try {
    CUDA_CHECK(cudaDeviceSynchronize());
    rank_.barrier();
  } catch (...) {
    // Stopped meanwhile, or the GPU has failed: the next call says so.
  }
}

}  // namespace overlap
