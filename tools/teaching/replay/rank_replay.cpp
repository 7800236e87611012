#include "rank_replay.hpp"

#include <cuda.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vgpu/calls.hpp>

#include "overlap/gpu/check.hpp"
#include "overlap/gpu/check_cublas.hpp"
#include "overlap/gpu/check_nccl.hpp"

namespace overlap::teaching {
namespace {

// The judge's own calls, in reports.
constexpr const char* kBefore = "[judge: A and B come, before the call]";
constexpr const char* kBehind = "[judge: C is fetched, A and B change, behind the call]";

}  // namespace

const KernelEntry& kernel_of(const LogLine& line, const CallLog& log, const LogCase& known) {
  const auto& kernels = chapter_algorithms().kernels;
  const auto found = std::ranges::find(kernels, line.word, &KernelEntry::name);
  if (found == kernels.end())
    throw LogError("the kernel '" + line.word +
                   "' is not on the chapter's list, so nobody but the submission itself could run it");
  const std::string& parameters = found->parameters;
  std::vector<std::uint64_t> arguments;
  for (std::size_t i = 8; i < line.values.size(); ++i) {
    const bool is_number = line.values[i].kind == 'i';
    if (i - 8 >= parameters.size() || is_number != (parameters[i - 8] == 'n')) break;
    arguments.push_back(line.values[i].number);
  }
  if (arguments.size() != parameters.size() || line.values.size() - 8 != parameters.size())
    throw LogError("the arguments of '" + line.word + "' are not those of its parameters");
  try {
    for (const KernelMemory& use : found->memory(arguments)) {
      const LogValue& pointer = line.values[8 + use.parameter];
      if (use.bytes > 0 && (pointer.kind == '0' || use.bytes > log.room(pointer, known)))
        throw LogError("'" + line.word + "' would leave its memory");
    }
  } catch (const std::invalid_argument& error) {
    throw LogError("'" + line.word + "': " + error.what());
  }
  return *found;
}

ReplayShared::ReplayShared(const CallLog& of, const LogCase& with) : log(of), known(with) {
  for (const auto& sizes : log.memory) memory.emplace_back(sizes.size());
  operands.resize(log.ranks.size());
  found.resize(log.ranks.size());
  std::ptrdiff_t most = 0;
  for (const auto& lines : log.ranks)
    most = std::max(most, std::ranges::count(lines, LogCall::kComm, &LogLine::call));
  communicators.resize(static_cast<std::size_t>(most));
  for (ncclUniqueId& id : communicators) NCCL_CHECK(ncclGetUniqueId(&id));
}

RankReplay::RankReplay(Rank& rank, ReplayShared& shared)
    : rank_(rank), shared_(shared), id_(static_cast<std::size_t>(rank.id())) {
  vgpu::called_from(kBefore);
  const OperandBytes& bytes = shared.known.operands[id_];
  const auto allocate = [&](std::uint64_t size) {
    std::byte* memory = nullptr;
    if (size > 0) CUDA_CHECK(cudaMalloc(&memory, size));
    return memory;
  };
  for (int call = 0; call < shared.known.calls; ++call) {
    shared.operands[id_].push_back({allocate(bytes.a), allocate(bytes.b), allocate(bytes.c)});
    HostData& host =
        host_.emplace_back(HostData{PinnedBuffer<std::byte>(bytes.a), PinnedBuffer<std::byte>(bytes.b),
                                    PinnedBuffer<std::byte>(bytes.c)});
    const CallValues& values = shared.values[static_cast<std::size_t>(call)];
    std::ranges::copy(values.a(rank.id()), host.a.begin());
    std::ranges::copy(values.b(rank.id()), host.b.begin());
  }
  rank.barrier();
}

void RankReplay::run(const std::function<void()>& before_first) {
  for (const LogLine& line : shared_.log.ranks[id_]) {
    if (line.call == LogCall::kCall && line.values[0].number == 0) before_first();
    const bool named = !line.place.empty();
    vgpu::called_from(named ? line.place.c_str() : nullptr);
    try {
      make(line);
    } catch (const std::exception& error) {
      throw std::runtime_error("'" + std::string(form_of(line.call).word) + "'" +
                               (named ? " at " + line.place : "") + ": " + error.what());
    }
  }
  vgpu::called_from(kBehind);
}

void RankReplay::finish() {
  for (const cudaStream_t stream : call_streams_) rank_.synchronize(stream);
  rank_.barrier();
  if (shared_.log.stopped[id_]) return;
  for (std::size_t call = 0; call < host_.size(); ++call) {
    const PinnedBuffer<std::byte>& c = host_[call].c;
    shared_.found[id_] += shared_.values[call].compare(rank_.id(), {c.data(), c.size()});
  }
}

std::byte* RankReplay::memory(const LogValue& value) const {
  if (value.kind == '0') return nullptr;
  const auto rank = static_cast<std::size_t>(value.rank), index = static_cast<std::size_t>(value.index);
  if (value.kind == 'm') {
    std::byte* const begin = shared_.memory[rank][index].load(std::memory_order_relaxed);
    if (begin == nullptr)
      throw std::runtime_error("it uses memory that rank " + std::to_string(value.rank) +
                               " has not made by then, or has freed");
    return begin + value.number;
  }
  const ReplayShared::Operands& operands = shared_.operands[rank][index];
  return (value.kind == 'a' ? operands.a : value.kind == 'b' ? operands.b : operands.c) + value.number;
}

cudaStream_t RankReplay::stream(const LogValue& value) const {
  return value.kind == 'd' ? nullptr : streams_[static_cast<std::size_t>(value.index)];
}

void RankReplay::add_memory(std::byte* memory) {
  shared_.memory[id_][made_memory_++].store(memory, std::memory_order_relaxed);
}

void RankReplay::make(const LogLine& line) {
  const auto& values = line.values;
  const auto number = [&](std::size_t i) { return static_cast<std::size_t>(values[i].number); };
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(values[i].index); };
  std::byte* made = nullptr;
  switch (line.call) {
    case LogCall::kDevice:
      CUDA_CHECK(cudaSetDevice(static_cast<int>(number(0))));
      break;
    case LogCall::kMalloc:
      CUDA_CHECK(cudaMalloc(&made, number(0)));
      pinned_.push_back(false);
      add_memory(made);
      break;
    case LogCall::kMallocHost:
      CUDA_CHECK(cudaMallocHost(&made, number(0)));
      pinned_.push_back(true);
      add_memory(made);
      break;
    case LogCall::kFree:
      made = memory(values[0]);
      shared_.memory[id_][at(0)].store(nullptr, std::memory_order_relaxed);
      CUDA_CHECK(pinned_[at(0)] ? cudaFreeHost(made) : cudaFree(made));
      break;
    case LogCall::kStream:
      CUDA_CHECK(cudaStreamCreateWithFlags(&streams_.emplace_back(), cudaStreamNonBlocking));
      break;
    case LogCall::kStreamDestroy:
      CUDA_CHECK(cudaStreamDestroy(stream(values[0])));
      break;
    case LogCall::kEvent:
      CUDA_CHECK(cudaEventCreateWithFlags(&events_.emplace_back(), cudaEventDisableTiming));
      break;
    case LogCall::kEventDestroy:
      CUDA_CHECK(cudaEventDestroy(events_[at(0)]));
      break;
    case LogCall::kRecord:
      CUDA_CHECK(cudaEventRecord(events_[at(0)], stream(values[1])));
      break;
    case LogCall::kWait:
      CUDA_CHECK(cudaStreamWaitEvent(stream(values[0]), events_[at(1)]));
      break;
    case LogCall::kSyncStream:
      rank_.synchronize(stream(values[0]));
      break;
    case LogCall::kSyncEvent:
      CUDA_CHECK(cudaEventSynchronize(events_[at(0)]));
      break;
    case LogCall::kSyncDevice:
      CUDA_CHECK(cudaDeviceSynchronize());
      break;
    case LogCall::kBarrier:
      rank_.barrier();
      break;
    case LogCall::kCopySync:
      CUDA_CHECK(cudaMemcpy(memory(values[0]), memory(values[1]), number(2), cudaMemcpyDefault));
      break;
    case LogCall::kCopy:
    case LogCall::kCopyPeer:
      CUDA_CHECK(cudaMemcpyAsync(memory(values[0]), memory(values[1]), number(2), cudaMemcpyDefault,
                                 stream(values[3])));
      break;
    case LogCall::kFillSync:
      CUDA_CHECK(cudaMemset(memory(values[0]), static_cast<int>(number(1)), number(2)));
      break;
    case LogCall::kFill:
      CUDA_CHECK(
          cudaMemsetAsync(memory(values[0]), static_cast<int>(number(1)), number(2), stream(values[3])));
      break;
    case LogCall::kRaise:
      CU_CHECK(cuStreamWriteValue32(stream(values[2]), reinterpret_cast<CUdeviceptr>(memory(values[0])),
                                    static_cast<cuuint32_t>(number(1)), CU_STREAM_WRITE_VALUE_DEFAULT));
      break;
    case LogCall::kAwait:
      CU_CHECK(cuStreamWaitValue32(stream(values[3]), reinterpret_cast<CUdeviceptr>(memory(values[0])),
                                   static_cast<cuuint32_t>(number(1)), static_cast<unsigned>(number(2))));
      break;
    case LogCall::kLaunch:
      launch(line);
      break;
    case LogCall::kCall:
      begin_call(static_cast<int>(number(0)), stream(values[1]));
      break;
    case LogCall::kEnd:
      end_call(static_cast<int>(number(0)));
      break;
    default:
      make_library_call(line);
  }
}

