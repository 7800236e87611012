// Ranks on virtual GPUs: fibers of one thread.
#include <vgpu/control.hpp>

#include "overlap/gpu/kept_handles.hpp"
#include "overlap/gpu/run_state.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {
namespace {

class VirtualRunState;
VirtualRunState* active = nullptr;  // the one whose ranks run

class VirtualRunState final : public RunState {
 public:
  explicit VirtualRunState(int size) : size_(size), barrier_(size) { active = this; }
  ~VirtualRunState() override { active = nullptr; }

  void run(const std::function<void(int)>& body) override { vgpu::run_host_threads(size_, body); }
  bool barrier(int) override { return barrier_.wait(); }
  void on_main_thread(const std::function<void()>& call) override { call(); }  // ranks are fibers of it
  void stop(int rank) override {
    if (stopping()) return;
    culprit = rank;
    __atomic_store_n(&abort_flag_, 1u, __ATOMIC_RELEASE);
    vgpu::stop_host_threads();  // also opens signals and ends collectives: the GPUs are idle then
  }
  void stop_if_unwinding(int rank) noexcept override {
    if (std::uncaught_exceptions() > 0) stop(rank);
  }
  bool stopping() const override { return __atomic_load_n(&abort_flag_, __ATOMIC_ACQUIRE) != 0; }
  unsigned* abort_flag() override { return &abort_flag_; }
  /// Keeps no handles: tests reset the virtual GPUs between runs (vgpu::reset()), which destroys everything
  /// made on them. Moreover, a run's order of events and modelled times must not depend on earlier runs.
  bool keep(int, std::unique_ptr<RankHandles>&) override { return false; }

 private:
  int size_;
  vgpu::HostBarrier barrier_;
  unsigned abort_flag_ = 0;
};

}  // namespace

std::unique_ptr<RunState> RunState::make(int size, int) { return std::make_unique<VirtualRunState>(size); }

void detail::before_release() noexcept {
  const int rank = vgpu::host_thread();
  if (active != nullptr && rank >= 0) active->stop_if_unwinding(rank);
}

bool stop_active_run(const std::string&) { return false; }

}  // namespace overlap
