// Pushes and pulls: a push is a copy in a stream of the GPU that holds the source, a pull in a stream of
// another GPU. For both CUDA promises only the order of streams and events.
//
// Real GPUs (CUDA 13.0 on four H200) queue all pulls from one GPU on that GPU in the order in which they were
// enqueued. A pull that still waits for an event or a signal in its own stream delays all later pulls from
// that GPU, in any stream of any GPU. Pushes, pulls from other GPUs and copies within a GPU are not delayed.
// Therefore the tests only report whether a pull is delayed, and expect that the others are not.
#include <cuda.h>

#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "peer_access.hpp"

namespace semantics {
namespace {

constexpr std::size_t kWords = 1024;

/// A copy from one GPU to another in a stream of GPU `stream_of`.
struct Copy {
  int from, to, stream_of;
};

struct Scenario {
  const char* name;
  Copy held, later;
  bool passes;  // the later copy does not wait for the first one
};
/// Lets GoogleTest print parameters by name.
void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

enum class Hold { kEvent, kSignal };
void PrintTo(Hold hold, std::ostream* out) { *out << (hold == Hold::kEvent ? "event" : "signal"); }

/// A copy with its memory and its stream; its source holds `value`, its destination another value.
class PreparedCopy {
 public:
  PreparedCopy(const Copy& copy, int value) : gpu_(copy.stream_of) {
    require(cudaSetDevice(copy.from));
    from_.emplace_back(std::vector<int>(kWords, value));
    require(cudaSetDevice(copy.to));
    to_.emplace_back(kWords, 0);
    require(cudaSetDevice(gpu_));
    stream_.emplace_back();
    event_.emplace_back(cudaEventDisableTiming);
    enqueue();  // the first copy between two GPUs sets things up; do that now
    require(cudaStreamSynchronize(stream()));
    require(cudaMemsetAsync(to_.front().data(), 0, to_.front().bytes(), stream()));
    require(cudaStreamSynchronize(stream()));
  }
  void enqueue() {
    require(cudaSetDevice(gpu_));
    require(cudaMemcpyAsync(to_.front().data(), from_.front().data(), from_.front().bytes(),
                            cudaMemcpyDefault, stream()));
  }
  /// True if the stream finishes within about 50 ms.
  bool is_done_soon() {
    for (int i = 0; i < 500; ++i) {
      const cudaError_t state = cudaStreamQuery(stream());
      if (state == cudaSuccess) return true;
      if (state != cudaErrorNotReady) require(state);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return false;
  }
  std::vector<int> result() {
    require(cudaStreamSynchronize(stream()));
    return to_.front().values();
  }
  int gpu() const { return gpu_; }
  cudaStream_t stream() { return stream_.front(); }
  cudaEvent_t event() { return event_.front(); }

 private:
  int gpu_;
  std::deque<DeviceArray<int>> from_, to_;  // a pair for each copy, on different GPUs
  std::deque<Stream> stream_;
  std::deque<Event> event_;
};

class PullsTest : public GpuTest, public testing::WithParamInterface<std::tuple<Hold, Scenario>> {
 protected:
  static constexpr int kGpus = 3;
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (devices_ < kGpus) GTEST_SKIP() << "needs 3 GPUs";
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      for (int peer = 0; peer < kGpus; ++peer) {
        int possible = 1;
        if (peer != gpu) require(cudaDeviceCanAccessPeer(&possible, gpu, peer));
        if (!possible) GTEST_SKIP() << "needs 3 GPUs that can access each other's memory";
      }
    }
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      for (int peer = 0; peer < kGpus; ++peer) {
        if (peer != gpu) access_.emplace_back(gpu, peer);
      }
    }
  }
  void TearDown() override {
    if (devices_ > 0) require(cudaSetDevice(0));
    GpuTest::TearDown();
  }

 private:
  std::deque<PeerAccess> access_;
};

TEST_P(PullsTest, AHeldCopyHoldsUpAtMostPullsFromItsGpu) {
  const auto& [hold, scenario] = GetParam();
  PreparedCopy held(scenario.held, 1), later(scenario.later, 2);
  CUDA_OK(cudaSetDevice(held.gpu()));
  const Stream closed;
  PinnedArray<unsigned> signal(1, 0u);
  {
    Gate gate;  // its destructor opens it in any case
    struct Raise {
      unsigned& word;
      ~Raise() { Flag<unsigned>(word).store(1, cuda::memory_order_release); }
    } raise{signal[0]};
    if (hold == Hold::kEvent) {
      gate.close(closed);
      CUDA_OK(cudaEventRecord(held.event(), closed));
      CUDA_OK(cudaStreamWaitEvent(held.stream(), held.event()));
    } else {
      ASSERT_EQ(cuStreamWaitValue32(held.stream(), reinterpret_cast<CUdeviceptr>(signal.data()), 1,
                                    CU_STREAM_WAIT_VALUE_GEQ),
                CUDA_SUCCESS);
    }
    held.enqueue();
    later.enqueue();
    const bool passed = later.is_done_soon();
    EXPECT_EQ(cudaStreamQuery(held.stream()), cudaErrorNotReady);
    if (scenario.passes) {
      EXPECT_TRUE(passed);
    } else {
      RecordProperty("later_pull", passed ? "passes" : "is held up");
    }
  }
  EXPECT_EQ(later.result(), std::vector<int>(kWords, 2));
  EXPECT_EQ(held.result(), std::vector<int>(kWords, 1));
}

const Scenario kScenarios[] = {
    {"PullByAnotherGpu", {2, 0, 0}, {2, 1, 1}, false},
    {"PullOnAnotherStream", {2, 0, 0}, {2, 0, 0}, false},
    {"CopyByAThirdGpu", {2, 0, 1}, {2, 0, 0}, false},
    {"PullFromAnotherGpu", {2, 0, 0}, {1, 0, 0}, true},
    {"PullInTheOtherDirection", {2, 0, 0}, {0, 2, 2}, true},
    {"PushToTheSameGpu", {2, 0, 0}, {2, 0, 2}, true},
    {"PushToAnotherGpu", {2, 0, 0}, {2, 1, 2}, true},
    {"PushIntoTheGpu", {2, 0, 0}, {1, 2, 1}, true},
    {"PushBehindAPush", {2, 0, 2}, {2, 1, 2}, true},
    {"PullBehindAPush", {2, 0, 2}, {2, 1, 1}, true},
    {"PushIntoTheSameGpu", {0, 2, 0}, {1, 2, 1}, true},
};
INSTANTIATE_TEST_SUITE_P(Gpus, PullsTest,
                         testing::Combine(testing::Values(Hold::kEvent, Hold::kSignal),
                                          testing::ValuesIn(kScenarios)),
                         [](const auto& test) {
                           return std::string(std::get<1>(test.param).name) +
                                  (std::get<0>(test.param) == Hold::kEvent ? "ByEvent" : "BySignal");
                         });

}  // namespace
}  // namespace semantics
