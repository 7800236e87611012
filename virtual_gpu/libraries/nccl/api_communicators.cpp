// NCCL's calls about communicators, versions, errors and memory.
#include <algorithm>
#include <cstring>

#include "cuda_runtime_api.h"
#include "engine/host/code_text.hpp"
#include "libraries/nccl/api.hpp"
#include "libraries/nccl/operation.hpp"

namespace vgpu::nccl {
namespace {

template <class T>
T& result_of(T* pointer) {
  if (pointer == nullptr) throw Failure(ncclInvalidArgument, "the pointer to the result is null");
  return *pointer;
}

std::string text_of(const ncclUniqueId& id) {
  return {id.internal, strnlen(id.internal, sizeof(id.internal))};
}

/// The channels of the machine's NCCL, or fewer if the program wants so.
int max_channels(const Runtime& runtime, const ncclConfig_t* config) {
  const int all = runtime.machine().nccl_channels;
  if (config == nullptr || config->maxCTAs == NCCL_CONFIG_UNDEF_INT) return all;
  return std::min(all, config->maxCTAs);
}

/// Notes the call in a group, makes it at once outside of one.
void init_rank(Runtime& runtime, ncclComm_t* result, int ranks, const ncclUniqueId& id, int rank,
               const ncclConfig_t* config = nullptr) {
  result_of(result) = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    throw Failure(ncclInvalidArgument,
                  "there is no rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  }
  const auto found = state(runtime).cliques.find(text_of(id));
  if (found == state(runtime).cliques.end()) {
    throw Failure(ncclInvalidArgument, "the id does not come from ncclGetUniqueId");
  }
  auto& clique = found->second;
  if (clique == nullptr) clique = std::make_shared<Clique>(ranks);
  if (clique->ranks() != ranks) {
    clique->refuse("of the same id, one rank asks for " + std::to_string(clique->ranks()) +
                   " ranks and rank " + std::to_string(rank) + " for " + std::to_string(ranks));
  }
  const QueuedSetup setup{result, clique, rank, runtime.host().device(), max_channels(runtime, config)};
  Group& mine = group(runtime);
  if (mine.depth == 0) {
    set_up(runtime, {setup});
  } else if (mine.calls.empty()) {
    mine.setups.push_back(setup);
  } else {
    throw Failure(ncclInvalidUsage, "communicators cannot be made in a group that holds other calls");
  }
}

void check(const ncclConfig_t& config) {
  if (config.size != sizeof(ncclConfig_t) || config.magic != 0xcafebeef) {
    throw Failure(ncclInvalidArgument, "the configuration was not initialised with NCCL_CONFIG_INITIALIZER");
  }
  if (config.blocking != NCCL_CONFIG_UNDEF_INT && config.blocking != 1) {
    throw Failure(config.blocking == 0 ? ncclInvalidUsage : ncclInvalidArgument,
                  "virtual NCCL knows only blocking = 1");
  }
  const auto refuse = [](const char* name) {
    throw Failure(ncclInvalidUsage, std::string("virtual NCCL does not know the option ") + name);
  };
  const std::pair<int, const char*> numbers[] = {{config.minCTAs, "minCTAs"},
                                                 {config.splitShare, "splitShare"},
                                                 {config.trafficClass, "trafficClass"},
                                                 {config.collnetEnable, "collnetEnable"},
                                                 {config.CTAPolicy, "CTAPolicy"},
                                                 {config.shrinkShare, "shrinkShare"},
                                                 {config.nvlsCTAs, "nvlsCTAs"},
                                                 {config.nChannelsPerNetPeer, "nChannelsPerNetPeer"},
                                                 {config.nvlinkCentricSched, "nvlinkCentricSched"}};
  for (const auto& [value, name] : numbers) {
    if (value != NCCL_CONFIG_UNDEF_INT) refuse(name);
  }
  // Its blocks are single here, and multiprocessors have no neighbours.
  if (config.cgaClusterSize != NCCL_CONFIG_UNDEF_INT && config.cgaClusterSize != 0)
    throw Failure(ncclInvalidUsage, "cgaClusterSize: virtual NCCL has no clusters, only 0 is known");
  if (config.maxCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs < 1)
    throw Failure(ncclInvalidArgument, "maxCTAs: " + std::to_string(config.maxCTAs) + " is less than 1");
  if (config.netName != nullptr) refuse("netName");
  if (config.commName != nullptr) refuse("commName");
}

void init_all(Runtime& runtime, ncclComm_t* results, int count, const int* devices) {
  result_of(results);
  if (count < 1) throw Failure(ncclInvalidArgument, "there must be a GPU");
  auto clique = std::make_shared<Clique>(count);
  std::vector<QueuedSetup> setups;
  for (int rank = 0; rank < count; ++rank) {
    const int device = devices == nullptr ? rank : devices[rank];
    if (device < 0 || device >= runtime.machine().gpus) {
      throw Failure(ncclInvalidArgument, "there is no GPU " + std::to_string(device));
    }
    setups.push_back({results + rank, clique, rank, device, max_channels(runtime, nullptr)});
  }
  set_up(runtime, setups);
}

/// Blocks the host thread until the rank has no pending work. It orders nothing: NCCL only promises that the
/// communicator may be destroyed.
void finalize(Runtime& runtime, Communicator& communicator, const char* call) {
  const Group& mine = group(runtime);
  if (std::any_of(mine.calls.begin(), mine.calls.end(),
                  [&](const QueuedCall& queued) { return queued.communicator.get() == &communicator; })) {
    throw Failure(ncclInvalidUsage, "the group holds calls of this communicator");
  }
  const auto idle = [&] { return communicator.pending.empty(); };
  if (!idle()) runtime.waits().block_host(idle, std::string("a communicator's work (") + call + ")");
  runtime.host().wait_until(communicator.idle_from);
  communicator.finalized = true;
}

[[noreturn]] void no_windows() { throw Failure(ncclInvalidUsage, "virtual NCCL has no windows"); }

void check(cudaError_t error, Runtime& runtime) {
  if (error != cudaSuccess) throw Failure(ncclUnhandledCudaError, runtime.errors().last_detail());
}

}  // namespace
}  // namespace vgpu::nccl

using namespace vgpu;
using namespace vgpu::nccl;

ncclResult_t ncclGetVersion(int* version) {
  return nccl::api_call("ncclGetVersion", [&](Runtime&) { result_of(version) = NCCL_VERSION_CODE; });
}

const char* ncclGetErrorString(ncclResult_t result) {
  static constexpr CodeText kResults[] = {VGPU_NCCL_RESULTS(VGPU_CODE_TEXT)};
  static constexpr CodeText kUnknown = {0, nullptr, "unknown result code"};
  return find_code(kResults, result, kUnknown).text;
}

const char* ncclGetLastError(ncclComm_t) {
  Runtime* started = runtime_if_started();
  if (started == nullptr) return "";
  const hb::RuntimeScope scope;
  return state(*started).last_error.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return nccl::api_call("ncclGetUniqueId", [&](Runtime& runtime) {
    auto& cliques = state(runtime).cliques;
    const std::string text = "virtual GPUs, clique " + std::to_string(cliques.size() + 1);
    result_of(id) = {};
    std::memcpy(id->internal, text.data(), text.size());
    cliques.emplace(text, nullptr);
  });
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return nccl::api_call("ncclCommInitRank",
                        [&](Runtime& runtime) { init_rank(runtime, comm, nranks, commId, rank); });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  return nccl::api_call("ncclCommInitRankConfig", [&](Runtime& runtime) {
    if (config != nullptr) check(*config);
    init_rank(runtime, comm, nranks, commId, rank, config);
  });
}

ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return nccl::api_call("ncclCommInitAll", [&](Runtime& runtime) { init_all(runtime, comm, ndev, devlist); });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return nccl::api_call("ncclCommFinalize", [&](Runtime& runtime) {
    const auto found = communicator(runtime, comm);
    if (found->finalized) throw Failure(ncclInvalidArgument, "the communicator is finalized already");
    finalize(runtime, *found, "ncclCommFinalize");
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return nccl::api_call("ncclCommDestroy", [&](Runtime& runtime) {
    if (comm == nullptr) return;
    const auto found = communicator(runtime, comm);
    finalize(runtime, *found, "ncclCommDestroy");
    state(runtime).communicators.erase(comm);
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return nccl::api_call("ncclCommAbort", [&](Runtime& runtime) {
    if (comm == nullptr) return;
    const auto found = communicator(runtime, comm);
    const std::vector<NcclOperation*> pending(found->pending.begin(), found->pending.end());
    for (NcclOperation* operation : pending) operation->abort(runtime.host().now());
    std::erase_if(group(runtime).calls, [&](const QueuedCall& call) { return call.communicator == found; });
    state(runtime).communicators.erase(comm);
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return nccl::api_call("ncclCommGetAsyncError", [&](Runtime& runtime) {
    const auto found = communicator(runtime, comm);
    ncclResult_t& result = result_of(asyncError);
    runtime.waits().yield();  // programs ask in a loop, so the others must get on meanwhile
    const std::string& mismatch = found->clique->mismatch();
    result = mismatch.empty() ? ncclSuccess : ncclInvalidUsage;
    if (!mismatch.empty()) state(runtime).last_error = mismatch;
  });
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return nccl::api_call("ncclCommCount", [&](Runtime& runtime) {
    result_of(count) = communicator(runtime, comm)->clique->ranks();
  });
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return nccl::api_call("ncclCommCuDevice",
                        [&](Runtime& runtime) { result_of(device) = communicator(runtime, comm)->device; });
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return nccl::api_call("ncclCommUserRank",
                        [&](Runtime& runtime) { result_of(rank) = communicator(runtime, comm)->rank; });
}

ncclResult_t ncclMemAlloc(void** pointer, std::size_t bytes) {
  return nccl::api_call("ncclMemAlloc",
                        [&](Runtime& runtime) { check(cudaMalloc(pointer, bytes), runtime); });
}

ncclResult_t ncclMemFree(void* pointer) {
  return nccl::api_call("ncclMemFree", [&](Runtime& runtime) { check(cudaFree(pointer), runtime); });
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, std::size_t, void** handle) {
  return nccl::api_call("ncclCommRegister", [&](Runtime& runtime) {
    communicator(runtime, comm);
    result_of(handle) = buffer;
  });
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void*) {
  return nccl::api_call("ncclCommDeregister", [&](Runtime& runtime) { communicator(runtime, comm); });
}

ncclResult_t ncclCommWindowRegister(ncclComm_t, void*, std::size_t, ncclWindow_t*, int) {
  return nccl::api_call("ncclCommWindowRegister", [](Runtime&) { no_windows(); });
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t) {
  return nccl::api_call("ncclCommWindowDeregister", [](Runtime&) { no_windows(); });
}
