#include "overlap/gpu/ranks.hpp"

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_nccl.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/kept_handles.hpp"
#include "overlap/gpu/nccl_config.hpp"
#include "overlap/gpu/processes.hpp"
#include "overlap/gpu/run_state.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {
namespace {

constexpr int kMaxRanks = 64;

/// Throws the error again with the rank in front of its text, unless the text begins with the rank at fault.
/// Keeps its type, which decides the exit status.
[[noreturn]] void rethrow(const std::exception_ptr& error, int rank) {
  const bool names_a_rank = sentence_of(error).starts_with("rank ");
  const std::string who = names_a_rank ? "" : "rank " + std::to_string(rank) + ": ";
  try {
    std::rethrow_exception(error);
  } catch (const Skip& skip) {
    throw Skip(who + skip.what());
  } catch (const WrongResult& wrong) {
    throw WrongResult(who + wrong.what());
  } catch (const UsageError& unusable) {
    throw UsageError(who + unusable.what());
  } catch (const CudaError& failed) {
    throw CudaError(failed, who);
  } catch (const FailedCall& failed) {
    throw FailedCall(failed, who);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& other) {
    throw std::runtime_error(who + other.what());
  } catch (...) {
    throw std::runtime_error(who + "an unknown exception");
  }
}

bool is_run_stopped(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const RunStopped&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

Rank::Rank(RunState& run_state, int id, int size, int device, bool shares_gpu)
    : run_state_(run_state),
      id_(id),
      size_(size),
      device_(device),
      local_begin_(run_state.first),
      local_size_(static_cast<int>(run_state.slots.size())),
      shares_gpu_(shares_gpu),
      handles_(std::make_unique<RankHandles>(device)) {}

Rank::~Rank() {
  detail::before_release();
  const auto rails = std::exchange(handles_->rails, {});
  const bool kept =
      run_state_.keep(local_id(), handles_);  // of a run that is stopped: behind what aborts communicators
  for (const auto& [kind, communicator] : rails) destroy(communicator);
  if (kept) return;
  handles_->destroy_cublas();
  for (const ncclComm_t communicator : handles_->nccl) destroy(communicator);
}

void Rank::destroy(ncclComm_t communicator) {
  if (communicator == nullptr || !run_state_.remove(communicator)) return;  // aborted, if the run was stopped
  ncclCommDestroy(communicator);
}

ncclComm_t Rank::nccl(NcclMode mode) {
  const bool copy_engines = mode == NcclMode::kCopyEngine;
  ncclComm_t& communicator = handles_->nccl[copy_engines];
  if (communicator != nullptr) return communicator;
  require_nccl();
  if (const std::string reason = why_not(mode); !reason.empty()) throw Skip(reason);
  ncclUniqueId id{};
  if (local_id() == 0) run_state_.take_communicators(copy_engines);
  if (id_ == 0 && run_state_.communicators[copy_engines][0] == nullptr) NCCL_CHECK(ncclGetUniqueId(&id));
  id = exchange(id).front();
  ncclComm_t& own = run_state_.communicators[copy_engines][static_cast<std::size_t>(local_id())];
  if (own == nullptr) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (copy_engines) detail::use_copy_engines(config);
    run_state_.waits_for(local_id(), "the other ranks, in ncclCommInitRankConfig");
    NCCL_CHECK(ncclCommInitRankConfig(&own, size_, id, id_, &config));
    run_state_.waits_for(local_id(), "");
    run_state_.add(own);
  }
  communicator = own;
  return communicator;
}

void Rank::require_nccl() const {
  if (shares_gpu_) throw Skip("NCCL wants a GPU for each rank, and all ranks share one here");
}

ncclComm_t Rank::rail(int gpus_per_node, int max_blocks) {
  ncclComm_t& communicator = handles_->rails[{gpus_per_node, max_blocks}];
  if (communicator != nullptr) return communicator;
  require_nccl();
  const int node = id_ / gpus_per_node, number = id_ % gpus_per_node;
  ncclUniqueId id{};
  if (node == 0) NCCL_CHECK(ncclGetUniqueId(&id));
  id = exchange(id)[static_cast<std::size_t>(number)];
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.maxCTAs = max_blocks;
  // By default NCCL groups its blocks into clusters on Hopper, and a cluster needs its multiprocessors in one
  // GPC; but those that a kernel of the caller leaves free may be in several GPCs.
  config.cgaClusterSize = 0;
  run_state_.waits_for(local_id(), "the other ranks of its rail, in ncclCommInitRankConfig");
  NCCL_CHECK(ncclCommInitRankConfig(&communicator, size_ / gpus_per_node, id, node, &config));
  run_state_.waits_for(local_id(), "");
  run_state_.add(communicator);
  return communicator;
}

cublasContext* Rank::cublas(int i) { return handles_->cublas(i); }

cudaStream_t Rank::stream() { return handles_->compute(0); }

cudaStream_t Rank::second_stream() { return handles_->compute(1); }

cudaStream_t Rank::transfer_stream(int i) { return handles_->transfer(shares_gpu_ && i == 1 ? 0 : i); }

void Rank::barrier() {
  meet_here();
  if (run_state_.processes == nullptr) return;
  in_all_processes([](Processes& all, const Processes::Stopped& stopped) { all.barrier(stopped); });
  meet_here();
}

/// One rank of each process makes the process's main thread call the other processes; the other ranks
/// continue at once. If the run is stopped meanwhile, the next meet_here() throws.
void Rank::in_all_processes(
    const std::function<void(Processes&, const std::function<bool()>& stopped)>& call) {
  if (local_id() != 0) return;
  run_state_.waits_for(0, "the other processes");
  run_state_.on_main_thread([&] { call(*run_state_.processes, [this] { return run_state_.stopping(); }); });
  run_state_.waits_for(0, "");
}

/// A barrier of the ranks of this process.
void Rank::meet_here() {
  run_state_.waits_for(local_id(), "the other ranks, at a barrier");
  const bool met = run_state_.barrier(local_id());
  run_state_.waits_for(local_id(), "");
  if (run_state_.stopping()) throw RunStopped();
  // The run was not stopped, yet the barrier failed: the virtual GPUs have reported a deadlock or a fault,
  // and this call names it.
  if (!met) CUDA_CHECK(cudaDeviceSynchronize());
}

void Rank::synchronize(cudaStream_t stream) {
  run_state_.waits_for(local_id(), "its stream");
  const cudaError_t error = cudaStreamSynchronize(stream);
  run_state_.waits_for(local_id(), "");
  if (run_state_.stopping()) throw RunStopped();
  check_cuda(error, "cudaStreamSynchronize(stream)", __FILE__, __LINE__);
}

bool Rank::stopping() const { return run_state_.stopping(); }

unsigned* Rank::abort_flag() const { return run_state_.abort_flag(); }

void Rank::exchange_bytes_here(const void* value, std::size_t bytes, void* all) {
  run_state_.slots[static_cast<std::size_t>(local_id())] = value;
  meet_here();
  for (std::size_t rank = 0; rank < run_state_.slots.size(); ++rank)
    std::memcpy(static_cast<std::byte*>(all) + rank * bytes, run_state_.slots[rank], bytes);
  meet_here();  // the values stay valid until every rank has read them
}

void Rank::exchange_bytes(const void* value, std::size_t bytes, void* all) {
  if (run_state_.processes == nullptr) return exchange_bytes_here(value, bytes, all);
  std::string here(bytes * static_cast<std::size_t>(local_size_), '\0');
  exchange_bytes_here(value, bytes, here.data());
  if (local_id() == 0) run_state_.from_all.resize(bytes * static_cast<std::size_t>(size_));
  in_all_processes([&](Processes& processes, const Processes::Stopped& stopped) {
    processes.all_gather(here.data(), run_state_.from_all.data(), here.size(), stopped);
  });
  meet_here();
  std::memcpy(all, run_state_.from_all.data(), run_state_.from_all.size());
  meet_here();  // the values stay valid until every rank has read them
}

std::vector<double> Rank::largest_of_all(const std::vector<double>& own) {
  std::vector<double> largest = own;
  for (const double* other : exchange_here(own.data())) {
    for (std::size_t i = 0; i < own.size(); ++i) largest[i] = std::max(largest[i], other[i]);
  }
  meet_here();  // `own` stays valid until every rank has read it
  if (run_state_.processes == nullptr) return largest;
  in_all_processes([&](Processes& all, const Processes::Stopped& stopped) { all.largest(largest, stopped); });
  const double* of_all = exchange_here(largest.data()).front();
  if (local_id() != 0) std::copy_n(of_all, largest.size(), largest.begin());
  meet_here();
  return largest;
}

void run_ranks(int ranks, const std::function<void(Rank&)>& program, Processes* processes) {
  if (ranks < 1 || ranks > kMaxRanks)
    throw std::invalid_argument("run_ranks: " + std::to_string(ranks) + " ranks; 1 to 64 are possible");
  const int count = processes == nullptr ? 1 : processes->count(), here = ranks / count;
  if (here * count != ranks)
    throw std::invalid_argument("run_ranks: " + std::to_string(ranks) + " ranks in " + std::to_string(count) +
                                " processes");
  int gpus = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  // All on one GPU, not some on each: with 3 and with 8 ranks on 2 GPUs, ranks that shared a GPU waited for
  // each other for ever, and with all of them on one GPU never. Most likely copies to another GPU queue up
  // behind those of other ranks; copies within a GPU take another way.
  const bool share = here > gpus;
  const std::unique_ptr<RunState> run_state = RunState::make(here, share ? 1 : here);
  run_state->first = processes == nullptr ? 0 : processes->index() * here;
  run_state->processes = processes;
  run_state->slots.resize(static_cast<std::size_t>(here));
  for (auto& communicators : run_state->communicators) communicators.resize(static_cast<std::size_t>(here));
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(here));
  const auto run_one = [&](int number) {
    std::exception_ptr& error = errors[static_cast<std::size_t>(number)];
    try {
      const int device = share ? 0 : number;
      CUDA_CHECK(cudaSetDevice(device));
      Rank rank(*run_state, run_state->first + number, ranks, device, share);
      program(rank);
    } catch (...) {
      error = std::current_exception();
      run_state->stop(number);
      run_state->failed(number, error);
    }
  };
  run_state->run(run_one);
  if (run_state->culprit < 0) return;
  const std::exception_ptr& error = errors[static_cast<std::size_t>(run_state->culprit)];
  if (error == nullptr || is_run_stopped(error)) {
    throw std::logic_error(
        "rank " + std::to_string(run_state->first + run_state->culprit) +
        " caught an exception that had passed owners of CUDA objects: they had stopped the run");
  }
  rethrow(error, run_state->first + run_state->culprit);
}

std::string sentence_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown exception";
  }
}

}  // namespace overlap
