// Several GPUs: peer access, copies between GPUs, kernels that synchronise by a flag. Guide, "Multi-Device
// System"; API, "Peer Device Memory Access".
#include <memory>
#include <numeric>
#include <optional>

#include "peer_access.hpp"

namespace semantics {
namespace {

class PeersTest : public TwoGpusTest {
 protected:
  void SetUp() override {
    TwoGpusTest::SetUp();
    if (IsSkipped()) return;
    int forth = 0, back = 0;
    require(cudaDeviceCanAccessPeer(&forth, 0, 1));
    require(cudaDeviceCanAccessPeer(&back, 1, 0));
    if (!forth || !back) GTEST_SKIP() << "needs 2 GPUs that can access each other's memory";
  }
};

__global__ void scale(int* to, const int* from, int count, int factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) to[i] = from[i] * factor;
}

/// Writes a value to another GPU's memory, then raises a flag.
template <class Word>
__global__ void put_and_raise(Word* data, Word* flag, Word value) {
  *data = value;
  Flag<Word>(*flag).store(1, cuda::memory_order_release);
}
template <class Word>
__global__ void await_and_get(Word* flag, const Word* data, Word* result) {
  *result = await(flag) ? *data : -1;
}

class PeerCopyTest : public PeersTest, public testing::WithParamInterface<bool> {};

TEST_P(PeerCopyTest, CopiesBetweenGpus) {
  std::optional<PeerAccess> forth, back;
  if (GetParam()) {
    forth.emplace(0, 1);
    back.emplace(1, 0);
  }
  std::vector<int> values(100000);
  std::iota(values.begin(), values.end(), 0);
  const DeviceArray<int> here(values);
  CUDA_OK(cudaSetDevice(1));
  const DeviceArray<int> there(values.size(), 0), copy(values.size(), 0);
  const Stream stream;
  CUDA_OK(cudaMemcpyPeerAsync(there.data(), 1, here.data(), 0, here.bytes(), stream));
  CUDA_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(there.values(), values) << "pulled";
  CUDA_OK(cudaMemcpy(copy.data(), here.data(), here.bytes(), cudaMemcpyDefault));
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(copy.values(), values) << "with the kind inferred";
  CUDA_OK(cudaMemset(there.data(), 0, there.bytes()));
  CUDA_OK(cudaDeviceSynchronize());
  CUDA_OK(cudaSetDevice(0));
  const Stream pushing;
  CUDA_OK(cudaMemcpyPeerAsync(there.data(), 1, here.data(), 0, here.bytes(), pushing));
  CUDA_OK(cudaStreamSynchronize(pushing));
  EXPECT_EQ(there.values(), values) << "pushed";
}
INSTANTIATE_TEST_SUITE_P(Access, PeerCopyTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "with_access" : "without_access"; });

// API, cudaMemcpyPeer: "serialized with respect [to] all pending and future asynchronous work" of both
// devices.
TEST_F(PeersTest, SynchronousPeerCopyIsOrderedOnBothGpus) {
  const DeviceArray<int> here(1, 0);
  CUDA_OK(cudaSetDevice(1));
  const DeviceArray<int> there(1, 0), result(1, 0);
  const Stream other(cudaStreamDefault);
  CUDA_OK(cudaSetDevice(0));
  set_late<<<1, 1>>>(here.data(), 1);
  CUDA_OK(cudaSetDevice(1));
  CUDA_OK(cudaMemcpyPeer(there.data(), 1, here.data(), 0, sizeof(int)));
  copy_one<<<1, 1, 0, other>>>(result.data(), there.data());
  CUDA_OK(cudaSetDevice(0));
  set<<<1, 1>>>(here.data(), 2);
  CUDA_OK(cudaSetDevice(1));
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(result.value(), 1);
}

TEST_F(PeersTest, KernelsReadAndWritePeerMemory) {
  const PeerAccess access(0, 1);
  CUDA_OK(cudaSetDevice(1));
  const DeviceArray<int> source(1000, 5), destination(1000, 0);
  CUDA_OK(cudaSetDevice(0));
  scale<<<4, 256>>>(destination.data(), source.data(), 1000, 3);
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(destination.values(), std::vector<int>(1000, 15));
}

TEST_F(PeersTest, MemoryMadeAfterwardsIsAccessibleToo) {
  const auto before = made_on(1, [] { return DeviceArray<int>(1, 1); });
  const PeerAccess access(0, 1);
  const auto after = made_on(1, [] { return DeviceArray<int>(1, 0); });
  copy_one<<<1, 1>>>(after.data(), before.data());
  CUDA_OK(cudaDeviceSynchronize());
  EXPECT_EQ(after.value(), 1);
}

