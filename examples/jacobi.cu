// Jacobi iteration for Laplace's equation on all GPUs. Each has a band of rows and, above and below it, a
// copy of its neighbours' border rows (the halo), which the neighbours send after each iteration.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#define CHECK(call)                                                                                  \
  do {                                                                                               \
    const cudaError_t error = (call);                                                                \
    if (error != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error)); \
      std::exit(1);                                                                                  \
    }                                                                                                \
  } while (0)

const int kWidth = 96, kHeight = 61;  // points inside; around them the border, 1 on top and 0 elsewhere
const int kPitch = kWidth + 2;
const int kMaxIterations = 1000, kIterationsPerCheck = 20;
const float kTolerance = 2e-3f;

// One iteration on `rows` rows. in and out begin with the row above them. If change is given, it becomes the
// largest change of a point, as the bits of a float that is not negative: they compare like integers.
__global__ void iterate(const float* in, float* out, int rows, int* change) {
  const int column = 1 + blockIdx.x * blockDim.x + threadIdx.x;
  const int row = 1 + blockIdx.y * blockDim.y + threadIdx.y;
  if (column > kWidth || row > rows) return;
  const int i = row * kPitch + column;
  const float value = 0.25f * (in[i - 1] + in[i + 1] + in[i - kPitch] + in[i + kPitch]);
  out[i] = value;
  if (change != nullptr) atomicMax(change, __float_as_int(fabsf(value - in[i])));
}

// What one GPU has.
struct Band {
  int first, rows;  // of the whole grid, counted without the border
  float* grid[2];   // alternately input and output
  int* change;
  cudaStream_t stream;
  cudaEvent_t sent[2];  // this iteration's border rows have been sent; for even and for odd iterations
};

