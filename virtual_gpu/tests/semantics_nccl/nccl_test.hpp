// Shared by the scenarios of NCCL. They use only CUDA and NCCL, so that the same sources run on real and on
// virtual GPUs, and rely only on promises of the NCCL User Guide ("Guide"). One host thread drives all GPUs.
#pragma once

#include <nccl.h>

#include <map>
#include <memory>

#include "gpu_test.hpp"
#include "process.hpp"

/// Lets GoogleTest print errors by their text.
inline void PrintTo(ncclResult_t result, std::ostream* out) { *out << ncclGetErrorString(result); }

#define NCCL_OK(call) ASSERT_EQ(call, ncclSuccess)

namespace semantics {

inline void require(ncclResult_t result) {
  if (result != ncclSuccess) throw std::runtime_error(ncclGetLastError(nullptr));
}

/// Uninitialised memory of a device; only T's size matters.
class Bytes {
 public:
  Bytes(int device, std::size_t bytes) : bytes_(bytes) {
    const OnDevice on(device);
    require(cudaMalloc(&data_, std::max<std::size_t>(bytes, 1)));
  }
  /// Memory with a copy of the values.
  template <class T>
  Bytes(int device, const std::vector<T>& values) : Bytes(device, values.size() * sizeof(T)) {
    const OnDevice on(device);
    put(values);
  }
  Bytes(Bytes&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Bytes& operator=(Bytes&&) = delete;
  ~Bytes() {
    EXPECT_EQ(cudaFree(data_), cudaSuccess);  // null after a move
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t size() const { return bytes_; }
  /// Both return when the copy is done.
  template <class T>
  void put(const std::vector<T>& values) const {
    const std::size_t bytes = values.size() * sizeof(T);
    if (bytes > 0) require(cudaMemcpy(data_, values.data(), bytes, cudaMemcpyHostToDevice));
    require(cudaDeviceSynchronize());  // a copy from pageable memory may be pending
  }
  /// Fills it with values that no test computes.
  void poison() const {
    require(cudaMemset(data_, 0x5a, bytes_));
    require(cudaDeviceSynchronize());
  }
  template <class T>
  std::vector<T> get(std::size_t count) const {
    std::vector<T> values(count);
    if (count > 0) require(cudaMemcpy(values.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// Communicators of GPUs 0 ... ranks - 1 in this order, and a non-blocking stream on each.
class Communicators {
 public:
  explicit Communicators(int ranks) : communicators_(ranks) {
    require(ncclCommInitAll(communicators_.data(), ranks, nullptr));
    for (int rank = 0; rank < ranks; ++rank) {
      const OnDevice on(rank);
      streams_.push_back(std::make_unique<Stream>());
    }
  }
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  ~Communicators() {
    for (ncclComm_t communicator : communicators_) EXPECT_EQ(ncclCommDestroy(communicator), ncclSuccess);
  }

  int size() const { return static_cast<int>(communicators_.size()); }
  ncclComm_t operator[](int rank) const { return communicators_[rank]; }
  cudaStream_t stream(int rank) const { return *streams_[rank]; }

 private:
  std::vector<ncclComm_t> communicators_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

/// The part of Communicators that a test uses. All are idle before and after it.
class Ranks {
 public:
  explicit Ranks(int ranks) : all_(keeps_handles ? kept(ranks) : std::make_shared<Communicators>(ranks)) {}
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() { synchronize(); }

  int size() const { return all_->size(); }
  ncclComm_t communicator(int rank) const { return (*all_)[rank]; }
  cudaStream_t stream(int rank) const { return all_->stream(rank); }
  /// Calls `call(rank, communicator, stream)` for all ranks in one group.
  template <class Call>
  void together(Call call) const {
    require(ncclGroupStart());
    for (int rank = 0; rank < size(); ++rank) require(call(rank, communicator(rank), stream(rank)));
    require(ncclGroupEnd());
  }
  void synchronize() const {
    for (int rank = 0; rank < size(); ++rank) require(cudaStreamSynchronize(stream(rank)));
  }

 private:
  /// This process's communicators, kept because real GPUs take a second and more to make them.
  static std::shared_ptr<Communicators> kept(int ranks) {
    static auto* const all =
        new std::map<int, std::shared_ptr<Communicators>>;  // leaked: the driver ends first
    std::shared_ptr<Communicators>& these = (*all)[ranks];
    if (!these) these = std::make_shared<Communicators>(ranks);
    return these;
  }

  std::shared_ptr<const Communicators> all_;
};

/// For each number of GPUs that is available: 1, 2, 3, 4, 8.
class RanksTest : public GpuTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && devices_ < GetParam()) GTEST_SKIP() << "needs " << GetParam() << " GPUs";
  }
  int ranks() const { return GetParam(); }
};
/// `name`: a test's suite.
#define FOR_ALL_RANKS(name)                        \
  INSTANTIATE_TEST_SUITE_P(                        \
      Ranks, name, testing::Values(1, 2, 3, 4, 8), \
      [](const testing::TestParamInfo<int>& info) { return std::to_string(info.param) + "_ranks"; })

/// A label of rank and index.
inline int label(int rank, std::size_t index) { return rank * 1000000 + static_cast<int>(index); }
inline std::vector<int> labels(int rank, std::size_t count) {
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = label(rank, i);
  return values;
}

inline constexpr std::size_t kCounts[] = {0, 1, 3, 1000, 4097};

}  // namespace semantics
