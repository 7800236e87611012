// The timeline of real GPUs, from CUPTI's activity records ("CUPTI Activity API" in its documentation).
//
// The record of a kernel, a copy or a memset has times and a correlation id: the number of the CUDA call that
// enqueued it. Labels are external ids that CUPTI keeps for each thread: for every CUDA call it then writes a
// record that pairs the thread's innermost external id with the call's number.
#include <cupti.h>
#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

#include "overlap/gpu/error.hpp"
#include "overlap/gpu/timeline_record.hpp"

namespace overlap::backend {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;  // "1 to 10 MB", says CUPTI's documentation
constexpr std::size_t kBufferAlignment = 8;                 // that CUPTI asks for
constexpr CUpti_ExternalCorrelationKind kLabels = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

// The data from CUPTI's threads. An external id is the index of its labels in `labels`, plus one.
struct Recorder {
  struct Operation {
    TimelineEntry entry;
    std::uint32_t call;  // correlation id
  };
  std::mutex mutex;
  std::vector<Operation> operations;
  std::unordered_map<std::uint32_t, std::uint64_t> external_ids;  // by call
  std::vector<std::vector<std::string>> labels;
  std::size_t lost = 0;
  bool started = false;  // written once, before there are threads
};

// Never destroyed: CUPTI may return its last buffers while the process ends.
Recorder& recorder() {
  static auto* const only = new Recorder;
  return *only;
}

// The open labels of the calling thread; here each rank is a thread.
std::vector<std::string>& open_labels() {
  thread_local std::vector<std::string> labels;
  return labels;
}

std::string problem(const char* call, CUptiResult result) {
  const char* name = nullptr;
  if (cuptiGetResultString(result, &name) != CUPTI_SUCCESS || name == nullptr) name = "unknown error";
  return std::string(call) + ": " + name;
}

void require(const char* call, CUptiResult result) {
  if (result == CUPTI_SUCCESS) return;
  throw UsageError("--timeline: CUPTI, the CUDA toolkit's recorder, refuses: " + problem(call, result));
}

// Kernels of this repository by their bare names, as virtual GPUs call them: without return type, namespaces
// and arguments. Names of cuBLAS's and NCCL's kernels stay whole, because the rest describes the kernel.
std::string bare_if_ours(std::string name) {
  const std::string ours = "overlap::", anonymous = "(anonymous namespace)::";
  for (std::size_t at; (at = name.find(anonymous)) != std::string::npos;) name.erase(at, anonymous.size());
  const std::size_t begin = name.find(ours);
  if (begin == std::string::npos || name.find_first_of("<(") < begin) return name;
  const std::size_t end = std::min(name.find_first_of("<(", begin), name.size());
  const std::size_t last = name.rfind("::", end) + 2;
  return name.substr(last, end - last);
}

std::string demangled(const char* name) {
  if (name == nullptr) return "kernel";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         std::free);
  return status == 0 ? bare_if_ours(text.get()) : name;
}

// The fields that all records have. Each kind has a structure of its own, and newer versions of CUPTI append
// to them.
template <typename Record>
TimelineEntry entry_of(const Record& record, const char* kind) {
  const int gpu = static_cast<int>(record.deviceId);
  return {.kind = kind,
          .gpu = gpu,
          .stream_gpu = gpu,
          .stream = static_cast<int>(record.streamId),
          .begin_ns = static_cast<double>(record.start),
          .end_ns = static_cast<double>(record.end)};
}

template <typename Record>
void keep(const Record& record, TimelineEntry entry) {
  if (record.start == 0 || record.end < record.start) {
    ++recorder().lost;  // CUPTI's value for a missing time
    return;
  }
  recorder().operations.push_back({std::move(entry), record.correlationId});
}

void keep_kernel(const CUpti_Activity* activity) {
  const auto& record = *reinterpret_cast<const CUpti_ActivityKernel9*>(activity);
  TimelineEntry entry = entry_of(record, "kernel");
  entry.name = demangled(record.name);
  keep(record, std::move(entry));
}

