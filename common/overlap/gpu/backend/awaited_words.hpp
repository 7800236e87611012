// The words that streams of real GPUs wait for, and how a stop opens them.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "overlap/gpu/kept_handles.hpp"
#include "overlap/gpu/run_state.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// The awaited words of a run.
class AwaitedWords {
 public:
  AwaitedWords(int ranks, int devices)
      : devices_(devices),
        seen_(static_cast<std::size_t>(devices) + 1),
        sets_(static_cast<std::size_t>(ranks)) {}

  /// Before all streams of the ranks: once all hardware queues hold waits, a write on a stream made later
  /// would never run. Kept ones are older than all streams that are kept.
  void make_streams() {
    for (int device = 0; device < devices_; ++device) {
      std::optional<Stream> kept = kept_handles().rescue.take(device);
      rescue_.push_back(kept ? std::move(*kept) : Stream(device));
    }
  }
  void keep_streams() {
    for (Stream& stream : rescue_) kept_handles().rescue.give_back(stream.device(), std::move(stream));
  }

  void add(const SignalWords& words, int rank_here) {
    const std::lock_guard lock(mutex_);
    words_.push_back(words);
    // Signals are made by all ranks together: each rank's nth ones belong together.
    if (words.raised != nullptr) words_.back().set = sets_[static_cast<std::size_t>(rank_here)]++;
  }
  void remove(const std::atomic<std::uint32_t>* awaited) {
    const std::lock_guard lock(mutex_);
    std::erase_if(words_, [&](const SignalWords& known) { return known.awaited == awaited; });
  }

  /// Opens the words for which each GPU waits, from another GPU, all at the same time: a GPU whose calls are
  /// blocked by a call that waits for it continues once its words are opened, and then opens others.
  void open() {
    const std::lock_guard lock(mutex_);
    std::vector<std::thread> openers;
    for (int device = SignalWords::kPinned; device < devices_; ++device)
      openers.emplace_back([this, device] { open(device); });
    for (std::thread& opener : openers) opener.join();
  }

  /// What open() has found so far: a line for each wait.
  std::string waits() const {
    const std::lock_guard lock(text_);
    return waits_;
  }

 private:
  static constexpr auto kLookPatience = std::chrono::milliseconds(200);  // a GPU may hang

  /// The word's value, read by a stream that waits for nothing; none if the GPU does not respond. The stream
  /// is one of the word's own GPU: enqueued on another one, the copy would take its turn behind all pulls
  /// from this GPU (see PeerBuffer), one of which may be what hangs.
  std::optional<std::uint32_t> look(const SignalWords& words, int i, std::uint32_t* seen) {
    if (words.device == SignalWords::kPinned) return __atomic_load_n(words.words + i, __ATOMIC_ACQUIRE);
    const Stream& stream = rescue_[static_cast<std::size_t>(words.device)];
    cudaSetDevice(stream.device());
    if (cudaMemcpyAsync(seen, words.words + i, sizeof(std::uint32_t), cudaMemcpyDefault, stream) !=
        cudaSuccess)
      return std::nullopt;
    return finished(stream) ? std::optional(*seen) : std::nullopt;
  }

  /// A stream that reaches the GPU's memory and does not depend on its streams: a stream of another GPU, if
  /// there is one.
  cudaStream_t rescue_stream(int device) {
    const Stream& stream = rescue_[static_cast<std::size_t>((device + 1) % devices_)];
    cudaSetDevice(stream.device());
    return stream;
  }

  static bool finished(cudaStream_t stream) {
    const auto until = std::chrono::steady_clock::now() + kLookPatience;
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  /// Opens the words in the memory of that GPU, and records the ranks that wait for them.
  void open(int device) {
    std::uint32_t* seen = seen_.data() + (device + 1);
    for (const SignalWords& words : words_) {
      if (words.device != device) continue;
      for (int i = 0; i < words.count; ++i) {
        const std::uint32_t awaited = words.awaited[i];
        const auto value = look(words, i, seen);
        if (awaited != 0 && (!value || static_cast<std::int32_t>(*value - awaited) < 0))
          note_wait(words, i, value);
        const std::uint32_t open = awaited + kOpen;
        if (device == SignalWords::kPinned) {
          __atomic_store_n(words.words + i, open, __ATOMIC_RELEASE);
        } else {
          cuStreamWriteValue32(rescue_stream(device), reinterpret_cast<CUdeviceptr>(words.words + i), open,
                               CU_STREAM_WRITE_VALUE_DEFAULT);
        }
      }
    }
    if (device != SignalWords::kPinned) finished(rescue_stream(device));
  }

  void note_wait(const SignalWords& words, int i, const std::optional<std::uint32_t>& seen) {
    const std::lock_guard lock(text_);
    waits_ += "  rank " + std::to_string(words.rank) + " waits for " + words.name + " " + std::to_string(i) +
              ": expected " + std::to_string(words.awaited[i]) + ", seen " +
              (seen ? std::to_string(*seen) : "nothing") + raised_by(words, i) + "\n";
  }

  /// The rank that raises the word, and the position of its host; "" if no rank has raised it.
  std::string raised_by(const SignalWords& words, int i) const {
    for (const SignalWords& raiser : words_) {
      if (raiser.raised == nullptr || words.raised == nullptr || raiser.set != words.set) continue;
      const std::uint32_t raised = raiser.raised[words.rank * words.count + i];
      if (raised == 0) continue;
      return " (rank " + std::to_string(raiser.rank) + " raises it; its host has enqueued " +
             std::to_string(raised) + ")";
    }
    return "";
  }

  int devices_;
  PinnedBuffer<std::uint32_t> seen_;  // by GPU, the pinned words first
  std::vector<Stream> rescue_;        // by GPU
  std::mutex mutex_;                  // of what follows, but for waits_
  std::vector<SignalWords> words_;
  std::vector<int> sets_;  // number of Signals that a rank has made
  mutable std::mutex text_;
  std::string waits_;
};

}  // namespace overlap
