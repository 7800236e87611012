// Programs with one host thread for each GPU: the same code runs as rank 0, 1, ..., size - 1.
//
//   run_ranks(options.gpus, [&](Rank& rank) {
//     ... one GPU's part of the work ...
//     rank.barrier();
//   });
//
// On virtual GPUs the ranks are fibers of one thread. So ranks never wait for each other by a mutex, a
// condition variable, a std::barrier or a spin on an atomic: only by what is here, by CUDA and by NCCL.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "overlap/gpu/nccl_mode.hpp"

// Handles of NCCL and cuBLAS, so that not every chapter compiles their headers.
struct ncclComm;
struct cublasContext;

namespace overlap {

class Processes;
class RankHandles;
class RunState;

/// Another rank has failed and the run is being stopped. Thrown by calls that wait; do not catch it.
class RunStopped : public std::runtime_error {
 public:
  RunStopped() : std::runtime_error("the run was stopped because another rank failed") {}
};

/// One rank: its number, its GPU, and how it meets the others. Lives as long as the program of run_ranks().
class Rank {
 public:
  /// Made by run_ranks().
  Rank(RunState& run_state, int id, int size, int device, bool shares_gpu);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  int id() const { return id_; }      ///< 0 to size() - 1
  int size() const { return size_; }  ///< how many ranks there are
  /// Its GPU, which is the current device of its host thread: that of its number. With more ranks than GPUs
  /// all of them share GPU 0.
  int device() const { return device_; }
  bool shares_gpu() const { return shares_gpu_; }  ///< all ranks share one GPU, since there are too few
  int local_begin() const {
    return local_begin_;
  }  ///< the first rank of its process: 0 unless there are several
  int local_size() const { return local_size_; }  ///< how many ranks its process has, which follow each other
  int next() const { return (id_ + 1) % size_; }  ///< right neighbour in the ring
  int previous() const { return (id_ + size_ - 1) % size_; }  ///< left neighbour

  /// Non-blocking streams of its GPU, each made (or taken from those that an earlier run has left, see
  /// run_ranks()) when it is first asked for: the one that calls are made on, a second one for products that
  /// overlap those of the first, and two of high priority for transfers.
  /// Algorithms that run one after the other share them, and ranks that share a GPU have one for transfers,
  /// so that eight ranks fit on one GPU (kMaxStreams).
  cudaStream_t stream();
  cudaStream_t second_stream();             ///< see stream()
  cudaStream_t transfer_stream(int i = 0);  ///< see stream(); i is 0 or 1, else std::out_of_range
  /// Its communicator of all ranks, made (or taken) at the first call, which is collective; one for copy
  /// engines and one for all other modes. Throws Skip if ranks share a GPU, or where the mode cannot be had.
  ncclComm* nccl(NcclMode mode = NcclMode::kPlain);
  /// Its communicator of the ranks that have its number in their nodes, where a node is `gpus_per_node` ranks
  /// that follow each other: the number of its node is its rank in it. An operation takes at most
  /// `max_blocks` multiprocessors. Made at the first call, which is collective, and kept until the run ends.
  /// Throws Skip as nccl() does.
  ncclComm* rail(int gpus_per_node, int max_blocks);
  /// Its cuBLAS handles 0 and 1, made (or taken) at the first call, with the settings that cublasCreate()
  /// gives. The stream is the caller's to set. Products that may run at the same time on two streams take two
  /// handles: with one for both, cuBLAS does not promise the same bits in each run ("Results
  /// reproducibility").
  cublasContext* cublas(int i = 0);

  /// Waits for all ranks. Throws RunStopped if one of them has failed.
  void barrier();
  /// Waits for the stream. Throws RunStopped if a rank has failed: the stream's results are then invalid.
  void synchronize(cudaStream_t stream);
  /// True once a rank has failed: no result, time or file may be written any more.
  bool stopping() const;
  /// A word in pinned memory that becomes non-zero when the run stops; kernels that spin poll it, by
  /// cuda::atomic_ref with acquire.
  unsigned* abort_flag() const;

  /// Every rank's `value`, by rank. Collective. An address means something in its own process only.
  template <typename T>
  std::vector<T> exchange(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(size_));
    exchange_bytes(&value, sizeof(T), all.data());
    return all;
  }
  /// The same for the ranks of its process, from local_begin() on.
  template <typename T>
  std::vector<T> exchange_here(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(local_size_));
    exchange_bytes_here(&value, sizeof(T), all.data());
    return all;
  }
  /// By index, the largest value of any rank. Collective; all ranks give equally many.
  std::vector<double> largest_of_all(const std::vector<double>& own);

  RunState& run_state() { return run_state_; }  ///< for the helpers in common: what the ranks share

 private:
  int local_id() const { return id_ - local_begin_; }
  void meet_here();
  void in_all_processes(const std::function<void(Processes&, const std::function<bool()>& stopped)>& call);
  void require_nccl() const;
  void destroy(ncclComm* communicator);
  void exchange_bytes(const void* value, std::size_t bytes, void* all);
  void exchange_bytes_here(const void* value, std::size_t bytes, void* all);

  RunState& run_state_;
  int id_, size_, device_, local_begin_, local_size_;
  bool shares_gpu_;
  std::unique_ptr<RankHandles> handles_;
};

/// Runs `program` once for each rank, each on a host thread of its own whose current device is the GPU of its
/// number (GPU 0 if there are fewer GPUs than ranks), and returns when all have ended. If a rank throws, the
/// run is stopped: waits of the other ranks throw RunStopped, signals open and communicators are aborted, so
/// that no rank waits for the one that failed. The first error is then rethrown, its text preceded by "rank
/// N: ". On real GPUs, if the ranks have not returned after 5 s (a call hangs), or if the error makes a GPU
/// unusable, the error and the pending waits are printed and the process ends with status 2. A rank that
/// continues after an exception has to catch it before it passes an owner of CUDA objects, which stops the
/// run; otherwise std::logic_error is thrown. Throws std::invalid_argument unless 1 <= ranks <= 64.
///
/// With several processes, each of which calls this from its main thread, every process has as many of the
/// ranks, and a GPU is one of its own machine. A failed rank stops the ranks of its own process: the error
/// has to reach Processes::end(), which ends the other processes. A rank can access the memory of ranks of
/// its own process only, see PeerBuffer.
///
/// On real GPUs the ranks' streams, cuBLAS handles and communicators outlive the run: each rank waits for its
/// GPU at its end (for its streams, if it shares the GPU), and a later run takes streams and cuBLAS handles
/// by GPU, and communicators if it has as many ranks. What is kept counts among a GPU's kMaxStreams, and
/// gives way when a new stream would be one too many; communicators give way to ranks that share a GPU. A run
/// that was stopped keeps nothing. Virtual GPUs keep nothing between runs.
void run_ranks(int ranks, const std::function<void(Rank&)>& program, Processes* processes = nullptr);

}  // namespace overlap
