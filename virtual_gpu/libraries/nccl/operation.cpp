#include "libraries/nccl/operation.hpp"

#include <algorithm>

namespace vgpu::nccl {
namespace {

// A block of NCCL's kernel has up to 640 threads and, on an H100, about 82 of 228 KiB of shared memory: too
// large beside a GEMM's tile, small enough for small kernels beside it.
Footprint channel_footprint(const Machine& machine) {
  return {640, machine.shared_per_multiprocessor * 3 / 8};
}

bool overlap(const std::byte* begin, std::size_t bytes, const void* memory, std::size_t memory_bytes) {
  const auto a = reinterpret_cast<std::uintptr_t>(begin), b = reinterpret_cast<std::uintptr_t>(memory);
  return bytes > 0 && a < b + memory_bytes && b < a + bytes;
}

}  // namespace

NcclOperation::NcclOperation(Runtime& runtime, std::shared_ptr<Communicator> communicator)
    : runtime_(runtime),
      communicator_(std::move(communicator)),
      device_(runtime.device(communicator_->device)),
      footprint_(channel_footprint(runtime.machine())),
      // NCCL's only rank copies, without a kernel of its own. And no machine has a channel without a place.
      channels_wanted_(communicator_->clique->ranks() == 1
                           ? 0
                           : std::min(communicator_->max_channels, runtime.machine().multiprocessors)) {
  communicator_->pending.insert(this);
}

NcclOperation::~NcclOperation() {
  communicator_->pending.erase(this);
  lose_parts();
}

void NcclOperation::add(std::shared_ptr<Exchange> exchange, const Call& call, Stream& stream) {
  parts_.push_back({std::move(exchange), Exchange::index_of(call)});
  Side& side = parts_.back().side();
  side.stream = &stream;
  const Machine& machine = runtime_.machine();
  side.rate = machine.nccl_rate * communicator_->max_channels / machine.nccl_channels;
}

void NcclOperation::lose_parts() {
  for (const Part& part : parts_) {
    if (part.side().state != Side::State::kDone) part.exchange->lose(part.index);
  }
}

void NcclOperation::abort(double now) {
  aborted_ = true;
  lose_parts();
  parts_.clear();
  if (!begun) return;  // it ends where it begins
  release_channels(std::max(now, start_));
  finish(std::max(now, start_));
}

void NcclOperation::begin(double now) {
  start_ = arrival_ = channels_wanted_ == 0 ? now : now + runtime_.machine().launch_ns;
  if (aborted_) {
    finish(now);
  } else if (channels_wanted_ == 0) {
    arrive();
  }
}

void NcclOperation::offer(std::vector<Step>& steps) {
  if (channels_.size() < channels_wanted_) {
    if (place_version_ != device_.multiprocessors().version()) {
      has_place_ = device_.multiprocessors().find(footprint_, start_, runtime_.schedule().random(), place_);
      place_version_ = device_.multiprocessors().version();
    }
    if (has_place_) steps.push_back({place_.time, this, static_cast<std::int64_t>(channels_.size())});
    return;
  }
  double end = arrival_;
  for (const Part& part : parts_) {
    if (!part.exchange->can_finish(part.index)) return;
    end = std::max(end, *part.side().end);
  }
  steps.push_back({end, this, static_cast<std::int64_t>(channels_wanted_)});
}

void NcclOperation::step(const Step& step) {
  if (channels_.size() < channels_wanted_) {
    start_channel(step.time);
    return;
  }
  // First all reads: in place, a part's result goes where its input is.
  for (const Part& part : parts_) part.exchange->stage(part.index, *this);
  for (const Part& part : parts_) part.exchange->deliver(part.index, *this);
  for (const Part& part : parts_) part.exchange->done(part.index);
  release_channels(step.time);
  communicator_->idle_from = std::max(communicator_->idle_from, step.time);
  finish(step.time);
}

void NcclOperation::start_channel(double time) {
  occupied_from = channels_.empty() ? time : std::min(occupied_from, time);
  channels_.push_back({place_.multiprocessor, device_.multiprocessors().occupy(footprint_, place_)});
  arrival_ = std::max(arrival_, time);
  if (channels_.size() == channels_wanted_) arrive();
}

void NcclOperation::arrive() {
  for (const Part& part : parts_) part.exchange->arrive(part.index, arrival_);
}

void NcclOperation::release_channels(double end) {
  for (const Channel& channel : channels_) {
    device_.multiprocessors().release(channel.place_id, channel.multiprocessor, end);
  }
}

std::string NcclOperation::describe() const {
  if (parts_.empty()) return "aborted NCCL calls";
  if (parts_.size() == 1) return parts_.front().side().call.describe();
  std::string text = "group of " + std::to_string(parts_.size()) + " NCCL calls (";
  constexpr std::size_t kShown = 4;
  for (std::size_t i = 0; i < std::min(parts_.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + parts_[i].side().call.describe();
  }
  return text + (parts_.size() > kShown ? ", ...)" : ")");
}

std::string NcclOperation::progress() const {
  if (!begun) return Operation::progress();
  if (channels_.size() < channels_wanted_) {
    return std::to_string(channels_wanted_ - channels_.size()) + " of " + std::to_string(channels_wanted_) +
           " channels cannot start (no free multiprocessor)";
  }
  for (const Part& part : parts_) {
    const std::string missing = part.exchange->missing(part.index);
    if (missing.empty()) continue;
    return parts_.size() == 1 ? missing : part.side().call.describe() + " " + missing;
  }
  return "running";
}

bool NcclOperation::touches(const void* memory, std::size_t bytes) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
    const Call& call = part.side().call;
    return overlap(call.send, call.send_bytes(), memory, bytes) ||
           overlap(call.receive, call.receive_bytes(), memory, bytes);
  });
}

}  // namespace vgpu::nccl
