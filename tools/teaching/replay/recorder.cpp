#include "recorder.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace overlap::teaching {
namespace {

/// How a call of an API becomes a line: its word, and which of its arguments follow, in which order.
struct Translation {
  std::string_view api;
  LogCall call;
  std::vector<int> arguments = {};  // which; kDereferenced + i: the float that argument i points to
};
constexpr int kDereferenced = 100;

const std::vector<Translation>& translations() {
  static const std::vector<Translation> known = {
      {"cudaSetDevice", LogCall::kDevice, {0}},
      {"cudaEventRecord", LogCall::kRecord, {0, 1}},
      {"cudaStreamWaitEvent", LogCall::kWait, {0, 1}},
      {"cudaStreamSynchronize", LogCall::kSyncStream, {0}},
      {"cudaEventSynchronize", LogCall::kSyncEvent, {0}},
      {"cudaDeviceSynchronize", LogCall::kSyncDevice},
      {"host barrier", LogCall::kBarrier},
      {"cudaMemcpy", LogCall::kCopySync, {0, 1, 2}},
      {"cudaMemcpyAsync", LogCall::kCopy, {0, 1, 2, 4}},
      {"cudaMemcpyPeerAsync", LogCall::kCopyPeer, {0, 2, 4, 5}},
      {"cudaMemset", LogCall::kFillSync, {0, 1, 2}},
      {"cudaMemsetAsync", LogCall::kFill, {0, 1, 2, 3}},
      {"cuStreamWriteValue32", LogCall::kRaise, {1, 2, 0}},
      {"cuStreamWaitValue32", LogCall::kAwait, {1, 2, 3, 0}},
      {"cublasSetStream", LogCall::kBlasStream, {0, 1}},
      {"cublasGemmEx",
       LogCall::kGemm,
       {0, 1, 2, 3, 4, 5, kDereferenced + 6, 7, 8, 9, 10, 11, 12, kDereferenced + 13, 14, 15, 16, 17, 18}},
      {"ncclGroupStart", LogCall::kGroupStart},
      {"ncclGroupEnd", LogCall::kGroupEnd},
      {"ncclAllGather", LogCall::kAllGather, {0, 1, 2, 3, 4, 5}},
      {"ncclReduceScatter", LogCall::kReduceScatter, {0, 1, 2, 3, 4, 5, 6}},
      {"ncclAllReduce", LogCall::kAllReduce, {0, 1, 2, 3, 4, 5, 6}},
      {"ncclBroadcast", LogCall::kBroadcast, {0, 1, 2, 3, 4, 5, 6}},
      {"ncclReduce", LogCall::kReduce, {0, 1, 2, 3, 4, 5, 6, 7}},
      {"ncclSend", LogCall::kSend, {0, 1, 2, 3, 4, 5}},
      {"ncclRecv", LogCall::kReceive, {0, 1, 2, 3, 4, 5}},
  };
  return known;
}

/// Calls that only ask, or that the log says in other words.
bool is_of_no_matter(std::string_view api) {
  static const std::set<std::string_view> known = {
      "kernel launch",  // "launch" says it
      "cudaGetDeviceCount",
      "cudaGetDeviceProperties",
      "cudaDeviceGetAttribute",
      "cudaDeviceCanAccessPeer",
      "cudaMemGetInfo",
      "cudaPointerGetAttributes",
      "cudaDeviceGetStreamPriorityRange",
      "cudaStreamIsCapturing",
      "cudaFuncSetAttribute",
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
      "cublasGetStream",
      "cublasGetVersion",
      "cublasGetMathMode",
      "cublasGetPointerMode",
      "ncclGetVersion",
      "ncclGetUniqueId",
      "ncclCommCount",
      "ncclCommUserRank",
      "ncclCommCuDevice",
  };
  return known.contains(api);
}

/// Waits: they count even if they fail, since that is how a deadlock ends them.
bool waits(std::string_view api) {
  return api == "cudaStreamSynchronize" || api == "cudaEventSynchronize" || api == "cudaDeviceSynchronize" ||
         api == "host barrier";
}

const void* pointer(const vgpu::CallArgument& argument) {
  return reinterpret_cast<const void*>(argument.value);
}

/// What the API call has stored where this argument points to.
const void* result(const vgpu::CallArgument& argument) {
  return *reinterpret_cast<const void* const*>(argument.value);
}

std::string object_name(char kind, int rank, int index) {
  return std::string(1, kind) + std::to_string(rank) + "." + std::to_string(index);
}

}  // namespace

