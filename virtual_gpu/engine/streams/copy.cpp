#include "engine/streams/copy.hpp"

#include <algorithm>
#include <cstring>

namespace vgpu {
namespace {

std::string place_name(const Region& region) {
  return region.device == kHost ? "the host" : "GPU " + std::to_string(region.device);
}

bool overlaps(const Region& region, std::size_t width, std::size_t height, const void* memory,
              std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(region.data);
  const auto end = begin + (height - 1) * region.pitch + width;
  const auto other = reinterpret_cast<std::uintptr_t>(memory);
  return begin < other + bytes && other < end;
}

/// Device memory must still be there when the operation runs, not only when it is enqueued.
bool alive(Runtime& runtime, const Region& region, const Operation& operation) {
  if (region.device == kHost || runtime.memory().find(region.data) != nullptr) return true;
  runtime.errors().fault(cudaErrorIllegalAddress, operation.describe() + " in " + operation.origin() +
                                                      ", ran after its memory had been freed: " +
                                                      runtime.memory().locate(region.data));
  return false;
}

/// Without peer access CUDA copies between two GPUs through a buffer on the host.
bool direct(Runtime& runtime, int from, int to) {
  return runtime.device(from).may_access(to) || runtime.device(to).may_access(from);
}

/// What completes with `token`; nullptr: nobody holds it any more.
const Operation* holder(Runtime& runtime, const Token& token) {
  for (const auto& device : runtime.devices()) {
    for (const auto& stream : device->streams()) {
      for (const auto& operation : stream->queue()) {
        if (operation->completes(token)) return operation.get();
      }
    }
  }
  return nullptr;
}

}  // namespace

CopyOperation::CopyOperation(Runtime& runtime, Region destination, Region source, std::size_t width,
                             std::size_t height, std::vector<std::byte> staged)
    : runtime_(runtime),
      destination_(destination),
      source_(source),
      width_(width),
      height_(height),
      staged_(std::move(staged)) {}

void CopyOperation::begin(double now) {
  const Machine& machine = runtime_.machine();
  const double bytes = static_cast<double>(width_) * static_cast<double>(height_);
  const double by_host = machine.host_copy_latency_ns + bytes / machine.host_copy_rate;
  const int to = destination_.device, from = source_.device;
  if (from == kHost && to == kHost) {
    end_ = now + by_host;
  } else if (from == kHost) {
    end_ = runtime_.device(to).from_host().book(now, by_host);
    spans = {{to, "copies in", end_ - by_host, end_}};
  } else if (to == kHost) {
    end_ = runtime_.device(from).to_host().book(now, by_host);
    spans = {{from, "copies out", end_ - by_host, end_}};
  } else if (from == to) {
    const double duration = 2 * bytes / machine.memory_rate;  // read and written
    end_ = runtime_.device(to).local().book(now, duration);
    spans = {{to, "copies within", end_ - duration, end_}};
  } else if (direct(runtime_, from, to)) {
    // The engine is taken from the beginning, the link while bytes move: out of one GPU, into the other.
    CopyEngines& engines = runtime_.device(from).between_gpus();
    const Link link = runtime_.link(from, to);
    const double begin = engines.free_from(now), duration = bytes / link.rate;
    const double ready = begin + link.copy_latency_ns;
    end_ = std::max({ready, link.out.free_at(), link.in.free_at()}) + duration;
    engines.occupy_until(end_);
    link.out.occupy_until(end_, duration);
    link.in.occupy_until(end_, duration);
    spans = {{from, "copies to GPUs", begin, end_}};
  } else {
    const double on_host = runtime_.device(from).to_host().book(now, by_host);
    end_ = runtime_.device(to).from_host().book(on_host, by_host);
    spans = {{from, "copies out", on_host - by_host, on_host}, {to, "copies in", end_ - by_host, end_}};
  }
}

void CopyOperation::step(const Step&) {
  if (!alive(runtime_, destination_, *this) || !alive(runtime_, source_, *this)) return;
  for (std::size_t row = 0; row < height_; ++row) {
    const std::byte* from =
        staged_.empty() ? source_.data + row * source_.pitch : staged_.data() + row * width_;
    std::byte* to = destination_.data + row * destination_.pitch;
    if (staged_.empty()) hb::read(stream->contexts().own(), site, from, width_);
    hb::write(stream->contexts().own(), site, to, width_);
    std::memmove(to, from, width_);
  }
  runtime_.traffic().add(source_.device, destination_.device, width_ * height_, 1);
  if (width_ * height_ <= sizeof(std::uint64_t))  // so small that it may be a signal
    runtime_.foreign_words().wrote(runtime_.memory(), destination_.data, stream->device());
  finish(end_);
}

std::string CopyOperation::describe() const {
  return "copy of " + std::to_string(width_ * height_) + " bytes from " + place_name(source_) + " to " +
         place_name(destination_);
}

int CopyOperation::pulls_from(int device) const {
  const int to = destination_.device, from = source_.device;
  if (from == kHost || to == kHost || from == to || from == device) return kHost;
  return direct(runtime_, from, to) ? from : kHost;
}

std::string CopyOperation::progress() const {
  const bool others_are_complete =
      std::all_of(waits_for.begin(), waits_for.end(), [](const Token& token) { return token->complete; });
  const Token first_done = pulls == nullptr ? nullptr : pulls->first();
  if (begun || !others_are_complete || first_done == nullptr || first_done == done)
    return Operation::progress();
  std::string text = "waiting for its turn in " + place_name(source_) + "'s queue of pulls";
  const Operation* first = holder(runtime_, first_done);
  if (first == nullptr) return text;
  text += ", behind " + first->describe() + " in " + first->origin();
  const Operation* head = first->stream->head();
  return text +
         (head == first ? ", itself " + first->progress() : ", which is queued behind " + head->describe());
}

Work CopyOperation::work() const {
  return {"copy", describe(), width_ * height_, source_.device, destination_.device};
}

bool CopyOperation::touches(const void* memory, std::size_t bytes) const {
  return overlaps(destination_, width_, height_, memory, bytes) ||
         (staged_.empty() && overlaps(source_, width_, height_, memory, bytes));
}

void FillOperation::begin(double now) {
  const double duration = static_cast<double>(bytes_) / runtime_.machine().memory_rate;
  if (destination_.device == kHost) {
    end_ = now + duration;
  } else {
    end_ = runtime_.device(destination_.device).local().book(now, duration);
    spans = {{destination_.device, "copies within", end_ - duration, end_}};
  }
}

void FillOperation::step(const Step&) {
  if (!alive(runtime_, destination_, *this)) return;
  hb::write(stream->contexts().own(), site, destination_.data, bytes_);
  std::memset(destination_.data, value_, bytes_);
  finish(end_);
}

std::string FillOperation::describe() const {
  return "memset of " + std::to_string(bytes_) + " bytes on " + place_name(destination_);
}

Work FillOperation::work() const { return {"memset", describe(), bytes_, kHost, destination_.device}; }

bool FillOperation::touches(const void* memory, std::size_t bytes) const {
  return overlaps(destination_, bytes_, 1, memory, bytes);
}

}  // namespace vgpu
