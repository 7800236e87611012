// Virtual NCCL's kernels: a collective occupies SMs, and for how long.
#include "blas.hpp"
#include "nccl_virtual_test.hpp"
#include "vgpu/timeline.hpp"

namespace virtual_only {
namespace {

class NcclOccupancyTest : public NcclTest {
 protected:
  /// Modelled milliseconds of the work that `enqueue` puts into a stream of GPU 0: alone, or beside a
  /// collective that occupies its SM until rank 1 arrives, which is after that work.
  template <class Enqueue>
  float time_beside(bool collective, cudaStream_t compute, Enqueue enqueue) {
    require(cudaSetDevice(0));
    if (collective) require(all_reduce(0, 1000));
    EXPECT_EQ(cudaStreamQuery(compute), cudaSuccess)
        << "the stream is empty; a query lets the collective begin";
    const float milliseconds = elapsed(compute, enqueue);
    if (collective) require(all_reduce(1, 1000));
    synchronize();
    return milliseconds;
  }
};

// 8 blocks of one SM each need a second wave beside a collective, which occupies one SM.
TEST_F(NcclOccupancyTest, ACollectiveTakesMultiprocessorsFromAKernel) {
  make_ranks(2);
  constexpr int kShared = 200 * 1024, kRounds = 2000;
  require(cudaFuncSetAttribute(work<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  const cudaStream_t compute = new_stream();
  const auto product = [&](int blocks, bool beside) {
    return time_beside(beside, compute, [&] {
      work<float><<<blocks, 32, kShared, compute>>>(nullptr, kRounds);
      require(cudaGetLastError());
    });
  };
  const float wave = product(8, false);
  EXPECT_GT(product(9, false), 1.7 * wave);
  EXPECT_NEAR(product(7, true), wave, 0.02 * wave);
  EXPECT_GT(product(8, true), 1.5 * wave);
}

// So do 8 tiles of a GEMM.
TEST_F(NcclOccupancyTest, ACollectiveTakesMultiprocessorsFromAProduct) {
  make_ranks(2);
  require(cudaSetDevice(0));
  const cudaStream_t compute = new_stream();
  const cublasHandle_t blas = new_blas(compute);
  constexpr int kTileRows = 64, kTileColumns = 128, kInner = 64;
  float* memory = device_words<float>(9 * kTileRows * (kInner + kTileColumns) + kInner * kTileColumns);
  const auto product = [&](int tiles, bool beside) {
    const int rows = tiles * kTileRows;
    const float one = 1, zero = 0;
    float *a = memory, *b = a + rows * kInner, *c = b + kInner * kTileColumns;
    return time_beside(beside, compute, [&] {
      require(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, rows, kTileColumns, kInner, &one, a, rows, b,
                          kInner, &zero, c, rows));
    });
  };
  const float wave = product(8, false);
  EXPECT_GT(product(9, false), 1.5 * wave);
  EXPECT_NEAR(product(7, true), wave, 0.05 * wave);
  EXPECT_GT(product(8, true), 1.5 * wave);
}

// Run time of its channels, including their wait for other ranks: it occupies SMs all that time.
TEST_F(NcclOccupancyTest, TimelineShowsHowLongMultiprocessorsAreTaken) {
  make_ranks(2);
  vgpu::record_timeline();
  set<<<1, 1, 0, streams[1]>>>(data[1], 3);
  require(all_reduce(0, 10));
  for (int i = 0; i < 100; ++i) require(cudaMemsetAsync(data[1] + kRoom / 2, 0, 4, streams[1]));
  require(all_reduce(1, 10));
  synchronize();
  std::vector<vgpu::TimelineEntry> calls;
  for (const vgpu::TimelineEntry& entry : vgpu::timeline()) {
    if (entry.work.name == "ncclAllReduce of 40 bytes") calls.push_back(entry);
  }
  ASSERT_EQ(calls.size(), 2u);
  if (calls[0].device == 1) std::swap(calls[0], calls[1]);
  EXPECT_EQ(calls[0].device, 0);
  EXPECT_EQ(calls[1].device, 1);
  EXPECT_EQ(calls[0].work.kind, "kernel");
  EXPECT_LT(calls[0].begin, calls[1].begin);
  EXPECT_EQ(calls[0].end, calls[1].end);
}

}  // namespace
}  // namespace virtual_only