void RankReplay::make_library_call(const LogLine& line) {
  const auto& values = line.values;
  const auto number = [&](std::size_t i) { return static_cast<std::size_t>(values[i].number); };
  const auto type = [&](std::size_t i) { return static_cast<ncclDataType_t>(values[i].number); };
  const auto small = [&](std::size_t i) { return static_cast<int>(values[i].number); };
  const auto operation = [&](std::size_t i) { return static_cast<ncclRedOp_t>(values[i].number); };
  const auto communicator = [&](std::size_t i) {
    return communicators_[static_cast<std::size_t>(values[i].index)];
  };
  const auto blas = [&] { return blas_[static_cast<std::size_t>(values[0].index)]; };
  switch (line.call) {
    case LogCall::kBlas:
      CUBLAS_CHECK(cublasCreate(&blas_.emplace_back()));
      break;
    case LogCall::kBlasDestroy:
      CUBLAS_CHECK(cublasDestroy(blas()));
      break;
    case LogCall::kBlasStream:
      CUBLAS_CHECK(cublasSetStream(blas(), stream(values[1])));
      break;
    case LogCall::kGemm:
      gemm(values);
      break;
    case LogCall::kComm: {
      const ncclUniqueId& id = shared_.communicators[communicators_.size()];
      NCCL_CHECK(ncclCommInitRank(&communicators_.emplace_back(), rank_.size(), id, rank_.id()));
      break;
    }
    case LogCall::kCommDestroy:
      NCCL_CHECK(ncclCommDestroy(communicator(0)));
      break;
    case LogCall::kGroupStart:
      NCCL_CHECK(ncclGroupStart());
      break;
    case LogCall::kGroupEnd:
      NCCL_CHECK(ncclGroupEnd());
      break;
    case LogCall::kAllGather:
      NCCL_CHECK(ncclAllGather(memory(values[0]), memory(values[1]), number(2), type(3), communicator(4),
                               stream(values[5])));
      break;
    case LogCall::kReduceScatter:
      NCCL_CHECK(ncclReduceScatter(memory(values[0]), memory(values[1]), number(2), type(3), operation(4),
                                   communicator(5), stream(values[6])));
      break;
    case LogCall::kAllReduce:
      NCCL_CHECK(ncclAllReduce(memory(values[0]), memory(values[1]), number(2), type(3), operation(4),
                               communicator(5), stream(values[6])));
      break;
    case LogCall::kBroadcast:
      NCCL_CHECK(ncclBroadcast(memory(values[0]), memory(values[1]), number(2), type(3), small(4),
                               communicator(5), stream(values[6])));
      break;
    case LogCall::kReduce:
      NCCL_CHECK(ncclReduce(memory(values[0]), memory(values[1]), number(2), type(3), operation(4), small(5),
                            communicator(6), stream(values[7])));
      break;
    case LogCall::kSend:
      NCCL_CHECK(
          ncclSend(memory(values[0]), number(1), type(2), small(3), communicator(4), stream(values[5])));
      break;
    case LogCall::kReceive:
      NCCL_CHECK(
          ncclRecv(memory(values[0]), number(1), type(2), small(3), communicator(4), stream(values[5])));
      break;
    default:  // kStopped: the rank's last line
      break;
  }
}

