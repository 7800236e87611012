// GEMMs occupy SMs by tiles, in waves. These counts are exact in the model.
#include "blas.hpp"
#include "engine/model/machine.hpp"

namespace virtual_only {
namespace {

/// A GEMM with its memory, which stays uninitialised: the values do not matter.
class Prepared {
 public:
  Prepared(cudaStream_t stream, int m, int n, int k)
      : m_(m),
        n_(n),
        k_(k),
        blas_(new_blas(stream)),
        a_(device_room<__half>(std::size_t(m) * k)),
        b_(device_room<__half>(std::size_t(k) * n)),
        c_(device_room<__half>(std::size_t(m) * n)) {}
  void enqueue() const { require(multiply(blas_, m_, n_, k_, a_, b_, c_)); }

 private:
  int m_, n_, k_;
  cublasHandle_t blas_;
  __half *a_, *b_, *c_;
};

/// A machine of 132 SMs; a tile is 128 x 256.
class WavesTest : public VirtualTest {
 protected:
  static constexpr int kDepth = 32;
  void SetUp() override {
    VirtualTest::SetUp();
    vgpu::use_machine("h100-nvlink");
    machine = vgpu::load_machine("h100-nvlink");
    ASSERT_EQ(machine.multiprocessors, 132);
    ASSERT_EQ(machine.product_tile_rows, 128);
    ASSERT_EQ(machine.product_tile_columns, 256);
    prepare();
  }
  void prepare() {
    flag = pinned_word();
    stream = new_stream();
    other = new_stream();
  }

