// Chapter 08: the bench of the two transports.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "08_sparse_baselines/experiments/transport.cuh"
#include "overlap/bench/bench.hpp"
#include "overlap/bench/device_data.hpp"
#include "overlap/bench/metrics.hpp"
#include "overlap/data/verify.hpp"
#include "overlap/program/options.hpp"

namespace overlap::sparse_baselines {

/// What the buffer of `transport` has at most, as in the article: 1 GiB in f32. The whole table, 41 GB on
/// each of eight ranks, would be too much for most hosts' memory.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 28;

/// One buffer, added up over all ranks by each of the two transports.
template <Floating T>
class TransportBench final : public Bench {
 public:
  /// Fills the rank's buffer. Collective.
  TransportBench(Rank& rank, const Options& options)
      : Bench(&rank, options),
        elements_(std::min(options.sparse.shape.rows * options.sparse.shape.features, kMaxElements)),
        in_(rank.device(), static_cast<std::size_t>(elements_)),
        out_(rank.device(), in_.size()) {}

  /// Adds the transport, if it was chosen and is available.
  template <template <Floating> class Transport>
  void add(const std::string& name) {
    add_variant(name, [&] {
      auto transport = std::make_shared<Transport<T>>(ranked(), elements_);
      Variant variant;
      variant.clock = Clock::kHost;
      variant.call = [this, transport](cudaStream_t stream) {
        transport->run(in_.data(), out_.data(), stream);
      };
      // The result of an earlier call must not pass for that of the last one.
      variant.poison = [this](Data) { fill_with_nan(ranked(), out_); };
      variant.compare = [this, name](Data) { compare(name); };
      return variant;
    });
  }

 private:
  std::int64_t bytes() const { return static_cast<std::int64_t>(in_.bytes()); }

  std::vector<T> values(float (*value)(std::int64_t, int), int number) const {
    std::vector<T> all(in_.size());
    const auto fill_share = [&](Range share) {
      for (std::int64_t i = share.begin; i < share.end; ++i)
        all[static_cast<std::size_t>(i)] = from_float<T>(value(i, number));
    };
    parallel_shares(elements_, fill_share, worth_a_thread(4));
    return all;
  }

  void fill(Data) override { upload(ranked(), values(transport_value, ranked().id()), in_); }

  void compare(const std::string& name) {
    std::vector<T> found = download(ranked(), out_.data(), elements_);
    if (settings().corrupt) corrupt_one_element(std::span<T>(found));
    const std::vector<T> expected = values(transport_sum, ranked().size());
    require_right(compare_matrices(std::span<const T>(expected), std::span<const T>(found), elements_), name);
  }

  std::string all_right(const std::string&) const override { return "every element is right"; }

  std::string above_table() const override {
    const int ranks = ranked().size();
    return "\none buffer of " + std::to_string(bytes()) + " bytes in " + name_of(settings().type) +
           ", added up over " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") +
           (settings().check ? ": " + all_right("") : "") + "\n\n";
  }

  ResultTable table() const override {
    ResultTable table({{"", "variant"},
                       {modelled("ms, host-timed"), "host_ms"},
                       {"algorithm GB/s", "algorithm_gb_per_s", digits(2)},
                       {"bus GB/s", "bus_gb_per_s", digits(2)}});
    for (const VariantTimes& one : times()) {
      const double ms = one.host_ms.median;
      table.add({{"variant", one.name},
                 {"section", std::string("transport")},
                 {"settings", transport_settings()},
                 {"gpus", std::int64_t{ranked().size()}},
                 {"bytes", bytes()},
                 {"host_ms", ms},
                 {"algorithm_gb_per_s", algorithm_bandwidth(bytes(), ms)},
                 {"bus_gb_per_s", bus_bandwidth_all_reduce(bytes(), ranked().size(), ms)}});
    }
    return table;
  }

  std::int64_t elements_;
  DeviceBuffer<T> in_, out_;
};

/// The GPUs' connections, and NCCL's setting.
inline void print_topology(const Rank& rank) {
  Table table({"GPU", "PCI bus id", "NUMA node", "reaches directly"});
  const std::vector<GpuLinks> gpus = topology(rank.shares_gpu() ? 1 : rank.size());
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    std::string reaches;
    for (const int peer : gpus[gpu].reaches)
      reaches += (reaches.empty() ? "GPU " : ", ") + std::to_string(peer);
    table.add_row({std::to_string(gpu), gpus[gpu].place.bus_id, gpus[gpu].place.numa_node,
                   reaches.empty() ? "none" : reaches});
  }
  std::cout << "\nNCCL's settings: " << transport_settings() << "\n\n" << table;
}

}  // namespace overlap::sparse_baselines
