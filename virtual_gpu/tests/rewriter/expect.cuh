// Shared by the rewriter's cases. Each case is plain CUDA, which nvcc compiles too.
#pragma once

#include <cstdio>

#include <cuda_runtime.h>

// Counts and prints failed expectations; main() returns failures().
inline int& failures() {
  static int count = 0;
  return count;
}

inline void expect_at(bool holds, const char* text, const char* file, int line) {
  if (holds) return;
  std::printf("%s:%d: does not hold: %s\n", file, line, text);
  ++failures();
}
#define EXPECT(condition) expect_at((condition), #condition, __FILE__, __LINE__)

// One int in device memory, initially 0.
class Cell {
 public:
  Cell() {
    EXPECT(cudaMalloc(&device_, sizeof(int)) == cudaSuccess);
    EXPECT(cudaMemset(device_, 0, sizeof(int)) == cudaSuccess);
  }
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;
  ~Cell() { cudaFree(device_); }

  operator int*() const { return device_; }

  // The value after all launches so far.
  int value() const {
    int host = -1;
    EXPECT(cudaDeviceSynchronize() == cudaSuccess);
    EXPECT(cudaMemcpy(&host, device_, sizeof(int), cudaMemcpyDeviceToHost) == cudaSuccess);
    return host;
  }

 private:
  int* device_ = nullptr;
};