Recorder::Recorder(int ranks) : ranks_(static_cast<std::size_t>(ranks)) { vgpu::observe_calls(this); }

void Recorder::begin(int rank) { ranks_[static_cast<std::size_t>(rank)].finished = false; }

Recorder::~Recorder() { vgpu::observe_calls(nullptr); }

void Recorder::add_operand(int rank, char name, int call, const void* memory, std::size_t bytes) {
  if (bytes == 0) return;  // there is no memory
  memory_[static_cast<const std::byte*>(memory)] = {object_name(name, rank, call), bytes};
}

void Recorder::begin_call(int rank, int call, cudaStream_t stream) {
  const vgpu::CallArgument handle(stream);
  write(rank, "call " + std::to_string(call) + " " + argument(rank, 's', handle));
}

void Recorder::end_call(int rank, int call) { write(rank, "end " + std::to_string(call)); }

void Recorder::finish(int rank) { ranks_[static_cast<std::size_t>(rank)].finished = true; }

void Recorder::write(int rank, std::string text) {
  text = std::to_string(rank) + " " + text;
  bytes_ += text.size();
  if (bytes_ > kMostLogBytes) too_long_ = true;
  if (too_long_) return;
  ranks_[static_cast<std::size_t>(rank)].lines.push_back({std::move(text), places_.here()});
}

void Recorder::make(int rank, char kind, const void* handle) {
  RankLog& log = ranks_[static_cast<std::size_t>(rank)];
  log.objects[kind][handle] = log.made[kind]++;
}

/// The object's name; it may be made anew under the same handle.
std::string Recorder::forget(int rank, char kind, const void* handle) {
  RankLog& log = ranks_[static_cast<std::size_t>(rank)];
  const auto found = log.objects[kind].find(handle);
  if (found == log.objects[kind].end()) return object_name(kind, rank, -1);
  const std::string name = object_name(kind, rank, found->second);
  log.objects[kind].erase(found);
  return name;
}

std::string Recorder::memory(const void* address) const {
  if (address == nullptr) return "null";
  const auto* byte = static_cast<const std::byte*>(address);
  auto found = memory_.upper_bound(byte);
  if (found == memory_.begin()) return {};
  --found;
  const auto offset = static_cast<std::size_t>(byte - found->first);
  if (offset > found->second.bytes) return {};
  return found->second.name + (offset > 0 ? "+" + std::to_string(offset) : "");
}

/// In the form that the log has for `kind` (call_log.hpp); empty if there is none.
std::string Recorder::argument(int rank, char kind, const vgpu::CallArgument& argument) {
  if (kind == 'p') return memory(pointer(argument));
  if (kind == 'i' || kind == 'f') return std::to_string(argument.value);
  if (kind == 's' && (argument.value == 0 || pointer(argument) == cudaStreamLegacy)) return "default";
  const RankLog& log = ranks_[static_cast<std::size_t>(rank)];
  const auto objects = log.objects.find(kind);
  if (objects == log.objects.end() || !objects->second.contains(pointer(argument))) return {};
  return object_name(kind, rank, objects->second.at(pointer(argument)));
}

std::string Recorder::launch_line(int rank, const vgpu::Call& call) {
  const auto& all = call.arguments;
  std::string line = "launch";
  for (std::size_t i = 1; i <= 7; ++i) line += " " + std::to_string(all[i].value);
  line += " " + argument(rank, 's', all[8]);
  const std::string name = static_cast<const char*>(pointer(all[0]));
  if (all[9].value == 0) return "unknown a launch of " + name + ", which takes an object";
  for (const vgpu::CallArgument& own : all.subspan(10)) {
    const std::string text = argument(rank, own.is_pointer ? 'p' : 'i', own);
    if (text.empty()) return "unknown a launch of " + name + " with memory of the host";
    line += " " + text;
  }
  return line + " \"" + name + "\"";
}

