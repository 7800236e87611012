#include "overlap/gpu/signals.hpp"

#include <stdexcept>
#include <string>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/run_state.hpp"

namespace overlap {

Signals::Signals(Rank& rank, int count, Reach reach)
    : rank_(rank),
      count_(count),
      words_(rank, static_cast<std::size_t>(count), reach),
      raised_(static_cast<std::size_t>(rank.size() * count)),
      awaited_(static_cast<std::size_t>(count)) {
  for (std::atomic<std::uint32_t>& last : raised_) last = epoch_;
  const std::vector<std::uint32_t> words(static_cast<std::size_t>(count), epoch_);
  CUDA_CHECK(cudaMemcpy(words_.local(), words.data(), words_.bytes(), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaDeviceSynchronize());
  registration_.emplace(*this);
  rank.barrier();  // no peer raises a signal before that
}

// A stop must be able to open the words until no stream waits for them.
Signals::~Signals() { words_.settle(); }

Signals::Registration::Registration(Signals& signals) : signals_(signals) {
  const Rank& rank = signals.rank_;
  signals.rank_.run_state().add({rank.id(), rank.device(), signals.words_.local(), signals.count_, "signal",
                                 signals.awaited_.data(), signals.raised_.data()});
}

Signals::Registration::~Registration() { signals_.rank_.run_state().remove(signals_.awaited_.data()); }

void Signals::check(int i, cudaStream_t stream) const {
  if (rank_.stopping()) throw RunStopped();
  if (!begun_) throw std::logic_error("Signals: begin_call() comes first");
  if (i < 0 || i >= count_)
    throw std::out_of_range("Signals: there is no signal " + std::to_string(i) + " of " +
                            std::to_string(count_));
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
  if (capture != cudaStreamCaptureStatusNone)
    throw std::logic_error("Signals: a graph would replay the same epoch for ever");
}

void Signals::raise(int peer, int i, cudaStream_t stream) {
  check(i, stream);
  std::atomic<std::uint32_t>& last = raised_.at(static_cast<std::size_t>(peer * count_ + i));
  if (last == epoch_) {
    throw std::logic_error("Signals: signal " + std::to_string(i) + " of rank " + std::to_string(peer) +
                           " is raised twice in one call");
  }
  last = epoch_;
  CU_CHECK(cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(word(peer, i)), epoch_,
                                CU_STREAM_WRITE_VALUE_DEFAULT));
}

void Signals::await(int i, cudaStream_t stream) {
  check(i, stream);
  awaited_[static_cast<std::size_t>(i)] = epoch_;
  CU_CHECK(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word(rank_.id(), i)), epoch_,
                               CU_STREAM_WAIT_VALUE_GEQ));
}

}  // namespace overlap