void keep_memset(const CUpti_Activity* activity) {
  const auto& record = *reinterpret_cast<const CUpti_ActivityMemset4*>(activity);
  TimelineEntry entry = entry_of(record, "memset");
  entry.engine = "copies within";
  entry.bytes = record.bytes;
  entry.to = entry.gpu;
  keep(record, std::move(entry));
}

void keep_copy(const CUpti_Activity* activity) {
  const auto& record = *reinterpret_cast<const CUpti_ActivityMemcpy5*>(activity);
  TimelineEntry entry = entry_of(record, "copy");
  entry.bytes = record.bytes;
  switch (record.copyKind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      entry.engine = "copies in";
      entry.to = entry.gpu;
      break;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      entry.engine = "copies out";
      entry.from = entry.gpu;
      break;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      break;
    default:
      entry.engine = "copies within";
      entry.from = entry.to = entry.gpu;
  }
  keep(record, std::move(entry));
}

void keep_peer_copy(const CUpti_Activity* activity) {
  const auto& record = *reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(activity);
  TimelineEntry entry = entry_of(record, "copy");
  entry.bytes = record.bytes;
  entry.from = static_cast<int>(record.srcDeviceId);
  entry.to = static_cast<int>(record.dstDeviceId);
  entry.engine = entry.gpu == entry.from ? "copies to GPUs" : "copies from GPUs";
  keep(record, std::move(entry));
}

void keep(const CUpti_Activity* activity) {
  switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return keep_kernel(activity);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return keep_copy(activity);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return keep_peer_copy(activity);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return keep_memset(activity);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& record = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(activity);
      if (record.externalKind == kLabels) recorder().external_ids[record.correlationId] = record.externalId;
      return;
    }
    default:  // the calls themselves: recorded only because labels need them
      return;
  }
}

// CUPTI calls these two from threads of its own, and no exception may reach it.
void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;  // CUPTI then drops records, and counts them
  *max_records = 0;                                // as many as fit
}

void CUPTIAPI take_buffer(CUcontext /*unused*/, std::uint32_t /*unused*/, std::uint8_t* buffer,
                          std::size_t /*bytes*/, std::size_t valid_bytes) {
  const std::lock_guard lock(recorder().mutex);
  try {
    CUpti_Activity* activity = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid_bytes, &activity) == CUPTI_SUCCESS) keep(activity);
  } catch (...) {  // no memory
    ++recorder().lost;
  }
  std::size_t dropped = 0;
  if (cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) recorder().lost += dropped;
  std::free(buffer);
}

}  // namespace

void record_timeline() {
  require("cuptiActivityRegisterCallbacks", cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME,
        CUPTI_ACTIVITY_KIND_DRIVER}) {
    require("cuptiActivityEnable", cuptiActivityEnable(kind));
  }
  recorder().started = true;
}

bool recording_timeline() { return recorder().started; }

void push_timeline_label(const std::string& label) {
  open_labels().push_back(label);
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(recorder().mutex);
    recorder().labels.push_back(open_labels());
    id = recorder().labels.size();
  }
  require("cuptiActivityPushExternalCorrelationId", cuptiActivityPushExternalCorrelationId(kLabels, id));
}

void pop_timeline_label() {
  if (open_labels().empty()) return;
  open_labels().pop_back();
  std::uint64_t id = 0;
  cuptiActivityPopExternalCorrelationId(kLabels, &id);  // called by destructors, so failures are ignored
}

std::vector<TimelineEntry> timeline() {
  const CUptiResult flushed = cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  if (flushed != CUPTI_SUCCESS)
    throw std::runtime_error("--timeline: " + problem("cuptiActivityFlushAll", flushed));
  const std::lock_guard lock(recorder().mutex);
  if (recorder().lost > 0) {
    throw std::runtime_error("--timeline: CUPTI lost " + std::to_string(recorder().lost) +
                             " records, so the file would not tell all");
  }
  std::vector<TimelineEntry> entries;
  for (const auto& [entry, call] : recorder().operations) {
    entries.push_back(entry);
    const auto id = recorder().external_ids.find(call);
    if (id != recorder().external_ids.end()) entries.back().labels = recorder().labels.at(id->second - 1);
  }
  return entries;
}

std::vector<LinkRecord> timeline_links() { return {}; }

}  // namespace overlap::backend
