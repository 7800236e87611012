// Shared by the scenarios of stream capture.
#pragma once

#include "gpu_test.hpp"

namespace semantics {

inline cudaStreamCaptureStatus status(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  require(cudaStreamIsCapturing(stream, &status));
  return status;
}

/// Expects that the capture ends with `code`, and without a graph.
inline void expect_no_graph(cudaStream_t stream, cudaError_t code) {
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA_ERROR(cudaStreamEndCapture(stream, &graph), code);
  EXPECT_EQ(graph, nullptr);
}

/// What `record` enqueues.
class Graph : public Owner<cudaGraph_t, &cudaGraphDestroy> {
 public:
  template <class Record>
  Graph(cudaStream_t stream, Record record, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    require(cudaStreamBeginCapture(stream, mode));
    record();
    require(cudaStreamEndCapture(stream, &handle_));
  }
  std::size_t nodes() const {
    std::size_t count = 0;
    require(cudaGraphGetNodes(handle_, nullptr, &count));
    return count;
  }
};

class Executable : public Owner<cudaGraphExec_t, &cudaGraphExecDestroy> {
 public:
  explicit Executable(cudaGraph_t graph) { require(cudaGraphInstantiate(&handle_, graph, 0)); }
  /// Launches once and synchronises.
  void run(cudaStream_t stream) const {
    require(cudaGraphLaunch(handle_, stream));
    require(cudaStreamSynchronize(stream));
  }
};

}  // namespace semantics
