#include "libraries/nccl/exchange.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "libraries/nccl/reduce.hpp"

namespace vgpu::nccl {
namespace {

const char* name_of(ncclDataType_t type) {
  static constexpr std::array kNames = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                        "uint64", "float16", "float32", "float64", "bfloat16"};
  return kNames[type];
}
const char* name_of(ncclRedOp_t op) {
  static constexpr std::array kNames = {"sum", "prod", "max", "min", "avg"};
  return kNames[op];
}
bool reduces(Kind kind) {
  return kind == Kind::kReduceScatter || kind == Kind::kAllReduce || kind == Kind::kReduce;
}
std::string rank_name(int rank) { return "rank " + std::to_string(rank); }

/// Elements of the part of an all-reduce that ends its first way round the ring at `rank`.
std::size_t chunk(const Call& call, int rank) {
  const std::size_t ranks = call.ranks;
  return call.count / ranks + (static_cast<std::size_t>(rank) < call.count % ranks ? 1 : 0);
}

}  // namespace

std::size_t Call::bytes() const { return count * size_of(type); }
std::size_t Call::send_bytes() const {
  if (send == nullptr) return 0;
  return kind == Kind::kReduceScatter ? bytes() * ranks : bytes();
}
std::size_t Call::receive_bytes() const {
  if (receive == nullptr) return 0;
  return kind == Kind::kAllGather ? bytes() * ranks : bytes();
}

bool Call::differs_from(const Call& other) const {
  if (count != other.count || type != other.type) return true;
  if (is_pair()) return false;
  return kind != other.kind || peer != other.peer || (reduces(kind) && op != other.op);
}

