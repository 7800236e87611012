// Ranks on real GPUs: one thread of the operating system each. Stopping a run is the difficult part: GPUs
// that wait for each other never give up by themselves, so everything that they may wait for is opened or
// aborted.
#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "overlap/gpu/backend/awaited_words.hpp"
#include "overlap/gpu/backend/sticky_errors.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/kept_handles.hpp"
#include "overlap/gpu/run_state.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 5s;         // for the ranks to join after a stop
constexpr auto kPatienceToLeave = 3s;  // shorter: if others hang, the rank that failed can still say why

/// Destroys all communicators at the same time, each on a thread of its own as ranks do, because in NCCL each
/// may wait for the others.
void destroy(const std::vector<ncclComm*>& communicators) {
  std::vector<std::thread> threads;
  for (ncclComm* communicator : communicators)
    threads.emplace_back([communicator] { ncclCommDestroy(communicator); });
  for (std::thread& thread : threads) thread.join();
}

class CudaRunState;
thread_local CudaRunState* state_of_thread = nullptr;
thread_local int rank_of_thread = -1;
/// The state of the current run, for the watchdog.
struct Active {
  std::mutex mutex;
  CudaRunState* run_state = nullptr;
};
Active& active() {
  static Active instance;
  return instance;
}

class CudaRunState final : public RunState {
 public:
  CudaRunState(int size, int devices)
      : size_(size),
        devices_(devices),
        abort_flag_(1),
        doing_(static_cast<std::size_t>(size)),
        ended_(static_cast<std::size_t>(size)),
        left_(static_cast<std::size_t>(size)),
        words_(size, devices) {
    for (auto& doing : doing_) doing = "";
    *abort_flag_.data() = 0;
    // Communicators have streams of their own, which are not counted here, and ranks that share a GPU may
    // need all but a few of its queues.
    if (shares_gpu()) {
      for (const auto& set : kept_handles().communicators.take_all()) destroy(set);
    }
    words_.make_streams();
    const std::lock_guard lock(active().mutex);
    active().run_state = this;
  }
  ~CudaRunState() override {
    if (stopping_) {
      drop_idle_handles();  // the rescue streams of the next run must not be younger than other streams
    } else {
      words_.keep_streams();
    }
    const std::lock_guard lock(active().mutex);
    active().run_state = nullptr;
  }

