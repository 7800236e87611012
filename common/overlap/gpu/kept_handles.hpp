// Streams and cuBLAS handles of one rank, and what the process keeps of all handles from one run to the next.
// Making them takes longer than most runs: a communicator of four GPUs some tenths of a second.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "overlap/gpu/backend/handle_pool.hpp"
#include "overlap/gpu/stream.hpp"

struct cublasContext;
struct ncclComm;

namespace overlap {

/// Destroys a cuBLAS handle on its device.
struct DestroyCublas {
  int device = 0;
  void operator()(cublasContext* handle) const;
};
/// Owns one.
using CublasHandle = std::unique_ptr<cublasContext, DestroyCublas>;

/// What a rank's streams and cuBLAS handles are. Each comes from those kept, if there is one, and else is
/// made when it is first asked for; destroyed with this, unless it was given back.
class RankHandles {
 public:
  explicit RankHandles(int device) : device_(device) {}

  cudaStream_t compute(int i) {
    return stream(compute_.at(static_cast<std::size_t>(i)), StreamPriority::kNormal);
  }
  cudaStream_t transfer(int i) {
    return stream(transfer_.at(static_cast<std::size_t>(i)), StreamPriority::kHigh);
  }
  cublasContext* cublas(int i);

  /// Waits for all its streams; false if one of them has failed.
  bool wait() noexcept;
  /// Keeps all of them for the next run: they must be idle. What cannot be made as good as new is destroyed.
  void give_back();
  void destroy_cublas() { cublas_ = {}; }

  int device() const { return device_; }

  /// Communicators of all ranks: a plain one and one for copy engines. The run owns them.
  std::array<ncclComm*, 2> nccl = {};
  /// Those of its rails, by GPUs of a node and most blocks.
  std::map<std::pair<int, int>, ncclComm*> rails;

 private:
  using Streams = std::array<std::optional<Stream>, 2>;

  cudaStream_t stream(std::optional<Stream>& stream, StreamPriority priority);

  int device_;
  Streams compute_, transfer_;
  std::array<CublasHandle, 2> cublas_;
};

/// Streams that can take each other's place.
struct StreamKind {
  int device;
  StreamPriority priority;
  bool operator==(const StreamKind&) const = default;
};
/// The same of NCCL's communicators.
struct CommunicatorKind {
  int ranks;
  bool copy_engines;
  bool operator==(const CommunicatorKind&) const = default;
};

/// Streams and cuBLAS handles are kept by GPU, not by set of ranks: a GPU has kMaxStreams in all, and the
/// streams of four ranks serve eight as well. A communicator is one of its set.
struct KeptHandles {
  HandlePool<StreamKind, Stream> streams;
  HandlePool<int, Stream> rescue;  // by GPU: see CudaRunState
  HandlePool<int, CublasHandle> cublas;
  HandlePool<CommunicatorKind, std::vector<ncclComm*>> communicators;  // of each rank
};

/// Those of this process. Never destroyed: when a program's static objects are, CUDA's and NCCL's own may be
/// gone already, and the driver takes everything back when the process ends.
KeptHandles& kept_handles();

/// Destroys a stream of that GPU that nobody uses at the moment, to make room for another; false if there is
/// none.
bool drop_idle_stream(int device);

/// Destroys all streams and cuBLAS handles that nobody uses at the moment.
void drop_idle_handles();

}  // namespace overlap
