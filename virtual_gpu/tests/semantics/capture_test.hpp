// Shared by the scenarios of stream capture.
#pragma once

#include "gpu_test.hpp"

namespace semantics {

/// Makes `waiting` wait for all work in `stream`.
inline void order(cudaStream_t waiting, cudaStream_t stream, cudaEvent_t event) {
  require(cudaEventRecord(event, stream));
  require(cudaStreamWaitEvent(waiting, event));
}

inline cudaStreamCaptureStatus status(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  require(cudaStreamIsCapturing(stream, &status));
  return status;
}

}  // namespace semantics
