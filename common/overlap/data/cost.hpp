// The one record of all cost cards: what a rank moves, computes and keeps in one call.
#pragma once

#include <cstdint>

namespace overlap {

/// What one rank does in one call of an algorithm, counted and never timed. A chapter's `cost(shape, ranks,
/// rank)` gives it from the sizes alone; its page's cost card and its tests both come from there. Quantities
/// that an algorithm does not have stay 0.
struct Cost {
  std::int64_t messages = 0;         ///< sent to other ranks, of any size
  std::int64_t bytes_out = 0;        ///< sent to other ranks
  std::int64_t bytes_in = 0;         ///< received from other ranks
  std::int64_t bytes_to_host = 0;    ///< copied from the rank's GPU to the host
  std::int64_t bytes_from_host = 0;  ///< copied from the host to the rank's GPU
  std::int64_t host_waits = 0;       ///< times that the host waits for the GPU
  std::int64_t products = 0;         ///< GEMMs that are enqueued
  std::int64_t launches = 0;         ///< own kernels, and calls of CUB (which may launch several)
  std::int64_t comparisons = 0;      ///< of two row numbers
  std::int64_t memory = 0;           ///< bytes of device memory beside operands and result

  bool operator==(const Cost&) const = default;
};

/// Parameters of the cost of one call of a sparse all-reduce for one rank.
struct SparseCall {
  int ranks = 1;              ///< P
  int rank = 0;               ///< whose cost
  std::int64_t features = 0;  ///< F
  std::int64_t local = 0;     ///< n_r, different rows of this rank
  std::int64_t most = 0;      ///< the largest n_r of any rank
  std::int64_t global = 0;    ///< G, different rows of all ranks
};

}  // namespace overlap
