// Streams and cuBLAS handles of one rank, and the handles that the process keeps from one run to the next.
// Creating them takes longer than most runs: a communicator of four GPUs some tenths of a second.
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

/// A rank's streams and cuBLAS handles. At its first use each is taken from the kept ones, or created if
/// there is none. Destroyed with this object, unless it was given back.
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
  /// Keeps all of them for the next run: they must be idle. A handle whose settings cannot be restored is
  /// destroyed.
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

/// The kept handles of this process. Never destroyed: when static objects are destroyed, CUDA's and NCCL's
/// own state may be gone already, and the driver frees everything when the process ends.
KeptHandles& kept_handles();

/// Destroys an unused stream of that GPU, to make room for another one; false if there is none.
bool drop_idle_stream(int device);

/// Destroys all unused streams and cuBLAS handles.
void drop_idle_handles();

}  // namespace overlap
