// What the scenarios of stream capture share.
#pragma once

#include "gpu_test.hpp"

namespace semantics {

/// `waiting` waits for all that `stream` holds now.
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
