#include "libraries/cub/device_algorithm.hpp"

#include <algorithm>
#include <cstring>

#include "check/memory_state.hpp"
#include "engine/host/api_call.hpp"
#include "engine/streams/stream_call.hpp"

namespace vgpu {
namespace {

constexpr std::int64_t kTile = 4096;  // items of one block

AlgorithmOperation* running_algorithm = nullptr;

std::uint64_t tiles(const Machine& machine, const AlgorithmCall& call) {
  return static_cast<std::uint64_t>(
      std::clamp<std::int64_t>((call.items + kTile - 1) / kTile, 1, machine.multiprocessors));
}

}  // namespace

AlgorithmOperation::AlgorithmOperation(Runtime& runtime, Device& device, const AlgorithmCall& call,
                                       std::byte* temporary, std::unique_ptr<Algorithm> algorithm)
    : LibraryWork(runtime, device, tiles(runtime.machine(), call), call.bytes / runtime.machine().memory_rate,
                  call.launches),
      call_(call),
      temporary_(temporary),
      algorithm_(std::move(algorithm)) {}

std::string AlgorithmOperation::describe() const {
  return std::string(call_.name) + " of " + std::to_string(call_.items) + " items";
}

bool AlgorithmOperation::touches(const void* memory, std::size_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(memory);
  return algorithm_->touches(memory, bytes) ||
         (temporary_ < begin + bytes && begin < temporary_ + call_.temporary_bytes);
}

template <class Part>
bool AlgorithmOperation::run(Part part) {
  bool alive = false;
  running_algorithm = this;
  call_in(runtime_.errors(), *stream, site, [&] { alive = part(); });
  running_algorithm = nullptr;
  return alive;
}

std::vector<std::uint64_t> AlgorithmOperation::marks() const {
  return std::vector<std::uint64_t>(call_.temporary_bytes / sizeof(std::uint64_t), id);
}

bool AlgorithmOperation::first_block_begins() {
  site.call = call_.name;
  if (!may_access("d_temp_storage", temporary_, call_.temporary_bytes)) return false;
  hb::write(stream->contexts().own(), site, temporary_, call_.temporary_bytes);
  std::memcpy(temporary_, marks().data(), call_.temporary_bytes);
  return run([this] { return algorithm_->read(0, call_.items / 2); });
}

bool AlgorithmOperation::last_block_ends() {
  if (!may_access("d_temp_storage", temporary_, call_.temporary_bytes)) return false;
  hb::write(stream->contexts().own(), site, temporary_, call_.temporary_bytes);
  const bool spoiled = std::memcmp(temporary_, marks().data(), call_.temporary_bytes) != 0;
  return run([&] { return algorithm_->read(call_.items / 2, call_.items) && algorithm_->finish(spoiled); });
}

bool algorithm_may_access(const char* name, const void* memory, std::size_t bytes) {
  const hb::RuntimeScope scope;
  return running_algorithm->may_access(name, memory, bytes);
}

bool algorithm_is_written(const void* item) { return memcheck::written(item); }
void algorithm_forget_written(void* result, std::size_t bytes) { memcheck::forget_written(result, bytes); }

cudaError_t call_algorithm(const AlgorithmCall& call, void* temporary, std::size_t& temporary_bytes,
                           cudaStream_t stream_handle, std::unique_ptr<Algorithm> algorithm) {
  cudaError_t refused = cudaSuccess;  // CUB returns it; cudaGetLastError does not know of it
  const cudaError_t error = api_call(call.name, [&](Runtime& runtime) {
    try {
      if (call.items < 0) throw ApiError(cudaErrorInvalidValue, "num_items is " + std::to_string(call.items));
      if (call.wrong != nullptr) throw ApiError(cudaErrorInvalidValue, call.wrong);
      if (temporary == nullptr) {
        temporary_bytes = call.temporary_bytes;
        return;
      }
      if (temporary_bytes < call.temporary_bytes) {
        throw ApiError(cudaErrorInvalidValue, std::to_string(temporary_bytes) +
                                                  " bytes of temporary storage, it needs " +
                                                  std::to_string(call.temporary_bytes));
      }
      Stream& stream = runtime.stream(stream_handle);
      Device& device = runtime.current_device();
      if (stream.device() != device.id()) {
        throw ApiError(cudaErrorInvalidResourceHandle,
                       "is called on GPU " + std::to_string(device.id()) + " for " + stream.name());
      }
      runtime.queues().enqueue(
          stream, std::make_unique<AlgorithmOperation>(
                      runtime, device, call, static_cast<std::byte*>(temporary), std::move(algorithm)));
    } catch (const ApiError& refusal) {
      refused = refusal.code();
      runtime.errors().note(call.name, refusal.what());
    }
  });
  return error == cudaSuccess ? refused : error;
}

}  // namespace vgpu
