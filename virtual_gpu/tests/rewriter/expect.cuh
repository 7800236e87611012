// What the rewriter's cases share. Each case is a program of plain CUDA: nvcc compiles it too.
#pragma once

#include <cstdio>

#include <cuda_runtime.h>

// Counts and prints the expectations that do not hold; main() returns failures().
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

// One int in device memory, 0 at first.
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

  // The value after everything launched so far; a new cell's value is 0.
  int value() const {
    int host = -1;
    EXPECT(cudaDeviceSynchronize() == cudaSuccess);
    EXPECT(cudaMemcpy(&host, device_, sizeof(int), cudaMemcpyDeviceToHost) == cudaSuccess);
    return host;
  }

 private:
  int* device_ = nullptr;
};
