// A class that owns device memory, passed by value: its copies call CUDA on the host, none in the kernel.
#include <cstdio>
#include <vector>

int copies = 0;

class DeviceArray {
 public:
  explicit DeviceArray(int n) : size_(n), owner_(true) { cudaMalloc(&data_, n * sizeof(float)); }
  DeviceArray(const DeviceArray& other) : data_(other.data_), size_(other.size_), owner_(false) {
    cudaDeviceSynchronize();
    ++copies;
  }
  ~DeviceArray() {
    if (owner_)
      cudaFree(data_);
    else
      cudaDeviceSynchronize();
  }
  __device__ float& operator[](int i) { return data_[i]; }
  __host__ __device__ int size() const { return size_; }
  std::vector<float> host() const {
    std::vector<float> result(size_);
    cudaMemcpy(result.data(), data_, size_ * sizeof(float), cudaMemcpyDeviceToHost);
    return result;
  }

 private:
  float* data_;
  int size_;
  bool owner_;
};

__global__ void fill(DeviceArray array) {
  for (int i = threadIdx.x; i < array.size(); i += blockDim.x) array[i] = 2.0f * i;
}

int main() {
  DeviceArray array(1000);
  fill<<<1, 128>>>(array);
  const std::vector<float> result = array.host();
  for (int i = 0; i < 1000; ++i) {
    if (result[i] != 2.0f * i) return puts("FAIL"), 1;
  }
  const bool few = copies < 10;  // copies per launch, not per thread
  puts(few ? "PASS" : "FAIL: copied by threads");
  return few ? 0 : 1;
}
