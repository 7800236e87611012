// Launches: limits, arguments, errors. Guide, "Execution Configuration" and "Error Checking".
#include "gpu_test.hpp"

namespace semantics {
namespace {

using LaunchesTest = GpuTest;

template <class T>
__global__ void last_dynamic_word(T* result, int words) {
  extern __shared__ int memory[];
  for (int i = threadIdx.x; i < words; i += blockDim.x) memory[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *result = memory[words - 1] + memory[0];
}

__global__ void __launch_bounds__(64) at_most_64_threads(int* where) {
  if (threadIdx.x == 0) *where = 1;
}

struct Point {
  int x, y;
  double weights[3];
};
__global__ void store_point(Point* where, Point point) { *where = point; }

/// Every thread changes its parameters; other threads must not see it.
__global__ void change_parameters(int* out, int value, int* end) {
  for (unsigned int i = 0; i < threadIdx.x; ++i) value += 1;
  out += threadIdx.x;
  __syncthreads();
  if (out < end) *out = value;
}

__global__ void store_converted(int* out, const int* none, long long wide, float number, unsigned char byte) {
  out[0] = none == nullptr;
  out[1] = wide == -5;
  out[2] = number == 2.0f;
  out[3] = byte;
}

struct BadLaunch {
  const char* name;
  dim3 grid, block;
  friend void PrintTo(const BadLaunch& launch, std::ostream* out) { *out << launch.name; }
};
/// For a launch beyond the limits, CUDA 12 returns invalid configuration, CUDA 13 invalid value.
bool is_refusal(cudaError_t error) {
  return error == cudaErrorInvalidConfiguration || error == cudaErrorInvalidValue;
}

class BadLaunchTest : public GpuTest, public testing::WithParamInterface<BadLaunch> {};

TEST_P(BadLaunchTest, IsRefusedAndRunsNothing) {
  const DeviceArray<int> x(1, 3);
  set<<<GetParam().grid, GetParam().block>>>(x.data(), 4);
  EXPECT_PRED1(is_refusal, cudaGetLastError());
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(x.value(), 3);
  set<<<1, 1>>>(x.data(), 5);  // the error is not sticky
  CUDA_OK(cudaGetLastError());
  EXPECT_EQ(x.value(), 5);
}
INSTANTIATE_TEST_SUITE_P(
    Limits, BadLaunchTest,
    testing::Values(BadLaunch{"no_block", 0, 1}, BadLaunch{"no_block_in_y", {1, 0, 1}, 1},
                    BadLaunch{"no_thread", 1, 0}, BadLaunch{"no_thread_in_z", 1, {1, 1, 0}},
                    BadLaunch{"1025_threads", 1, 1025}, BadLaunch{"33_x_32_threads", 1, {33, 32}},
                    BadLaunch{"65_threads_in_z", 1, {1, 1, 65}},
                    BadLaunch{"65536_blocks_in_y", {1, 65536}, 1},
                    BadLaunch{"65536_blocks_in_z", {1, 1, 65536}, 1}),
    [](const auto& info) { return info.param.name; });

// Guide, "Error Checking": cudaPeekAtLastError() leaves the error, cudaGetLastError() resets it.
TEST_F(LaunchesTest, PeekLeavesTheErrorAndGetTakesIt) {
  const DeviceArray<int> x(1, 3);
  set<<<0, 1>>>(x.data(), 4);
  const cudaError_t error = cudaPeekAtLastError();
  EXPECT_PRED1(is_refusal, error);
  EXPECT_EQ(cudaPeekAtLastError(), error);
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(cudaGetLastError(), error) << "a call that succeeds does not reset it";
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(LaunchesTest, TheLastErrorIsTheLatest) {
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  set<int><<<0, 1>>>(nullptr, 4);
  EXPECT_PRED1(is_refusal, cudaGetLastError());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(LaunchesTest, ErrorsHaveNames) {
  EXPECT_STREQ(cudaGetErrorName(cudaSuccess), "cudaSuccess");
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidDevice), "invalid device ordinal");
}

TEST_F(LaunchesTest, DeviceThatDoesNotExist) {
  int device = -1;
  EXPECT_CUDA_ERROR(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_CUDA_ERROR(cudaSetDevice(devices_), cudaErrorInvalidDevice);
  CUDA_OK(cudaGetDevice(&device));
  EXPECT_EQ(device, 0) << "the current device stays";
  cudaDeviceProp properties;
  EXPECT_CUDA_ERROR(cudaGetDeviceProperties(&properties, devices_), cudaErrorInvalidDevice);
  EXPECT_CUDA_ERROR(cudaDeviceGetAttribute(&device, cudaDevAttrWarpSize, devices_), cudaErrorInvalidDevice);
}

TEST_F(LaunchesTest, AttributesAgreeWithProperties) {
  cudaDeviceProp properties;
  CUDA_OK(cudaGetDeviceProperties(&properties, 0));
  const auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    EXPECT_EQ(cudaDeviceGetAttribute(&value, which, 0), cudaSuccess);
    return value;
  };
  EXPECT_EQ(attribute(cudaDevAttrWarpSize), 32);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(attribute(cudaDevAttrMaxThreadsPerBlock), properties.maxThreadsPerBlock);
  EXPECT_EQ(attribute(cudaDevAttrMultiProcessorCount), properties.multiProcessorCount);
  EXPECT_EQ(attribute(cudaDevAttrComputeCapabilityMajor), properties.major);
  EXPECT_EQ(attribute(cudaDevAttrComputeCapabilityMinor), properties.minor);
  EXPECT_EQ(attribute(cudaDevAttrMaxSharedMemoryPerBlock), static_cast<int>(properties.sharedMemPerBlock));
  EXPECT_EQ(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
            static_cast<int>(properties.sharedMemPerBlockOptin));
}

// Guide, "Shared Memory" of each compute capability: above 48 KiB only after cudaFuncSetAttribute().
TEST_F(LaunchesTest, DynamicSharedMemoryAboveTheLimitHasToBeAllowed) {
  cudaDeviceProp properties;
  CUDA_OK(cudaGetDeviceProperties(&properties, 0));
  const int limit = static_cast<int>(properties.sharedMemPerBlock);
  const int raised = static_cast<int>(properties.sharedMemPerBlockOptin);
  ASSERT_GT(raised, limit) << "else the test says nothing";
  const DeviceArray<int> result(1, -1);
  const auto run = [&](int bytes) {
    last_dynamic_word<<<1, 64, bytes>>>(result.data(), bytes / 4);
    return cudaGetLastError();
  };
  EXPECT_EQ(run(limit), cudaSuccess);
  EXPECT_EQ(result.value(), limit / 4 - 1);
  EXPECT_EQ(run(limit + 4), cudaErrorInvalidValue);
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  CUDA_OK(cudaFuncSetAttribute(last_dynamic_word<int>, attribute, raised));
  EXPECT_EQ(run(raised), cudaSuccess);
  EXPECT_EQ(result.value(), raised / 4 - 1);
  EXPECT_EQ(run(raised + 4), cudaErrorInvalidValue);
  EXPECT_CUDA_ERROR(cudaFuncSetAttribute(last_dynamic_word<int>, attribute, raised + 4),
                    cudaErrorInvalidValue);
  // The attribute applies to one kernel; another instance of the template keeps its limit.
  const DeviceArray<long long> other(1, 0);
  last_dynamic_word<<<1, 64, limit + 4>>>(other.data(), 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

// Guide, "Launch Bounds": a launch with more threads than __launch_bounds__ fails.
TEST_F(LaunchesTest, LaunchBoundsAreAPromise) {
  const DeviceArray<int> x(1, 0);
  at_most_64_threads<<<1, 65>>>(x.data());
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(x.value(), 0);
  at_most_64_threads<<<1, 64>>>(x.data());
  CUDA_OK(cudaGetLastError());
  EXPECT_EQ(x.value(), 1);
}

TEST_F(LaunchesTest, ArgumentsAreCopiedAtTheLaunch) {
  const DeviceArray<Point> result(1);
  const Stream stream;
  Point point{1, 2, {0.5, 0.25, 0.125}};
  Gate gate(stream);
  store_point<<<1, 1, 0, stream>>>(result.data(), point);
  point = {};
  gate.drain(stream);
  const Point stored = result.value();
  EXPECT_EQ(stored.x, 1);
  EXPECT_EQ(stored.y, 2);
  EXPECT_EQ(stored.weights[2], 0.125);
}

TEST_F(LaunchesTest, EachThreadHasItsOwnParameters) {
  constexpr int kThreads = 100;
  const DeviceArray<int> result(kThreads, -1);
  change_parameters<<<1, kThreads>>>(result.data(), 7, result.data() + kThreads);
  const std::vector<int> values = result.values();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(values[i], 7 + i);
}

TEST_F(LaunchesTest, ArgumentsAreConvertedToTheParameters) {
  const DeviceArray<int> result(4, -1);
  const short wide = -5;
  store_converted<<<1, 1>>>(result.data(), nullptr, wide, 2, 255);
  EXPECT_EQ(result.values(), (std::vector<int>{1, 1, 1, 255}));
  store_converted<<<1, 1>>>(result.data(), 0, wide, 3, 7);
  EXPECT_EQ(result.values(), (std::vector<int>{1, 1, 0, 7}));
}

TEST_F(LaunchesTest, KernelThroughAPointer) {
  const DeviceArray<int> x(1, 0);
  void (*kernel)(int*, int) = &set<int>;
  kernel<<<1, 1>>>(x.data(), 6);
  CUDA_OK(cudaGetLastError());
  EXPECT_EQ(x.value(), 6);
}

TEST_F(LaunchesTest, OccupancyFollowsTheBlockSize) {
  cudaDeviceProp properties;
  CUDA_OK(cudaGetDeviceProperties(&properties, 0));
  int small = 0, large = 0, heavy = 0;
  CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&small, set<int>, 64, 0));
  CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&large, set<int>, 1024, 0));
  CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&heavy, set<int>, 64, properties.sharedMemPerBlock));
  EXPECT_EQ(large, properties.maxThreadsPerMultiProcessor / 1024);
  EXPECT_GT(small, large);
  EXPECT_LT(heavy, small) << "shared memory limits it";
  EXPECT_GE(heavy, 1);
}

}  // namespace
}  // namespace semantics
