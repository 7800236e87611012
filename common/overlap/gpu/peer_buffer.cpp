#include "overlap/gpu/peer_buffer.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "overlap/gpu/error.hpp"
#include "overlap/gpu/peer_access.hpp"
#include "overlap/gpu/run_state.hpp"

namespace overlap {
namespace {

/// If one process has no peer access, all processes continue without it.
void agree(Rank& rank, const std::string& refused_here) {
  for (const int refused : rank.exchange(refused_here.empty() ? 0 : 1)) {
    if (refused != 0 && refused_here.empty()) throw Skip("another process has no peer access");
  }
}

/// One rank tests peer access for all of its process, unless that was done before. If there is none, all
/// ranks throw, so that they can continue together without it. Ranks that share a GPU need none, and it is
/// not enabled for them: it would involve other GPUs in each allocation and release.
Rank& with_peer_access(Rank& rank, Reach reach) {
  if (reach == Reach::kAllRanks && rank.local_size() < rank.size())
    throw Skip("a rank reaches the memory of another one in its own process only");
  RunState& run_state = rank.run_state();
  if (rank.id() == rank.local_begin() && run_state.peer_access_refused.empty()) {
    try {
      require_peer_access(rank.shares_gpu() ? 1 : rank.local_size());
    } catch (const Skip& skip) {
      run_state.peer_access_refused = skip.what();
    }
  }
  rank.barrier();
  if (rank.local_size() < rank.size()) agree(rank, run_state.peer_access_refused);
  if (!run_state.peer_access_refused.empty()) throw Skip(run_state.peer_access_refused);
  return rank;
}

}  // namespace

PeerMemory::PeerMemory(Rank& rank, std::size_t bytes, Reach reach)
    : rank_(with_peer_access(rank, reach)), own_(rank.device(), bytes) {
  const std::vector<std::size_t> sizes = rank.exchange(bytes);
  if (std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) != sizes.end()) {
    throw std::invalid_argument("PeerBuffer: this rank asks for " + std::to_string(bytes) +
                                " bytes, another one for a different number");
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  all_.resize(static_cast<std::size_t>(rank.size()));
  const std::vector<void*> here = rank.exchange_here(static_cast<void*>(own_.data()));
  std::copy(here.begin(), here.end(), all_.begin() + rank.local_begin());
}

PeerMemory::~PeerMemory() { settle(); }

void PeerMemory::settle() noexcept {
  detail::before_release();
  if (!rank_.stopping()) {
    try {
      CUDA_CHECK(cudaDeviceSynchronize());
      rank_.barrier();
    } catch (...) {
      // Stopped meanwhile, or the GPU has failed: the next call says so.
    }
  }
  if (rank_.stopping()) rank_.run_state().leave(rank_.id() - rank_.local_begin());
}

}  // namespace overlap
