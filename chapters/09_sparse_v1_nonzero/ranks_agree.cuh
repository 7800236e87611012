// Chapter 09: first the ranks exchange their inputs' sizes. So all ranks continue with the same sizes, or all
// throw, with the same sentence: if one rank threw alone, the others would wait in their next collective for
// ever.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "08_sparse_baselines/agreement.cuh"
#include "09_sparse_v1_nonzero/sparse_cost.cuh"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap::sparse_nonzero {

/// Counts the host's waits for its GPU: each costs the latency to the host, and the time until the GPU has
/// work again.
class HostWaits {
 public:
  /// For waits of that rank.
  explicit HostWaits(Rank& rank) : rank_(rank) {}

  /// Waits for the stream.
  void wait(cudaStream_t stream) {
    ++count_;
    rank_.synchronize(stream);
  }
  /// Counts a wait made elsewhere.
  void add_one() { ++count_; }
  /// Restarts the count.
  void reset() { count_ = 0; }
  int count() const { return count_; }  ///< since the last reset()

 private:
  Rank& rank_;
  int count_ = 0;
};

/// What one rank sends to the others.
struct RankRecord {
  sparse_baselines::SparseRecord given;  ///< compared by all ranks, as in chapter 08
  std::int64_t local = 0;                ///< its different rows
};
static_assert(sizeof(RankRecord) == kRecordFields * sizeof(std::int64_t));

/// The records of all ranks.
class RankRecords {
 public:
  /// Collective. Throws Skip if ranks share a GPU.
  RankRecords(Rank& rank, HostWaits& waits)
      : rank_(rank),
        waits_(waits),
        nccl_(rank.nccl()),
        records_(rank.device(), static_cast<std::size_t>(rank.size())),
        on_host_(records_.size()) {}

  /// Exchanges the records, and waits for them. Throws SparseInputError, the same on all ranks, if the input
  /// of one cannot be reduced, or if their shapes or types differ. Collective.
  void exchange(const RankRecord& own, cudaStream_t stream) {
    // Each rank fills in its own record and leaves the others zero: the sum over the ranks is all records,
    // whatever their members are. In integers; the article's counts are in f32, exact only up to 2^24.
    std::memset(static_cast<void*>(on_host_.data()), 0, on_host_.bytes());
    on_host_[static_cast<std::size_t>(rank_.id())] = own;
    CUDA_CHECK(
        cudaMemcpyAsync(records_.data(), on_host_.data(), records_.bytes(), cudaMemcpyHostToDevice, stream));
    NCCL_CHECK(ncclAllReduce(records_.data(), records_.data(), records_.size() * kRecordFields, ncclInt64,
                             ncclSum, nccl_, stream));
    CUDA_CHECK(
        cudaMemcpyAsync(on_host_.data(), records_.data(), records_.bytes(), cudaMemcpyDeviceToHost, stream));
    waits_.wait(stream);
    std::vector<sparse_baselines::SparseRecord> given;
    for (const RankRecord& record : on_host_) given.push_back(record.given);
    sparse_baselines::require_agreement(given);
    if (longest() * rank_.size() > INT32_MAX)
      throw SparseInputError("the lists of all ranks together have more than 2^31 - 1 rows");
  }

  /// The largest number of rows of any rank: the length to which every list is padded.
  std::int64_t longest() const {
    std::int64_t most = 0;
    // [task longest: how many row numbers must every rank be able to send?]
    for (const RankRecord& record : on_host_) most = std::max(most, record.local);
    // [/task]
    return most;
  }
  /// True if a rank has fewer rows than another one, so that its list is padded.
  bool any_padding() const {
    return std::any_of(on_host_.begin(), on_host_.end(),
                       [&](const RankRecord& record) { return record.local < longest(); });
  }

 private:
  Rank& rank_;
  HostWaits& waits_;
  ncclComm* nccl_;
  DeviceBuffer<RankRecord> records_;  // [P]
  PinnedBuffer<RankRecord> on_host_;
};

}  // namespace overlap::sparse_nonzero
