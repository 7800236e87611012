#include "libraries/nccl/communicator.hpp"

#include <algorithm>

#include "libraries/nccl/operation.hpp"

namespace vgpu::nccl {

State& state(Runtime& runtime) { return runtime.libraries().of<State>(); }

Group& group(Runtime& runtime) { return runtime.host().libraries().of<Group>(); }

std::shared_ptr<Communicator> communicator(Runtime& runtime, ncclComm_t handle) {
  if (handle == nullptr) throw Failure(ncclInvalidArgument, "the communicator is null");
  const auto& all = state(runtime).communicators;
  const auto found = all.find(handle);
  if (found == all.end()) {
    throw Failure(ncclInvalidArgument, "this communicator does not exist (any more)");
  }
  return found->second;
}

void Clique::join(int rank, int device) {
  if (!refusal_.empty()) throw Failure(ncclInvalidUsage, refusal_);
  if (devices_[rank] >= 0) {
    throw Failure(ncclInvalidUsage, "rank " + std::to_string(rank) +
                                        " of this id has a communicator already; a new clique "
                                        "needs a new id");
  }
  const auto same = std::find(devices_.begin(), devices_.end(), device);
  if (same != devices_.end()) {
    refuse("ranks " + std::to_string(same - devices_.begin()) + " and " + std::to_string(rank) +
           " are both on GPU " + std::to_string(device) + "; NCCL wants one GPU for each rank");
    throw Failure(ncclInvalidUsage, refusal_);
  }
  devices_[rank] = device;
  ++joined_;
}

std::shared_ptr<Exchange> Clique::next_collective(Runtime& runtime, int rank) {
  const std::uint64_t number = called_[rank]++;
  if (number == first_open_ + open_.size()) {
    open_.push_back(std::make_shared<Exchange>(runtime, ranks(), devices_));
  }
  return open_[number - first_open_];
}

std::shared_ptr<Exchange> Clique::next_pair(Runtime& runtime, const Call& call) {
  const bool sends = call.kind == Kind::kSend;
  auto& halves = halves_[sends ? std::pair(call.rank, call.peer) : std::pair(call.peer, call.rank)];
  // All halves of a pair of ranks are of one kind: sends, or receives.
  if (!halves.empty() && halves.front()->side(Exchange::index_of(call)) == nullptr) {
    auto exchange = halves.front();
    halves.pop_front();
    return exchange;
  }
  halves.push_back(std::make_shared<Exchange>(runtime, 2, devices_));
  return halves.back();
}

std::shared_ptr<Exchange> Clique::match(Runtime& runtime, Call call) {
  if (!mismatch_.empty()) {
    throw Failure(ncclInvalidUsage,
                  "the communicator cannot be used any more, because calls did not match: " + mismatch_);
  }
  auto exchange = call.is_pair() ? next_pair(runtime, call) : next_collective(runtime, call.rank);
  const Side* other = exchange->first();
  if (other != nullptr && other->call.differs_from(call)) {
    mismatch_ = call.describe_fully() + ", meets " + other->call.describe_fully();
    throw Failure(ncclInvalidUsage, mismatch_);
  }
  exchange->join(std::move(call));
  while (!open_.empty() && open_.front()->complete()) {
    open_.pop_front();
    ++first_open_;
  }
  return exchange;
}

void set_up(Runtime& runtime, const std::vector<QueuedSetup>& setups) {
  for (const QueuedSetup& setup : setups) {
    setup.clique->join(setup.rank, setup.device);
    setup.clique->complete_at = std::max(setup.clique->complete_at, runtime.host().now());
    hb::release(hb::host_context(), setup.clique.get());
  }
  for (const QueuedSetup& setup : setups) {
    const Clique& clique = *setup.clique;
    const auto over = [&] { return clique.complete() || !clique.refusal().empty(); };
    if (!over()) {
      runtime.waits().block_host(over, "the other ranks of an NCCL communicator of " +
                                           std::to_string(clique.ranks()) + " ranks (ncclCommInitRank)");
    }
    if (!clique.refusal().empty()) throw Failure(ncclInvalidUsage, clique.refusal());
    // NCCL guide, "Creating a communicator": the call synchronises the ranks.
    hb::acquire(hb::host_context(), &clique);
    runtime.host().wait_until(clique.complete_at);
  }
  for (const QueuedSetup& setup : setups) {
    auto made = std::make_shared<Communicator>(
        Communicator{setup.clique, setup.rank, setup.device, setup.max_channels, false, {}, 0});
    *setup.result = made->handle();
    state(runtime).communicators.emplace(made->handle(), std::move(made));
  }
}

namespace {

struct Range {
  const std::byte* begin;
  std::size_t bytes;
  bool written;
  const Call* call;
};

/// The calls of a group run in any order and side by side: none may touch what another one writes.
void check_independent(const std::vector<const QueuedCall*>& calls) {
  std::vector<Range> ranges;
  for (const QueuedCall* queued : calls) {
    const Call& call = queued->call;
    if (call.send_bytes() > 0) ranges.push_back({call.send, call.send_bytes(), false, &call});
    if (call.receive_bytes() > 0) ranges.push_back({call.receive, call.receive_bytes(), true, &call});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    for (std::size_t j = i + 1; j < ranges.size() && ranges[j].begin < ranges[i].begin + ranges[i].bytes;
         ++j) {
      if (ranges[i].call == ranges[j].call || (!ranges[i].written && !ranges[j].written)) continue;
      throw Failure(ncclInvalidUsage,
                    "two calls of a group, which have no order, use the same memory, and one writes it: " +
                        ranges[i].call->describe_fully() + ", and " + ranges[j].call->describe_fully());
    }
  }
}

Stream& stream_of(Runtime& runtime, const QueuedCall& queued) {
  const int device = queued.communicator->device;
  if (queued.stream == nullptr || queued.stream == cudaStreamLegacy)
    return runtime.device(device).default_stream();
  Stream& stream = runtime.stream(queued.stream);
  if (stream.device() != device) {
    throw Failure(ncclInvalidUsage, queued.call.describe_fully() + ": the communicator is on GPU " +
                                        std::to_string(device) + ", the stream is " + stream.name());
  }
  return stream;
}

/// One operation for a communicator's calls. With several streams it runs on the first, waits for the others,
/// and they wait for it (NCCL guide, "Group calls").
void enqueue_together(Runtime& runtime, const std::vector<const QueuedCall*>& calls) {
  std::vector<Stream*> streams;
  for (const QueuedCall* queued : calls) {
    Stream* stream = &stream_of(runtime, *queued);
    if (stream->captures()) runtime.captures().refuse(*stream, "virtual GPUs do not capture NCCL's calls");
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  }
  check_independent(calls);
  auto operation = std::make_unique<NcclOperation>(runtime, calls.front()->communicator);
  for (const QueuedCall* queued : calls) {
    const Communicator& mine = *queued->communicator;
    auto exchange = mine.clique->match(runtime, queued->call);
    state(runtime).hangs.note(runtime, mine.clique.get(), exchange, queued->call, mine.device);
    operation->add(std::move(exchange), queued->call, *streams.front());
  }
  for (std::size_t i = 1; i < streams.size(); ++i) {
    operation->wait_for(streams[i]->last());
  }
  const Token done = runtime.queues().enqueue(*streams.front(), std::move(operation));
  for (std::size_t i = 1; i < streams.size(); ++i) {
    auto wait = std::make_unique<WaitOperation>();
    wait->wait_for(done);
    runtime.queues().enqueue(*streams[i], std::move(wait));
  }
}

}  // namespace

void enqueue(Runtime& runtime, const std::vector<QueuedCall>& calls) {
  std::vector<std::vector<const QueuedCall*>> by_communicator;
  for (const QueuedCall& queued : calls) {
    // As in NCCL: a collective without elements is dropped, before ranks are compared.
    if (queued.call.count == 0 && !queued.call.is_pair()) continue;
    auto same = std::find_if(by_communicator.begin(), by_communicator.end(), [&](const auto& group) {
      return group.front()->communicator == queued.communicator;
    });
    if (same == by_communicator.end()) same = by_communicator.insert(same, {{}});
    same->push_back(&queued);
  }
  for (const auto& together : by_communicator) enqueue_together(runtime, together);
}

}  // namespace vgpu::nccl
