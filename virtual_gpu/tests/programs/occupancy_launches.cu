// The block size by the occupancy helper; launches by function pointer; attributes of kernels.
#include <cstdio>

__global__ void square(int* array, int count) {
  int idx = threadIdx.x + blockIdx.x * blockDim.x;
  if (idx < count) array[idx] *= array[idx];
}
template <typename T>
__global__ void add(T* array, T value, int count) {
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < count; i += gridDim.x * blockDim.x)
    array[i] += value;
}
class NeedsAnArgument {
 public:
  __host__ __device__ explicit NeedsAnArgument(int value) : value_(value) {}
  __device__ int get() const { return value_; }

 private:
  int value_;
};
__global__ void set(int* array, NeedsAnArgument value) { array[threadIdx.x] = value.get(); }

int main() {
  const int count = 5000;
  int *array, blockSize = 0, minGridSize = 0, maxActiveBlocks = 0;
  cudaMallocManaged(&array, count * sizeof(int));
  for (int i = 0; i < count; ++i) array[i] = i % 100;
  cudaOccupancyMaxPotentialBlockSize(&minGridSize, &blockSize, (void*)square, 0, count);
  square<<<(count + blockSize - 1) / blockSize, blockSize>>>(array, count);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&maxActiveBlocks, square, blockSize, 0);
  cudaDeviceProp props;
  cudaGetDeviceProperties(&props, 0);
  const float occupancy = (maxActiveBlocks * blockSize / props.warpSize) /
                          (float)(props.maxThreadsPerMultiProcessor / props.warpSize);
  int value = 7, n = count;
  void* args[] = {&array, &value, &n};
  cudaError_t error = cudaLaunchKernel((const void*)add<int>, dim3(8), dim3(256), args, 0, 0);
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, set);
  cudaFuncSetCacheConfig(square, cudaFuncCachePreferL1);
  cudaFuncSetAttribute(set, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  cudaDeviceSynchronize();
  bool ok = error == cudaSuccess && occupancy > 0 && occupancy <= 1 && minGridSize > 0 &&
            attributes.maxThreadsPerBlock == 1024;
  for (int i = 0; i < count; ++i) ok = ok && array[i] == (i % 100) * (i % 100) + 7;
  set<<<1, 10, 60000>>>(array, NeedsAnArgument(3));
  cudaDeviceSynchronize();
  ok = ok && array[9] == 3 && array[10] == 107;
  puts(ok ? "PASS" : "FAIL");
  return !ok;
}