const char* name_of(Kind kind) {
  static constexpr std::array kNames = {"ncclAllGather", "ncclReduceScatter", "ncclAllReduce",
                                        "ncclBroadcast", "ncclReduce",        "ncclSend",
                                        "ncclRecv"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string Call::describe() const {
  std::string text = std::string(name()) + " of " + std::to_string(bytes()) + " bytes";
  if (is_pair()) text += (kind == Kind::kSend ? " to " : " from ") + rank_name(peer);
  return text;
}

std::string Call::describe_fully() const {
  std::string text = rank_name(rank) + "'s " + name() + " of " + std::to_string(count) + " " + name_of(type);
  if (is_pair()) {
    text += (kind == Kind::kSend ? " to " : " from ") + rank_name(peer);
  } else if (reduces(kind)) {
    text += std::string(" (") + name_of(op) + ")";
  }
  if (kind == Kind::kBroadcast || kind == Kind::kReduce) text += " with root " + std::to_string(peer);
  const std::string line = hb::describe(site);
  return line.empty() ? text : text + ", called at " + line;
}

Side& Exchange::join(Call call) {
  auto& side = sides_[index_of(call)];
  const int device = devices_[call.rank];
  side = std::make_unique<Side>(std::move(call), device);
  return *side;
}

const Side* Exchange::first() const {
  for (const auto& side : sides_) {
    if (side != nullptr) return side.get();
  }
  return nullptr;
}

bool Exchange::complete() const {
  return std::none_of(sides_.begin(), sides_.end(), [](const auto& side) { return side == nullptr; });
}

std::vector<int> Exchange::awaited(int index) const {
  const Call& call = sides_[index]->call;
  std::vector<int> others;
  const auto all = [&] {
    for (int i = 0; i < static_cast<int>(sides_.size()); ++i) {
      if (i != index) others.push_back(i);
    }
  };
  switch (call.kind) {
    case Kind::kBroadcast:  // the data go from the root to all; nobody else is needed, and NCCL promises no
                            // more
      if (call.peer != index) others.push_back(call.peer);
      break;
    case Kind::kReduce:
      if (call.peer == index) all();
      break;
    default:
      all();
  }
  return others;
}

std::vector<int> Exchange::sources(int index) const {
  const Call& call = sides_[index]->call;
  std::vector<int> from;
  switch (call.kind) {
    case Kind::kBroadcast:
      from = {call.peer};
      break;
    case Kind::kSend:
      break;
    case Kind::kReceive:
      from = {0};
      break;
    case Kind::kReduce:
      if (call.peer != index) break;
      [[fallthrough]];
    default:
      for (int i = 0; i < static_cast<int>(sides_.size()); ++i) from.push_back(i);
  }
  return from;
}

Exchange::Load Exchange::load(int index) const {
  const Call& call = sides_[index]->call;
  const std::size_t bytes = call.bytes();
  const int ranks = call.ranks;
  if (call.is_pair()) {
    if (call.peer == call.rank) return {0, 0, call.kind == Kind::kReceive ? bytes : 0};
    return call.kind == Kind::kSend ? Load{bytes, 0, 0} : Load{0, bytes, 0};
  }
  const bool in_place = call.send == call.receive;
  if (ranks == 1) return {0, 0, in_place ? 0 : bytes};
  const int next = (index + 1) % ranks, previous = (index + ranks - 1) % ranks;
  switch (call.kind) {
    case Kind::kAllReduce: {
      // First each part but the rank's own, then each but the next rank's, which that one has already.
      const std::size_t size = size_of(call.type);
      return {2 * bytes - size * (chunk(call, index) + chunk(call, next)),
              2 * bytes - size * (chunk(call, previous) + chunk(call, index)), 0};
    }
    case Kind::kBroadcast:  // along the chain that begins at the root
      return {next == call.peer ? 0 : bytes, index == call.peer ? 0 : bytes, 0};
    case Kind::kReduce:  // along the chain that ends at the root
      return {index == call.peer ? 0 : bytes, previous == call.peer ? 0 : bytes, 0};
    default:
      return {bytes * (ranks - 1), bytes * (ranks - 1), 0};
  }
}

double Exchange::book(int index) {
  const Machine& machine = runtime_.machine();
  const Side& side = *sides_[index];
  double ready = side.arrival;
  for (int other : awaited(index)) ready = std::max(ready, sides_[other]->arrival);
  const Load moved = load(index);
  // The latency counts from the launch of the kernel, which a single rank does without.
  if (side.call.ranks > 1) ready += std::max(0.0, machine.nccl_latency_ns - machine.launch_ns);
  // Without peer access, all passes through the host's memory: up and down, by all GPUs.
  const double rate = machine.peer_access ? side.rate : std::min(side.rate, machine.host_copy_rate / 2);
  const auto is_near = [&](int rank) { return !machine.between_nodes(side.device, devices_[rank]); };
  // A pair in two nodes uses their two rails. A collective has a ring for each rank of a node, over that
  // rank's rails, so that every rail carries its part.
  const bool pair = side.call.is_pair(), near_pair = pair && is_near(side.call.peer);
  int near = 0;
  for (int rank = 0; rank < side.call.ranks; ++rank) near += is_near(rank) ? 1 : 0;
  const bool rails = pair ? !near_pair : near < side.call.ranks;
  if (rails) ready += machine.rail_latency_ns;
  Device& device = runtime_.device(side.device);
  double end = ready + 2.0 * static_cast<double>(moved.local) / machine.memory_rate;
  const auto book = [&](Port& port, std::size_t bytes, double port_rate) {
    if (bytes > 0) end = std::max(end, port.book(ready, static_cast<double>(bytes) / port_rate));
  };
  if (!pair || near_pair) {
    book(device.egress(), moved.out, rate);
    book(device.ingress(), moved.in, rate);
  }
  if (rails) {
    const double rail_rate = std::min(rate, machine.rail_rate);
    const std::size_t parts = pair ? 1 : static_cast<std::size_t>(near);
    book(device.rail_out(), moved.out / parts, rail_rate);
    book(device.rail_in(), moved.in / parts, rail_rate);
  }
  return end;
}

void Exchange::arrive(int index, double time) {
  sides_[index]->state = Side::State::kArrived;
  sides_[index]->arrival = time;
  const auto has_arrived = [&](int i) {
    return sides_[i] != nullptr && sides_[i]->state != Side::State::kQueued &&
           sides_[i]->state != Side::State::kLost;
  };
  std::vector<int> known;
  for (int i = 0; i < static_cast<int>(sides_.size()); ++i) {
    if (!has_arrived(i) || sides_[i]->end) continue;
    const std::vector<int> others = awaited(i);
    if (std::all_of(others.begin(), others.end(), has_arrived)) known.push_back(i);
  }
  for (int i : known) sides_[i]->end = book(i);
  // A side ends no earlier than what it gets: where all wait for all, one busy link holds up everybody.
  for (int i : known) {
    double end = *sides_[i]->end;
    for (int other : awaited(i)) end = std::max(end, sides_[other]->end.value_or(0));
    sides_[i]->end = end;
  }
}

void Exchange::lose(int index) {
  sides_[index]->state = Side::State::kLost;
  any_lost_ = true;
}

bool Exchange::can_finish(int index) const {
  if (!sides_[index]->end) return false;
  if (!any_lost_) return true;
  const std::vector<int> others = awaited(index);
  return std::none_of(others.begin(), others.end(),
                      [&](int other) { return sides_[other]->state == Side::State::kLost; });
}

/// Memory must still be there when the operation runs, not only when it is enqueued.
bool Exchange::alive(const void* memory, const Side& side, const Operation& operation) {
  if (runtime_.memory().find(memory) != nullptr) return true;
  runtime_.errors().fault(cudaErrorIllegalAddress,
                          side.call.describe_fully() + ", in " + operation.origin() +
                              ", ran after its memory had been freed: " + runtime_.memory().locate(memory));
  return false;
}

void Exchange::stage(int index, const Operation& operation) {
  Side& side = *sides_[index];
  const std::size_t bytes = side.call.send_bytes();
  if (side.staged) return;
  side.staged = true;
  if (bytes > 0 && alive(side.call.send, side, operation)) {
    hb::read(side.stream->contexts().own(), side.call.site, side.call.send, bytes);
    side.sent.data.assign(side.call.send, side.call.send + bytes);
    side.sent.written.read(0, side.call.send, bytes);
  }
  side.sent.data.resize(bytes);
  hb::release(side.stream->contexts().own(), &side);
}

void Exchange::write(Side& side, std::size_t offset, const Bytes& from, std::size_t first, std::size_t bytes,
                     const Operation& operation) {
  std::byte* to = side.call.receive + offset;
  if (bytes == 0 || !alive(to, side, operation)) return;
  hb::write(side.stream->contexts().own(), side.call.site, to, bytes);
  std::memcpy(to, from.data.data() + first, bytes);
  from.written.write(to, first, bytes);
}

const Bytes& Exchange::reduced() {
  if (!reduced_) {
    std::vector<const std::byte*> inputs;
    for (const auto& side : sides_) inputs.push_back(side->sent.data.data());
    const Call& call = sides_.front()->call;
    const std::size_t count = call.kind == Kind::kReduceScatter ? call.count * call.ranks : call.count;
    reduced_ = Bytes{reduce(inputs, count, call.type, call.op), {}};
    for (const auto& side : sides_) reduced_->written.keep_if_in(side->sent.written);
  }
  return *reduced_;
}

void Exchange::deliver(int index, const Operation& operation) {
  Side& side = *sides_[index];
  const Call& call = side.call;
  const std::vector<int> from = sources(index);
  for (int source : from) {
    stage(source, operation);
    hb::acquire(side.stream->contexts().own(), sides_[source].get());
  }
  if (from.empty() || call.receive == nullptr) return;
  const std::size_t bytes = call.bytes();
  switch (call.kind) {
    case Kind::kAllGather:
      for (int source : from) {
        // In place, the rank's own part is there already; it is only read.
        if (source == index && call.send == call.receive + index * bytes) continue;
        write(side, source * bytes, sides_[source]->sent, 0, bytes, operation);
      }
      break;
    case Kind::kBroadcast:
      if (call.send == call.receive && index == call.peer) break;
      [[fallthrough]];
    case Kind::kReceive:
      write(side, 0, sides_[from.front()]->sent, 0, bytes, operation);
      break;
    case Kind::kReduceScatter:
      write(side, 0, reduced(), index * bytes, bytes, operation);
      break;
    default:
      write(side, 0, reduced(), 0, bytes, operation);
  }
}

void Exchange::done(int index) {
  Side& side = *sides_[index];
  side.state = Side::State::kDone;
  const std::size_t out = load(index).out;
  const Call& call = side.call;
  if (out == 0) return;
  const int receiver = call.is_pair() ? call.peer : (index + 1) % call.ranks;
  const bool in_one = call.is_pair() || call.kind == Kind::kBroadcast || call.kind == Kind::kReduce;
  const int copies = in_one ? 1 : (call.kind == Kind::kAllReduce ? 2 : 1) * (call.ranks - 1);
  runtime_.traffic().add(side.device, devices_[receiver], out, static_cast<std::uint64_t>(copies));
}

std::string Exchange::missing(int index) const {
  std::string text;
  for (int other : awaited(index)) {
    const Side* side = sides_[other].get();
    if (side != nullptr && side->state != Side::State::kQueued && side->state != Side::State::kLost) continue;
    const Call& call = sides_[index]->call;
    text += text.empty() ? "waits for " : ", ";
    if (call.is_pair()) {
      text += std::string("its ") + (call.kind == Kind::kSend ? "ncclRecv" : "ncclSend");
    } else {
      text += rank_name(other);
    }
    if (side == nullptr) {
      text += call.is_pair() ? "" : " (not called)";
    } else if (side->state == Side::State::kLost) {
      text += " (discarded)";
    } else {
      text += " (behind other work of " + side->stream->name() + ")";
    }
  }
  return text;
}

}  // namespace vgpu::nccl
