// Device variables: one for each GPU; accessed by name on the host, in functions, namespaces and classes.
#include <cstdio>

__device__ unsigned int counter, finished = 7u;
__device__ int table[3] = {1, 2, 3};
static __constant__ float scale[] = {0.5f, 2.0f};
__device__ const int kOffset = 100;
namespace physics {
__device__ float mass = 1.5f;
}
__managed__ int shared_by_all = 5;

struct Particle {
  int counter;  // not the global one
  __device__ float energy() const { return counter + scale[1] * physics::mass; }
};

__device__ void count() { atomicAdd(&counter, 1u); }

__global__ void use(float* out, Particle particle, int finished) {
  count();
  if (threadIdx.x > 0) return;
  out[0] = particle.energy();
  out[1] = finished;  // the parameter
  out[2] = ::finished;
  out[3] = table[2] + kOffset;
  int counter = 99;  // a local one
  out[4] = counter;
  out[5] = sizeof(table) / sizeof(table[0]);
  shared_by_all += 1;
}

int main() {
  float *d_out, out[6];
  int devices = 0;
  bool ok = cudaGetDeviceCount(&devices) == cudaSuccess;
  for (int device = 0; device < devices; ++device) {
    cudaSetDevice(device);
    cudaMalloc(&d_out, sizeof(out));
    const float mass = device + 1;
    cudaMemcpyToSymbol(physics::mass, &mass, sizeof(mass));
    use<<<1, 32 + device>>>(d_out, Particle{10}, 3);
    cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost);
    const float expected[6] = {10 + 2 * mass, 3, 7, 103, 99, 3};
    for (int i = 0; i < 6; ++i) ok = ok && out[i] == expected[i];
    cudaFree(d_out);
  }
  for (int device = 0; device < devices; ++device) {
    unsigned int count = 0;
    cudaSetDevice(device);
    cudaMemcpyFromSymbol(&count, counter, sizeof(count));
    ok = ok && count == 32u + device;
  }
  int *address = nullptr, value = 0;
  size_t size = 0;
  cudaGetSymbolAddress((void**)&address, table);
  cudaGetSymbolSize(&size, table);
  cudaMemcpy(&value, address + 1, sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(&value, table, sizeof(int), sizeof(int));
  ok = ok && size == 12 && value == 2 && shared_by_all == 5 + devices;
  puts(ok ? "PASS" : "FAIL");
  return ok ? 0 : 1;
}