  /// A GEMM of `down` x `across` tiles.
  static Prepared tiles(cudaStream_t on, int down, int across, int depth = kDepth) {
    return {on, 128 * down, 256 * across, depth};
  }
  double tile_time(int depth = kDepth) const {
    return 2.0 * 128 * 256 * depth / (machine.product_rate_f16 / machine.multiprocessors);
  }
  /// Modelled ns between two events.
  static double between(cudaEvent_t start, cudaEvent_t stop) { return milliseconds(start, stop) * 1e6; }
  /// An event that completes when the following work has been enqueued, so that the host's time does not
  /// count.
  cudaEvent_t late_start() {
    const cudaEvent_t start = new_event();
    const Prepared delay = tiles(stream, 1, 1, 8192);
    delay.enqueue();
    require(cudaEventRecord(start, stream));
    return start;
  }
  /// Waves of the `launches` operations that `run` enqueues.
  template <class Run>
  double waves(int launches, Run run) {
    const cudaEvent_t start = late_start(), stop = new_event();
    run();
    require(cudaEventRecord(stop, stream));
    return (between(start, stop) - launches * machine.launch_ns) / tile_time();
  }
  double waves(const Prepared& product) {
    return waves(1, [&] { product.enqueue(); });
  }
  /// Occupies `multiprocessors` SMs, each with a block that waits, until release().
  void hold(int multiprocessors) {
    constexpr int kShared = 200 * 1024;
    *flag = 0;
    require(cudaFuncSetAttribute(await<int>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
    await<int><<<multiprocessors, 32, kShared, other>>>(flag);
    require(cudaGetLastError());
  }
  void release() {
    *flag = 1;
    require(cudaDeviceSynchronize());
  }

  vgpu::Machine machine;
  cudaStream_t stream = nullptr, other = nullptr;
  int* flag = nullptr;
};

constexpr double kExact = 1e-3;  // events return floats

TEST_F(WavesTest, TilesRunInWaves) {
  struct Tiles {
    int down, across, waves;
  };
  for (const Tiles& shape : {Tiles{1, 1, 1}, Tiles{11, 12, 1}, Tiles{19, 7, 2}, Tiles{32, 8, 2},
                             Tiles{22, 12, 2}, Tiles{53, 5, 3}}) {
    EXPECT_NEAR(waves(tiles(stream, shape.down, shape.across)), shape.waves, kExact)
        << shape.down * shape.across << " tiles";
  }
}

TEST_F(WavesTest, PartsOfTilesTakeAsLongAsWholeOnes) {
  const auto product = [&](int m, int n) { return waves(Prepared(stream, m, n, kDepth)); };
  EXPECT_NEAR(product(1, 1), 1, kExact);
  EXPECT_NEAR(product(128 * 131 + 1, 1), 1, kExact);
  EXPECT_NEAR(product(128 * 132 + 1, 1), 2, kExact);
  EXPECT_NEAR(product(1, 256 * 132), 1, kExact);
  EXPECT_NEAR(product(129, 256 * 66), 1, kExact);
  EXPECT_NEAR(product(129, 256 * 66 + 1), 2, kExact);
}

TEST_F(WavesTest, TimeGrowsWithTheDepth) {
  for (const int depth : {16, 160})
    EXPECT_NEAR(waves(tiles(stream, 1, 1, depth)), static_cast<double>(depth) / kDepth, kExact);
}

TEST_F(WavesTest, FloatInputsAreSlower) {
  float* data = device_words(1, 0.0f);
  const float one = 1;
  const cublasHandle_t blas = new_blas(stream);
  const double counted = waves(1, [&] {
    require(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, data, 1, data, 1, &one, data, 1));
  });
  EXPECT_NEAR(counted * kDepth, machine.product_rate_f16 / machine.product_rate_f32, 0.1);
}

// 4096 x 2048: 256 tiles. That is 1.94 waves on 132 SMs and 2.03 on 126.
TEST_F(WavesTest, OccupiedMultiprocessorsCostAWave) {
  const Prepared product = tiles(stream, 32, 8);
  EXPECT_NEAR(waves(product), 2, kExact);
  hold(4);
  EXPECT_NEAR(waves(product), 2, kExact) << "on 128";
  release();
  hold(6);
  EXPECT_NEAR(waves(product), 3, kExact) << "on 126";
  release();
  EXPECT_NEAR(waves(product), 2, kExact) << "on all again";
}

// 198 tiles: 1.5 waves.
TEST_F(WavesTest, ProductsOfTwoStreamsFillEachOthersPartialWave) {
  const Prepared first = tiles(stream, 18, 11), second = tiles(other, 18, 11);
  EXPECT_NEAR(waves(first), 2, kExact);
  const double in_a_row = waves(2, [&] {
    first.enqueue();
    first.enqueue();
  });
  EXPECT_NEAR(in_a_row, 4, kExact);
  const cudaEvent_t start = late_start(), first_stop = new_event(), second_stop = new_event();
  require(cudaStreamWaitEvent(other, start));
  first.enqueue();
  require(cudaEventRecord(first_stop, stream));
  second.enqueue();
  require(cudaEventRecord(second_stop, other));
  EXPECT_NEAR((between(start, first_stop) - machine.launch_ns) / tile_time(), 2, kExact);
  EXPECT_NEAR((between(start, second_stop) - machine.launch_ns) / tile_time(), 3, kExact);
}

// A kernel that arrives after a GEMM gets an SM when all tiles have started.
TEST_F(WavesTest, KernelsWaitForAFreeMultiprocessor) {
  int* word = device_words(1, 0);
  const auto kernel_ends = [&](int down, int across) {
    constexpr int kDeep = 128;
    const Prepared product = tiles(stream, down, across, kDeep);
    const cudaEvent_t start = late_start(), kernel = new_event();
    require(cudaStreamWaitEvent(other, start));
    product.enqueue();
    set<int><<<1, 1, 0, other>>>(word, 1);
    require(cudaEventRecord(kernel, other));
    return (between(start, kernel) - machine.launch_ns) / tile_time(kDeep);
  };
  EXPECT_LT(kernel_ends(1, 1), 0.1);
  EXPECT_NEAR(kernel_ends(11, 12), 1, 0.1);
  EXPECT_NEAR(kernel_ends(22, 7), 1, 0.1);
  EXPECT_NEAR(kernel_ends(22, 12), 2, 0.1);
}

TEST_F(WavesTest, BatchesAreTilesOfOneProduct) {
  const __half* a = halves(128 * kDepth);
  const __half* b = halves(256 * kDepth);
  __half* c = halves(std::size_t{133} * 128 * 256);
  const cublasHandle_t blas = new_blas(stream);
  const float one = 1, zero = 0;
  for (const int batch : {132, 133}) {
    const double counted = waves(1, [&] {
      require(cublasGemmStridedBatchedEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 128, 256, kDepth, &one, a,
                                         CUDA_R_16F, 128, 0, b, CUDA_R_16F, kDepth, 0, &zero, c, CUDA_R_16F,
                                         128, 128 * 256, batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    });
    EXPECT_NEAR(counted, batch - 131, kExact) << batch;
  }
}

TEST_F(WavesTest, DeadlockReportSaysThatTilesWait) {
  hold(132);
  Prepared(stream, 129, 1, 1).enqueue();
  expect_parts(deadlock_of(stream), {"deadlock", "cuBLAS product 129 x 1 x 1 (f16): 0 of 2 tiles started",
                                     "the others wait for a free multiprocessor"});
}

/// In random order, too, tiles find the free SMs and finish.
TEST_F(WavesTest, RandomSchedulesRunAllTiles) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    vgpu::reset();
    vgpu::use_machine("h100-nvlink");
    vgpu::use_schedule(seed);
    prepare();
    hold(131);
    const int m = 128 * 9;
    __half* c = halves(m);
    require(multiply(new_blas(stream), m, 1, 2, halves(2 * m, 1), halves(2, 3), c));
    require(cudaStreamSynchronize(stream));
    release();
    EXPECT_EQ(floats(c, m), std::vector<float>(m, 6));
  }
}

}  // namespace
}  // namespace virtual_only
