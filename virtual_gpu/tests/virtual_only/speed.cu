// virtual_gpu_speed: host seconds of typical kernels and products on a virtual GPU. No test: it prints, and
// checks the products.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <vgpu/control.hpp>

#include "overlap/gpu/wgmma.hpp"

namespace {

constexpr int kSize = 512, kTile = 16;
constexpr int kSwitchThreads = 256, kSwitchBarriers = 20000;

template <class T>
__global__ void multiply(const T* a, const T* b, T* c, int size) {
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  T sum = 0;
  for (int k = 0; k < size; ++k) sum += a[row * size + k] * b[k * size + column];
  c[row * size + column] = sum;
}

template <class T>
__global__ void multiply_tiled(const T* a, const T* b, T* c, int size) {
  __shared__ T a_tile[kTile][kTile];
  __shared__ T b_tile[kTile][kTile];
  const int row = static_cast<int>(blockIdx.y * kTile + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * kTile + threadIdx.x);
  T sum = 0;
  for (int start = 0; start < size; start += kTile) {
    a_tile[threadIdx.y][threadIdx.x] = a[row * size + start + threadIdx.x];
    b_tile[threadIdx.y][threadIdx.x] = b[(start + threadIdx.y) * size + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
    __syncthreads();
  }
  c[row * size + column] = sum;
}

template <class T>
__global__ void only_barriers(T* out, int barriers) {
  for (int i = 0; i < barriers; ++i) __syncthreads();
  if (threadIdx.x == 0) *out = barriers;
}

/// One warpgroup, four products at a time, on what shared memory happens to hold.
template <class T>
__global__ void only_wgmma(T* out, int rounds) {
  namespace wgmma = overlap::wgmma;
  constexpr auto kSwizzle = wgmma::Swizzle::k128;
  alignas(1024) __shared__ std::byte tiles[2 * 64 * (64 + 256)];
  wgmma::Fragment<256> d;
  const auto a = wgmma::describe<wgmma::Major::kK, kSwizzle>(tiles, 0, 1024);
  const auto b = wgmma::describe<wgmma::Major::kK, kSwizzle>(tiles + 2 * 64 * 64, 0, 1024);
  for (int round = 0; round < rounds; ++round) {
    wgmma::fence();
    for (int k = 0; k < 4; ++k) {
      wgmma::mma<__half, wgmma::Major::kK, wgmma::Major::kK>(d, wgmma::advance(a, 32 * k),
                                                             wgmma::advance(b, 32 * k), round + k > 0);
    }
    wgmma::commit();
    wgmma::wait<0>(d);
  }
  if (threadIdx.x == 0) *out = static_cast<T>(d.value[0]);
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(2);
}

/// Host seconds until the device is idle again.
template <class Launch>
double seconds(Launch launch) {
  const auto start = std::chrono::steady_clock::now();
  launch();
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A graph of tiny kernels.
void report_graph(int* memory, int nodes) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const double capture = seconds([&] {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < nodes; ++i) only_barriers<<<1, 1, 0, stream>>>(memory, 0);
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph));
  });
  std::printf("%-28s %.3f s to capture, %.3f s to run (%d kernels)\n", "graph", capture,
              seconds([&] { check(cudaGraphLaunch(executable, stream)); }), nodes);
  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(graph));
}

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "%s\n", cublasGetStatusString(status));
  std::exit(2);
}

/// Products of cuBLAS, in half: the second time, when all memory has been touched.
double product_seconds(int m, int n, int k) {
  cublasHandle_t blas;
  check(cublasCreate(&blas));
  const float one = 1, zero = 0;
  void *a, *b, *c;
  const auto allocate = [](void** memory, std::size_t elements) {
    check(cudaMalloc(memory, elements * sizeof(__half)));
    check(cudaMemset(*memory, 0, elements * sizeof(__half)));
  };
  allocate(&a, std::size_t(m) * k);
  allocate(&b, std::size_t(k) * n);
  allocate(&c, std::size_t(m) * n);
  double last = 0;
  for (int i = 0; i < 2; ++i) {
    last = seconds([&] {
      check(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a, CUDA_R_16F, m, b, CUDA_R_16F, k,
                         &zero, c, CUDA_R_16F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    });
  }
  check(cublasDestroy(blas));
  for (void* memory : {a, b, c}) check(cudaFree(memory));
  return last;
}

void report_products() {
  for (const auto method : {vgpu::product_method(), vgpu::ProductMethod::kLoop}) {
    vgpu::use_product_method(method);
    std::printf("%-28s %.4f s, with %s\n", "cuBLAS 1024^3 product", product_seconds(1024, 1024, 1024),
                method == vgpu::ProductMethod::kLoop ? "the loop" : "OpenBLAS");
  }
}

}  // namespace

int main() {
  std::vector<int> a(kSize * kSize), b(a.size()), expected(a.size(), 0), result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<int>(i * 7 % 11) - 5;
    b[i] = static_cast<int>(i * 5 % 13) - 6;
  }
  for (int row = 0; row < kSize; ++row) {
    for (int k = 0; k < kSize; ++k) {
      for (int column = 0; column < kSize; ++column) {
        expected[row * kSize + column] += a[row * kSize + k] * b[k * kSize + column];
      }
    }
  }
  int *device_a, *device_b, *device_c;
  const std::size_t bytes = a.size() * sizeof(int);
  for (int** memory : {&device_a, &device_b, &device_c}) check(cudaMalloc(memory, bytes));
  check(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
  check(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));

  const dim3 grid(kSize / kTile, kSize / kTile), block(kTile, kTile);
  bool right = true;
  const auto report = [&](const char* name, auto kernel) {
    check(cudaMemset(device_c, 0xff, bytes));
    const double time = seconds([&] { kernel<<<grid, block>>>(device_a, device_b, device_c, kSize); });
    check(cudaMemcpy(result.data(), device_c, bytes, cudaMemcpyDeviceToHost));
    right = right && result == expected;
    std::printf("%-28s %.3f s, %s\n", name, time, result == expected ? "right" : "WRONG");
  };
  report("naive 512^3 product", multiply<int>);
  report("tiled 512^3 product", multiply_tiled<int>);

  const double time = seconds([&] { only_barriers<<<1, kSwitchThreads>>>(device_c, kSwitchBarriers); });
  const double switches = static_cast<double>(kSwitchThreads) * kSwitchBarriers;
  std::printf("%-28s %.1f ns (%.0f of them in %.3f s)\n", "fiber switch", time / switches * 1e9, switches,
              time);
  constexpr int kRounds = 200;
  const double products = seconds([&] { only_wgmma<<<1, 128>>>(device_c, kRounds); });
  std::printf("%-28s %.3f ms\n", "wgmma m64n256k16", products / (4 * kRounds) * 1e3);
  report_graph(device_c, 20000);
  report_products();
  return right ? 0 : 1;
}
