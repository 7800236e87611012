// Chapter 04: the order of sends. Eight copies at once run at full speed if they form a permutation: each GPU
// sends to one and receives from one. In a direct all-gather nothing keeps this form.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

#include "04_copy_engine/experiments/transport_timing.cuh"
#include "04_copy_engine/ring_push.cuh"
#include "overlap/bench/result_table.hpp"
#include "overlap/bench/settings.hpp"
#include "overlap/gpu/peer_buffer.hpp"

namespace overlap::copy_engine {

/// Every rank's shard to every rank, directly, each rank by one stream, without any signal between the ranks.
class DirectAllGather {
 public:
  /// The order of a rank's peers.
  enum class Order {
    kPushLeft,       ///< pushes to d - 1, d - 2, ...: a permutation while all ranks are in the same step
    kPullRight,      ///< pulls from d + 1, d + 2, ...: PyTorch's order
    kPushSameOrder,  ///< pushes to 0, 1, 2, ...: all ranks to the same one
  };

  /// Collective. `bytes` of a shard.
  DirectAllGather(Rank& rank, std::int64_t bytes, Order order)
      : rank_(rank),
        bytes_(bytes),
        order_(order),
        own_(rank, static_cast<std::size_t>(bytes)),
        all_(rank, static_cast<std::size_t>(bytes * rank.size())) {}

  std::byte* own() const { return own_.local(); }  ///< this rank's shard
  std::byte* all() const { return all_.local(); }  ///< all ranks' shards, by rank, but for its own

  void run(cudaStream_t stream) {
    const int ranks = rank_.size(), me = rank_.id();
    for (int i = 1; i <= ranks; ++i) {
      const int peer = order_ == Order::kPushLeft    ? (me + ranks - i) % ranks
                       : order_ == Order::kPullRight ? (me + i) % ranks
                                                     : i - 1;
      if (peer == me) continue;
      const bool pull = order_ == Order::kPullRight;
      std::byte* to = (pull ? all_.local() : all_.on(peer)) + bytes_ * (pull ? peer : me);
      const std::byte* from = pull ? own_.on(peer) : own_.local();
      CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes_), cudaMemcpyDefault, stream));
    }
  }

  /// Writes a message to this rank's shard, as RingPush's caller does. Collective.
  void write(int number) {
    put_message(rank_, own_.local(), message(rank_.id(), number, ints()));
    rank_.barrier();  // before any pull of it
  }
  /// Compares all others' shards with their messages of that number. When all ranks' calls have ended. Throws
  /// WrongResult. `corrupt`: the tests' hook.
  void compare(int number, const std::string& name, bool corrupt = false) const {
    for (int peer = 0; peer < rank_.size(); ++peer) {
      if (peer != rank_.id())
        require_message(rank_, all_.local() + bytes_ * peer, message(peer, number, ints()), name, corrupt);
    }
  }

 private:
  std::size_t ints() const { return static_cast<std::size_t>(bytes_) / sizeof(int); }

  Rank& rank_;
  std::int64_t bytes_;
  Order order_;
  PeerBuffer<std::byte> own_, all_;
};

/// Times all-gathers of a shard of `bytes` (rounded up to 4) from every rank; rank 0 prints and reports.
/// All shards that the last timed one of each has brought are compared.
inline void time_patterns(Rank& rank, std::int64_t bytes, const BenchSettings& settings, Results& results) {
  using Order = DirectAllGather::Order;
  constexpr int kMessage = 1;  // of the last call. Those before it have sent what memory happened to hold
  const std::int64_t floats = (bytes + 3) / 4;
  RingPush<float> ring(rank, {floats * rank.size(), 0, 1});
  const DeviceBuffer<float> own(rank.device(), static_cast<std::size_t>(floats));
  std::vector<std::string> names = {"ring, push, a signal each step"};
  std::vector<SideBySideCall> calls = {{[&](cudaStream_t stream) { ring.run(own.data(), stream); }, {}}};
  if (settings.check) {
    const auto shard = [floats](int sender) {
      return message(sender, kMessage, static_cast<std::size_t>(floats));
    };
    calls.back().before_last = [&, shard] { put_message(rank, own.data(), shard(rank.id())); };
    calls.back().after_last = [&, shard] {
      for (int step = 1; step < rank.size(); ++step)
        require_message(rank, ring.await(step, rank.stream()), shard(ring.shard(step)), names.front(),
                        settings.corrupt);
    };
  }
  const auto add = [&](const char* name, Order order) {
    auto gather = std::make_shared<DirectAllGather>(rank, 4 * floats, order);
    names.push_back(name);
    calls.push_back({[gather](cudaStream_t stream) { gather->run(stream); }, {}});
    if (!settings.check) return;
    calls.back().before_last = [gather] { gather->write(kMessage); };
    calls.back().after_last = [gather, name, &settings] {
      gather->compare(kMessage, name, settings.corrupt);
    };
  };
  add("direct, push to d-1, d-2, ...", Order::kPushLeft);
  add("direct, pull from d+1, d+2, ...", Order::kPullRight);
  add("direct, push to 0, 1, 2, ...", Order::kPushSameOrder);
  const std::vector<double> times = time_alone(rank, calls, settings.iterations);
  if (rank.id() != 0) return;

  ResultTable table({{"", "variant"},
                     {modelled("us"), "device_ms", microseconds()},
                     {"GB/s into each GPU", "gb_per_s", digits(2)}});
  for (std::size_t i = 0; i < names.size(); ++i) {
    table.add({{"section", std::string("patterns")},
               {"variant", names[i]},
               {"gpus", std::int64_t{rank.size()}},
               {"bytes", 4 * floats},
               {"device_ms", times[i]},
               {"gb_per_s", static_cast<double>((rank.size() - 1) * 4 * floats) / times[i] * 1e-6}});
  }
  table.finish("\npatterns: all-gather of " + std::to_string(4 * floats) + " bytes from each rank\n",
               results);
}

}  // namespace overlap::copy_engine