void RankReplay::gemm(const std::vector<LogValue>& values) {
  const auto number = [&](std::size_t i) { return static_cast<int>(values[i].number); };
  const auto factor = [&](std::size_t i) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(values[i].number));
  };
  const auto operation = [&](std::size_t i) { return static_cast<cublasOperation_t>(number(i)); };
  const auto type = [&](std::size_t i) { return static_cast<cudaDataType>(number(i)); };
  const float alpha = factor(6), beta = factor(13);
  CUBLAS_CHECK(cublasGemmEx(blas_[static_cast<std::size_t>(values[0].index)], operation(1), operation(2),
                            number(3), number(4), number(5), &alpha, memory(values[7]), type(8), number(9),
                            memory(values[10]), type(11), number(12), &beta, memory(values[14]), type(15),
                            number(16), static_cast<cublasComputeType_t>(number(17)),
                            static_cast<cublasGemmAlgo_t>(number(18))));
}

void RankReplay::launch(const LogLine& line) {
  const auto size = [&](std::size_t i) { return static_cast<unsigned>(line.values[i].number); };
  KernelCall call{{size(0), size(1), size(2)}, {size(3), size(4), size(5)}, stream(line.values[7]), {}};
  for (std::size_t i = 8; i < line.values.size(); ++i) {
    const LogValue& value = line.values[i];
    call.arguments.push_back(value.kind == 'i' ? value.number
                                               : reinterpret_cast<std::uintptr_t>(memory(value)));
  }
  kernel_of(line, shared_.log, shared_.known).launch(call);
  CUDA_CHECK(cudaGetLastError());
}

