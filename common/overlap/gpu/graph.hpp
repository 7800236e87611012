// A CUDA graph: work that is recorded once and launched again and again with one call.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// An executable graph. Movable, not copyable; it may be destroyed while a launch of it still runs.
class Graph {
 public:
  /// Records what `record()` enqueues into `stream`, and into streams that wait for events of it (they must
  /// be waited for in turn); nothing of it runs. Kernel arguments and pointers are copied now, memory is read
  /// when the graph runs. `record` may only enqueue: this thread must not allocate, free, synchronise or
  /// query meanwhile; other threads may. Throws CudaError, and what `record` throws; the capture has ended
  /// then.
  template <typename Record>
  static Graph capture(cudaStream_t stream, Record&& record) {
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    Recorded graph;
    try {
      std::forward<Record>(record)();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph.handle);
      cudaGetLastError();  // of the capture, which is reported already
      throw;
    }
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph.handle));
    return Graph(graph.handle);
  }

  /// Runs the graph once, after the earlier work of `stream` and after earlier launches of this graph. Throws
  /// CudaError.
  void launch(cudaStream_t stream) const { CUDA_CHECK(cudaGraphLaunch(exec_.handle, stream)); }
  /// Kernels, copies, fills and host functions in the graph.
  std::size_t nodes() const { return nodes_; }

 private:
  using Recorded = detail::Owner<cudaGraph_t, cudaGraphDestroy>;

  explicit Graph(cudaGraph_t recorded) {
    CUDA_CHECK(cudaGraphGetNodes(recorded, nullptr, &nodes_));
    CUDA_CHECK(cudaGraphInstantiate(&exec_.handle, recorded, 0));
  }

  detail::Owner<cudaGraphExec_t, cudaGraphExecDestroy> exec_;
  std::size_t nodes_ = 0;
};

}  // namespace overlap