/// The line of a call; none if it is of no matter.
std::optional<std::string> Recorder::line_of(int rank, const vgpu::Call& call) {
  const std::string_view api = call.name;
  const auto& arguments = call.arguments;
  const auto made = [&](char kind, const char* word) {
    make(rank, kind, result(arguments[0]));
    return std::string(word);
  };
  if (is_of_no_matter(api)) return std::nullopt;
  if (api == "launch") return launch_line(rank, call);
  if (api == "cudaMalloc" || api == "cudaMallocHost" || api == "cudaHostAlloc") {
    const auto bytes = static_cast<std::size_t>(arguments[1].value);
    if (bytes == 0) return std::nullopt;
    const void* begin = result(arguments[0]);
    make(rank, 'm', begin);
    const int index = ranks_[static_cast<std::size_t>(rank)].objects['m'].at(begin);
    memory_[static_cast<const std::byte*>(begin)] = {object_name('m', rank, index), bytes};
    return (api == "cudaMalloc" ? "malloc " : "malloc_host ") + std::to_string(bytes);
  }
  if (api == "cudaFree" || api == "cudaFreeHost") {
    if (arguments[0].value == 0) return std::nullopt;
    memory_.erase(static_cast<const std::byte*>(pointer(arguments[0])));
    return "free " + forget(rank, 'm', pointer(arguments[0]));
  }
  if (api.starts_with("cudaStreamCreate")) return made('s', "stream");
  if (api.starts_with("cudaEventCreate")) return made('e', "event");
  if (api == "cublasCreate") return made('h', "blas");
  if (api == "ncclCommInitRank" || api == "ncclCommInitRankConfig")
    return made('n', "comm ") + std::to_string(arguments[1].value);
  if (api == "cudaStreamDestroy") return "stream_destroy " + forget(rank, 's', pointer(arguments[0]));
  if (api == "cudaEventDestroy") return "event_destroy " + forget(rank, 'e', pointer(arguments[0]));
  if (api == "cublasDestroy") return "blas_destroy " + forget(rank, 'h', pointer(arguments[0]));
  if (api == "ncclCommDestroy") return "comm_destroy " + forget(rank, 'n', pointer(arguments[0]));

  const auto known = std::ranges::find(translations(), api, &Translation::api);
  if (known == translations().end()) return "unknown " + std::string(api);
  const LogForm& form = form_of(known->call);
  std::string line(form.word);
  for (std::size_t i = 0; i < known->arguments.size(); ++i) {
    const int which = known->arguments[i];
    const bool dereferenced = which >= kDereferenced;
    const vgpu::CallArgument& from = arguments[static_cast<std::size_t>(which % kDereferenced)];
    const bool is_address = form.arguments[i] == 'p';
    const vgpu::CallArgument address(from.value, true);
    std::uint64_t value = from.value;
    if (dereferenced) value = *static_cast<const std::uint32_t*>(pointer(from));
    if (api.starts_with("cudaMemset") && which == 1) value &= 0xff;  // CUDA takes an int, and uses a byte
    const vgpu::CallArgument bits(value, false);
    const std::string text = argument(rank, form.arguments[i], is_address ? address : bits);
    if (text.empty())
      return "unknown " + std::string(api) + " with memory of the host, or with an object of another rank";
    line += " " + text;
  }
  return line;
}

void Recorder::called(const vgpu::Call& call) {
  if (call.host_thread < 0) return;
  RankLog& log = ranks_[static_cast<std::size_t>(call.host_thread)];
  if (log.finished) return;
  const bool counts = !call.failed || waits(call.name);
  if (counts) {
    if (std::optional<std::string> line = line_of(call.host_thread, call))
      write(call.host_thread, std::move(*line));
  }
  if (!call.failed) return;
  write(call.host_thread, std::string("stopped ") + call.name);
  log.finished = true;
}

std::string Recorder::text(int calls) {
  std::string text =
      "overlap call log 1\nranks " + std::to_string(ranks_.size()) + " calls " + std::to_string(calls) + "\n";
  std::size_t lines = 2;
  const std::vector<std::string> places = places_.resolve();
  for (const RankLog& log : ranks_) {
    lines += log.lines.size();
    for (const Line& line : log.lines) {
      const std::string& place = places[line.place];
      text += line.text + (place.empty() ? "" : " @ " + place) + "\n";
    }
  }
  if (too_long_ || text.size() > kMostLogBytes || lines > kMostLogLines)
    throw LogError("the algorithm makes more calls than a log may have");
  return text;
}

}  // namespace overlap::teaching