std::vector<Band> make_bands(int devices, const std::vector<float>& start) {
  std::vector<Band> bands(devices);
  for (int device = 0; device < devices; ++device) {
    Band& band = bands[device];
    CHECK(cudaSetDevice(device));
    for (int peer = 0; peer < devices; ++peer) {  // makes copies faster, and they work without it
      int possible = 0;
      if (peer != device) CHECK(cudaDeviceCanAccessPeer(&possible, device, peer));
      if (possible) CHECK(cudaDeviceEnablePeerAccess(peer, 0));
    }
    band.first = kHeight * device / devices;
    band.rows = kHeight * (device + 1) / devices - band.first;
    const size_t bytes = sizeof(float) * (band.rows + 2) * kPitch;
    for (float*& grid : band.grid) {
      CHECK(cudaMalloc(&grid, bytes));
      CHECK(cudaMemcpy(grid, start.data() + band.first * kPitch, bytes, cudaMemcpyHostToDevice));
    }
    CHECK(cudaMalloc(&band.change, sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&band.stream, cudaStreamNonBlocking));
    for (cudaEvent_t& event : band.sent) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  return bands;
}

// Enqueues one iteration on one GPU: wait for the halo, compute, send the border rows to the neighbours.
void enqueue(std::vector<Band>& bands, int device, int iteration, bool check) {
  Band& band = bands[device];
  const int from = iteration % 2, to = 1 - from, devices = static_cast<int>(bands.size());
  CHECK(cudaSetDevice(device));
  if (iteration > 0) {
    // This also keeps what is sent below from overwriting a halo that a neighbour still reads.
    if (device > 0) CHECK(cudaStreamWaitEvent(band.stream, bands[device - 1].sent[to], 0));
    if (device + 1 < devices) CHECK(cudaStreamWaitEvent(band.stream, bands[device + 1].sent[to], 0));
  }
  if (check) CHECK(cudaMemsetAsync(band.change, 0, sizeof(int), band.stream));
  const dim3 block(32, 8), grid((kWidth + 31) / 32, (band.rows + 7) / 8);
  iterate<<<grid, block, 0, band.stream>>>(band.grid[from], band.grid[to], band.rows,
                                           check ? band.change : nullptr);
  CHECK(cudaGetLastError());
  const size_t row = kPitch * sizeof(float);
  if (device > 0) {
    const Band& above = bands[device - 1];
    CHECK(cudaMemcpyPeerAsync(above.grid[to] + (above.rows + 1) * kPitch, device - 1, band.grid[to] + kPitch,
                              device, row, band.stream));
  }
  if (device + 1 < devices) {
    CHECK(cudaMemcpyPeerAsync(bands[device + 1].grid[to], device + 1, band.grid[to] + band.rows * kPitch,
                              device, row, band.stream));
  }
  CHECK(cudaEventRecord(band.sent[from], band.stream));
}

// The largest change of the last iteration, on all GPUs.
float largest_change(const std::vector<Band>& bands) {
  int largest = 0;
  for (size_t device = 0; device < bands.size(); ++device) {
    int change = 0;
    CHECK(cudaSetDevice(static_cast<int>(device)));
    CHECK(cudaStreamSynchronize(bands[device].stream));
    CHECK(cudaMemcpy(&change, bands[device].change, sizeof(int), cudaMemcpyDeviceToHost));
    largest = std::max(largest, change);
  }
  float result = 0;
  std::memcpy(&result, &largest, sizeof(result));
  return result;
}

int solve(int devices, std::vector<float>& grid) {
  std::vector<Band> bands = make_bands(devices, grid);
  int iterations = 0;
  float change = kTolerance;
  while (iterations < kMaxIterations && change >= kTolerance) {
    const bool check = (iterations + 1) % kIterationsPerCheck == 0;
    for (int device = 0; device < devices; ++device) enqueue(bands, device, iterations, check);
    ++iterations;
    if (check) change = largest_change(bands);
  }
  for (int device = 0; device < devices; ++device) {
    const Band& band = bands[device];
    CHECK(cudaSetDevice(device));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(grid.data() + (band.first + 1) * kPitch, band.grid[iterations % 2] + kPitch,
                     sizeof(float) * band.rows * kPitch, cudaMemcpyDeviceToHost));
  }
  for (int device = 0; device < devices; ++device) {  // when nobody sends to it any more
    const Band& band = bands[device];
    CHECK(cudaSetDevice(device));
    for (float* half : band.grid) CHECK(cudaFree(half));
    CHECK(cudaFree(band.change));
    CHECK(cudaStreamDestroy(band.stream));
    for (cudaEvent_t event : band.sent) CHECK(cudaEventDestroy(event));
  }
  return iterations;
}

int solve_on_host(std::vector<float>& grid) {
  std::vector<float> next = grid;
  int iterations = 0;
  float change = kTolerance;
  while (iterations < kMaxIterations && change >= kTolerance) {
    float largest = 0;
    for (int row = 1; row <= kHeight; ++row) {
      for (int i = row * kPitch + 1; i <= row * kPitch + kWidth; ++i) {
        next[i] = 0.25f * (grid[i - 1] + grid[i + 1] + grid[i - kPitch] + grid[i + kPitch]);
        largest = std::max(largest, std::fabs(next[i] - grid[i]));
      }
    }
    std::swap(grid, next);
    if (++iterations % kIterationsPerCheck == 0) change = largest;
  }
  return iterations;
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  std::printf("%d devices\n", devices);

  std::vector<float> grid((kHeight + 2) * kPitch, 0.0f);
  std::fill(grid.begin() + 1, grid.begin() + 1 + kWidth, 1.0f);
  std::vector<float> expected = grid;
  const int iterations = solve(devices, grid), expected_iterations = solve_on_host(expected);

  int errors = 0;
  for (size_t i = 0; i < grid.size(); ++i) errors += grid[i] != expected[i];
  const bool passed = errors == 0 && iterations == expected_iterations && iterations < kMaxIterations;
  std::printf("%d iterations, on the host %d: %d errors: %s\n", iterations, expected_iterations, errors,
              passed ? "PASS" : "FAIL");
  return passed ? 0 : 1;
}