  void run(const std::function<void(int)>& body) override {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < size_; ++rank) {
      ranks.emplace_back([this, &body, rank] {
        state_of_thread = this;
        rank_of_thread = rank;
        body(rank);
        const std::lock_guard lock(mutex_);
        ++home_;
        left_[static_cast<std::size_t>(rank)] = true;
        changed_.notify_all();
      });
    }
    {
      std::unique_lock lock(mutex_);
      const auto all_home = [this] { return home_ == size_; };
      serve(lock, [&] { return all_home() || stopping_; });
      if (!changed_.wait_for(lock, kPatience, all_home)) give_up("the other ranks did not stop");
    }
    for (std::thread& rank : ranks) rank.join();
    if (opener_.joinable()) opener_.join();
    if (!stopping_) keep_for_later();
    if (reason_.empty()) return;
    std::fputs(words_.waits().c_str(), stderr);
    throw std::runtime_error(reason_);
  }

  bool barrier(int rank) override {
    std::unique_lock lock(mutex_);
    const std::uint64_t generation = generation_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++generation_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return stopping_ || generation_ != generation || home_ > 0; });
    if (generation_ == generation && home_ > 0 && !stopping_) {
      lock.unlock();
      stop("rank " + std::to_string(first + rank) + " waits at a barrier, but another one has ended");
    }
    return !stopping_;
  }

  void on_main_thread(const std::function<void()>& call) override {
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    handed_over_ = &call;
    changed_.notify_all();
    changed_.wait(lock, [this] { return handed_over_ == nullptr; });
  }

  void stop(int rank) override {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      stopping_ = true;
      stopped_at_ = std::chrono::steady_clock::now();
      culprit = rank;
      __atomic_store_n(abort_flag_.data(), 1u, __ATOMIC_RELEASE);
      changed_.notify_all();
      opener_ = std::thread([this] { open_everything(); });
    }
  }
  void stop(const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) reason_ = reason;
    }
    stop(-1);
  }

  void stop_if_unwinding(int rank) noexcept override {
    const bool unwinding = std::uncaught_exceptions() > 0;
    if (unwinding) stop(rank);
    if (!stopping_) return;
    {
      // A call that frees memory waits for the GPU, and blocks the calls that open the GPU's words.
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kPatience, [this] { return opened_; });
    }
    if (unwinding) leave(rank);
  }
  void leave(int rank) noexcept override {
    cudaDeviceSynchronize();  // an error is the rank's own: its next call says so
    std::unique_lock lock(mutex_);
    left_[static_cast<std::size_t>(rank)] = true;
    changed_.notify_all();
    changed_.wait_until(lock, stopped_at_ + kPatienceToLeave,
                        [this] { return std::ranges::count(left_, false) == 0; });
  }
  bool stopping() const override { return stopping_; }
  unsigned* abort_flag() override { return abort_flag_.data(); }

  void failed(int rank, const std::exception_ptr& error) override {
    std::unique_lock lock(mutex_);
    if (rank != culprit) return;
    reason_of_culprit_ = "rank " + std::to_string(first + rank) + ": " + sentence_of(error);
    if (is_sticky(error)) give_up("its GPU can do nothing more after that");
  }

  void waits_for(int rank, const char* what) override { doing_[static_cast<std::size_t>(rank)] = what; }

  void add(const SignalWords& words) override { words_.add(words, words.rank - first); }
  void remove(const std::atomic<std::uint32_t>* awaited) override { words_.remove(awaited); }
  void add(ncclComm* communicator) override {
    const std::lock_guard lock(registry_);
    communicators_.push_back(communicator);
  }
  bool remove(ncclComm* communicator) override {
    const std::lock_guard lock(registry_);
    return std::erase(communicators_, communicator) > 0;
  }

  bool keep(int rank, std::unique_ptr<RankHandles>& handles) override {
    if (!stopping_) {
      waits_for(rank, "its GPU, at its end");
      // Ranks that share a GPU wait for their own streams only: other streams may wait for work that is not
      // enqueued yet.
      const bool idle = shares_gpu() ? handles->wait()
                                     : cudaSetDevice(handles->device()) == cudaSuccess &&
                                           cudaDeviceSynchronize() == cudaSuccess;
      if (!idle) all_idle_ = false;
      waits_for(rank, "");
    }
    if (stopping_) {
      stop_if_unwinding(rank);  // nothing may be destroyed before all words are opened
      return false;
    }
    ended_[static_cast<std::size_t>(rank)] = std::move(handles);
    return true;
  }

  void take_communicators(bool copy_engines) override {
    const std::lock_guard lock(registry_);
    if (stopping_) return;  // an abort may be over already, and would have missed these
    auto kept = kept_handles().communicators.take({size_, copy_engines});
    if (!kept) return;
    communicators_.insert(communicators_.end(), kept->begin(), kept->end());
    communicators[copy_engines] = std::move(*kept);
  }

 private:
  bool shares_gpu() const { return size_ > devices_; }

  /// Waits until `over` holds. Meanwhile makes the calls that ranks hand to this thread.
  template <typename Over>
  void serve(std::unique_lock<std::mutex>& lock, const Over& over) {
    while (true) {
      changed_.wait(lock, [&] { return over() || handed_over_ != nullptr; });
      if (handed_over_ == nullptr) return;
      lock.unlock();
      (*handed_over_)();
      lock.lock();
      handed_over_ = nullptr;
      changed_.notify_all();
    }
  }

  /// The run was not stopped: the next run reuses its ranks' handles, unless a GPU has failed unnoticed.
  void keep_for_later() {
    if (!all_idle_) {
      destroy(communicators_);
      return;
    }
    for (auto handles = ended_.rbegin(); handles != ended_.rend(); ++handles) (*handles)->give_back();
    for (const bool copy_engines : {false, true}) {
      auto& set = communicators[copy_engines];
      if (set.front() != nullptr)
        kept_handles().communicators.give_back({size_, copy_engines}, std::move(set));
    }
  }

  /// Opens all words and aborts all communicators, at the same time.
  void open_everything() {
    {
      const std::lock_guard lock(registry_);
      std::vector<std::thread> aborts;
      for (ncclComm* communicator : communicators_)
        aborts.emplace_back([communicator] { ncclCommAbort(communicator); });
      words_.open();
      for (std::thread& abort : aborts) abort.join();
      communicators_.clear();
    }
    const std::lock_guard lock(mutex_);
    opened_ = true;
    changed_.notify_all();
  }

  /// Ends the process, the only way out of a call that never returns; mutex_ is held.
  [[noreturn]] void give_up(const char* why) {
    std::string said = !reason_.empty() ? reason_ : reason_of_culprit_;
    if (said.empty()) said = "rank " + std::to_string(first + culprit) + " has failed, and has not joined";
    std::fprintf(stderr, "%s: %s (%s)\n", program_invocation_short_name, said.c_str(), why);
    for (int rank = 0; rank < size_; ++rank) {
      const char* what = doing_[static_cast<std::size_t>(rank)];
      if (*what != '\0') std::fprintf(stderr, "  rank %d waits for %s\n", first + rank, what);
    }
    std::fputs(words_.waits().c_str(), stderr);
    std::fflush(nullptr);
    std::_Exit(kExitFailed);
  }

  int size_, devices_;
  PinnedBuffer<unsigned> abort_flag_;

  std::mutex mutex_;
  std::condition_variable changed_;
  int home_ = 0, arrived_ = 0;
  const std::function<void()>* handed_over_ = nullptr;  // by on_main_thread(), until the call has returned
  std::uint64_t generation_ = 0;
  std::atomic<bool> stopping_ = false;
  std::chrono::steady_clock::time_point stopped_at_;
  bool opened_ = false;
  std::string reason_, reason_of_culprit_;
  std::thread opener_;
  std::vector<std::atomic<const char*>> doing_;
  std::vector<std::unique_ptr<RankHandles>> ended_;  // of the ranks that have ended before any stop
  std::vector<bool> left_;                           // the rank's GPU is idle, and the rank enqueues no more
  std::atomic<bool> all_idle_ = true;                // their GPUs have no work left

  std::mutex registry_;
  AwaitedWords words_;
  std::vector<ncclComm*> communicators_;
};

}  // namespace

std::unique_ptr<RunState> RunState::make(int size, int devices) {
  return std::make_unique<CudaRunState>(size, devices);
}

void detail::before_release() noexcept {
  if (state_of_thread != nullptr) state_of_thread->stop_if_unwinding(rank_of_thread);
}

bool stop_active_run(const std::string& reason) {
  const std::lock_guard lock(active().mutex);
  if (active().run_state == nullptr) return false;
  active().run_state->stop(reason);
  return true;
}

}  // namespace overlap