void RankReplay::begin_call(int call, cudaStream_t stream) {
  vgpu::called_from(kBefore);
  const auto index = static_cast<std::size_t>(call);
  const ReplayShared::Operands& own = shared_.operands[id_][index];
  const HostData& host = host_[index];
  const auto fill = [&](std::byte* to, const PinnedBuffer<std::byte>& from) {
    if (from.size() > 0)
      CUDA_CHECK(cudaMemcpyAsync(to, from.data(), from.bytes(), cudaMemcpyHostToDevice, stream));
  };
  fill(own.a, host.a);
  fill(own.b, host.b);
  call_streams_.push_back(stream);
}

void RankReplay::end_call(int call) {
  vgpu::called_from(kBehind);
  const auto index = static_cast<std::size_t>(call);
  const ReplayShared::Operands& own = shared_.operands[id_][index];
  HostData& host = host_[index];
  const cudaStream_t stream = call_streams_.back();
  if (host.c.size() > 0)
    CUDA_CHECK(cudaMemcpyAsync(host.c.data(), own.c, host.c.bytes(), cudaMemcpyDeviceToHost, stream));
  // From here on they are the caller's again: who still reads them, in another stream, reads this.
  if (host.a.size() > 0) CUDA_CHECK(cudaMemsetAsync(own.a, 0xff, host.a.bytes(), stream));
  if (host.b.size() > 0) CUDA_CHECK(cudaMemsetAsync(own.b, 0xff, host.b.bytes(), stream));
}

}  // namespace overlap::teaching
