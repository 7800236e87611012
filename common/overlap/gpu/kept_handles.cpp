#include "overlap/gpu/kept_handles.hpp"

#include <cublas_v2.h>

#include <utility>

#include "overlap/gpu/check_cublas.hpp"

namespace overlap {
namespace {

/// Restores the state after cublasCreate(). Above all it removes the stream, which is the caller's and may be
/// destroyed; setting the stream also removes a workspace of the caller's.
bool as_new(cublasContext* handle) {
  return cublasSetStream(handle, nullptr) == CUBLAS_STATUS_SUCCESS &&
         cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST) == CUBLAS_STATUS_SUCCESS &&
         cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH) == CUBLAS_STATUS_SUCCESS;
}

}  // namespace

void DestroyCublas::operator()(cublasContext* handle) const {
  detail::before_release();
  int current = 0;
  cudaGetDevice(&current);
  cudaSetDevice(device);  // cuBLAS requires the handle's GPU to be current
  cublasDestroy(handle);
  cudaSetDevice(current);
}

cublasContext* RankHandles::cublas(int i) {
  CublasHandle& handle = cublas_.at(static_cast<std::size_t>(i));
  if (handle != nullptr) return handle.get();
  if (std::optional<CublasHandle> kept = kept_handles().cublas.take(device_)) {
    handle = std::move(*kept);
  } else {
    cublasHandle_t made = nullptr;
    const DeviceGuard guard(device_);
    CUBLAS_CHECK(cublasCreate(&made));
    handle = CublasHandle(made, DestroyCublas{device_});
  }
  return handle.get();
}

cudaStream_t RankHandles::stream(std::optional<Stream>& stream, StreamPriority priority) {
  if (!stream) stream = kept_handles().streams.take({device_, priority});
  if (!stream) stream.emplace(device_, priority);
  return *stream;
}

bool RankHandles::wait() noexcept {
  bool good = true;
  for (Streams* streams : {&compute_, &transfer_}) {
    for (const std::optional<Stream>& stream : *streams) {
      if (stream) good = cudaStreamSynchronize(*stream) == cudaSuccess && good;
    }
  }
  return good;
}

void RankHandles::give_back() {
  KeptHandles& kept = kept_handles();
  for (const std::size_t i : {1, 0}) {  // index 0 last, so that it is the first to be reused
    if (auto stream = std::exchange(compute_[i], std::nullopt))
      kept.streams.give_back({device_, StreamPriority::kNormal}, std::move(*stream));
    if (auto stream = std::exchange(transfer_[i], std::nullopt))
      kept.streams.give_back({device_, StreamPriority::kHigh}, std::move(*stream));
    if (CublasHandle handle = std::move(cublas_[i]); handle != nullptr && as_new(handle.get()))
      kept.cublas.give_back(device_, std::move(handle));
  }
}

KeptHandles& kept_handles() {
  static KeptHandles& kept = *new KeptHandles;
  return kept;
}

bool drop_idle_stream(int device) {
  KeptHandles& kept = kept_handles();
  // The rescue stream is dropped last, because it must be older than all others of its GPU.
  return kept.streams.take_where([device](const StreamKind& kind) { return kind.device == device; }) ||
         kept.rescue.take(device);
}

void drop_idle_handles() {
  KeptHandles& kept = kept_handles();
  kept.cublas.take_all();
  kept.streams.take_all();
  kept.rescue.take_all();
}

}  // namespace overlap