TEST_F(PeersTest, KernelsOfTwoGpusMeetOverAFlag) {
  const PeerAccess access(1, 0);
  const DeviceArray<int> mailbox(2, 0), result(1, 0);
  const Stream waiting;
  const auto raising = made_on(1, [] { return Stream(); });
  await_and_get<<<1, 1, 0, waiting>>>(mailbox.data(), mailbox.data() + 1, result.data());
  CUDA_OK(cudaSetDevice(1));
  put_and_raise<<<1, 1, 0, raising>>>(mailbox.data() + 1, mailbox.data(), 42);
  CUDA_OK(cudaGetLastError());
  CUDA_OK(cudaStreamSynchronize(raising));
  CUDA_OK(cudaSetDevice(0));
  CUDA_OK(cudaStreamSynchronize(waiting));
  EXPECT_EQ(result.value(), 42);
}

TEST_F(PeersTest, AccessIsEnabledAndDisabledOnce) {
  EXPECT_CUDA_ERROR(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  {
    const PeerAccess access(0, 1);
    EXPECT_CUDA_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  }
  EXPECT_CUDA_ERROR(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
}

// API, cudaDeviceEnablePeerAccess: "access granted by this call is unidirectional".
TEST_F(PeersTest, AccessHasOneDirection) {
  const PeerAccess access(0, 1);
  CUDA_OK(cudaSetDevice(1));
  EXPECT_CUDA_ERROR(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
  const PeerAccess back(1, 0);  // throws if access is already enabled
}

TEST_F(PeersTest, WrongDevicesAndFlagsAreRefused) {
  // A device's access to itself: the reference says cudaErrorInvalidDevice, CUDA 13 returns
  // cudaErrorPeerAccessUnsupported.
  const cudaError_t itself = cudaDeviceEnablePeerAccess(0, 0);
  EXPECT_TRUE(itself == cudaErrorInvalidDevice || itself == cudaErrorPeerAccessUnsupported) << itself;
  EXPECT_EQ(cudaGetLastError(), itself);
  EXPECT_CUDA_ERROR(cudaDeviceEnablePeerAccess(devices_, 0), cudaErrorInvalidDevice);
  EXPECT_CUDA_ERROR(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
  EXPECT_CUDA_ERROR(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  int can_access = 1;
  CUDA_OK(cudaDeviceCanAccessPeer(&can_access, 0, 0));
  EXPECT_EQ(can_access, 0) << "a GPU is not its own peer";
  EXPECT_CUDA_ERROR(cudaDeviceCanAccessPeer(&can_access, 0, devices_), cudaErrorInvalidDevice);
  const DeviceArray<int> x(1, 3);
  EXPECT_CUDA_ERROR(cudaMemcpyPeer(x.data(), devices_, x.data(), 0, 4), cudaErrorInvalidDevice);
}

// Each GPU passes a value to the next one, ordered by events alone; GPU 0 receives it at the end.
TEST_F(TwoGpusTest, RingOfPeerCopies) {
  std::vector<std::unique_ptr<DeviceArray<int>>> slots;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Event>> sent;
  for (int device = 0; device < devices_; ++device) {
    CUDA_OK(cudaSetDevice(device));
    slots.push_back(std::make_unique<DeviceArray<int>>(1, 0));
    streams.push_back(std::make_unique<Stream>());
    sent.push_back(std::make_unique<Event>());
  }
  for (int device = 0; device < devices_; ++device) {
    const int next = (device + 1) % devices_;
    CUDA_OK(cudaSetDevice(device));
    if (device > 0) require(cudaStreamWaitEvent(*streams[device], *sent[device - 1], 0));
    append<<<1, 1, 0, *streams[device]>>>(slots[device]->data(), device + 1);
    CUDA_OK(cudaMemcpyPeerAsync(slots[next]->data(), next, slots[device]->data(), device, sizeof(int),
                                *streams[device]));
    CUDA_OK(cudaEventRecord(*sent[device], *streams[device]));
  }
  CUDA_OK(cudaEventSynchronize(*sent.back()));
  int expected = 0;
  for (int device = 0; device < devices_; ++device) expected = expected * 10 + device + 1;
  EXPECT_EQ(slots[0]->value(), expected);
}

}  // namespace
}  // namespace semantics
