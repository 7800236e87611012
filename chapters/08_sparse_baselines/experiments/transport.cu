// Experiment of chapter 08: one dense buffer added up over all ranks, by NCCL and through the host. How much
// of the difference between the chapter's two algorithms is the path?
#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "08_sparse_baselines/experiments/transport.cuh"
#include "overlap/bench/metrics.hpp"
#include "overlap/bench/table.hpp"
#include "overlap/bench/timing.hpp"
#include "overlap/data/verify.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

const ChapterInfo kExperiment = {
    .name = "08_sparse_baselines/transport",
    .summary = "One dense buffer, added up over all ranks by NCCL and through the host.",
    .variants = {"transport", "through_host"},
    .on_virtual_gpus = {.gpus = 4, .iterations = 1, .sparse = {1000, 32, 60}, .duplicates = 6},
    .on_real_gpus = {.gpus = 16, .iterations = 20, .warmup = 2, .sparse = {131072, 2048, 1}},
    .on_race_build = {{.gpus = 4, .iterations = 1, .sparse = {64, 8, 12}, .duplicates = 3}},
    .types = {ElementType::kF32, ElementType::kF16, ElementType::kBf16},
    .default_type = ElementType::kF32,
    .ranks_may_share_gpus = true,  // the host adds up what ranks on one GPU have, too
};

/// What the buffer of `transport` has at most, as in the article: 1 GiB in f32. The whole table, 41 GB on
/// each of eight ranks, would be too much for most hosts' memory.
constexpr std::int64_t kMostElements = std::int64_t{1} << 28;

/// One buffer, added up over all ranks by each of the two transports.
template <Floating T>
class TransportBench {
 public:
  TransportBench(Rank& rank, const Options& options)
      : rank_(rank),
        options_(options),
        elements_(std::min(options.sparse.rows * options.sparse.features, kMostElements)),
        in_(rank.device(), static_cast<std::size_t>(elements_)),
        out_(rank.device(), in_.size()) {
    std::vector<T> values(in_.size());
    parallel_shares(elements_, [&](Range share) {
      for (std::int64_t i = share.begin; i < share.end; ++i)
        values[static_cast<std::size_t>(i)] = from_float<T>(transport_value(i, rank.id()));
    });
    CUDA_CHECK(cudaMemcpy(in_.data(), values.data(), in_.bytes(), cudaMemcpyHostToDevice));
  }

  /// Times the transport, if it was chosen and can be had, and compares every element of its last result.
  template <template <Floating> class Transport>
  void run(const std::string& name) {
    if (!options_.runs(name)) return;
    try {
      Transport<T> transport(rank_, elements_);
      std::vector<double> ms;
      for (int i = -1 - options_.warmup; i < options_.iterations; ++i) {
        if (options_.check && i == options_.iterations - 1) poison();
        const double call_ms = timed_call([&] { transport.run(in_.data(), out_.data(), rank_.stream()); });
        if (i >= 0) ms.push_back(call_ms);
      }
      if (options_.check) compare(name);
      found_.push_back({name, summarise(ms)});
    } catch (const Skip& skip) {  // for the same reason on all ranks
      skipped_.emplace_back(name, skip.what());
      if (rank_.id() == 0) std::cout << name << " is left out: " << skip.what() << "\n";
    }
  }

  /// Prints the times, and how the GPUs are connected; files the times under "transport".
  void finish(Report& report) const {
    if (rank_.id() != 0) return;
    for (const auto& [variant, reason] : skipped_) report.add_skipped(variant, reason);
    if (found_.empty()) return;
    std::cout << "\none buffer of " << bytes() << " bytes in " << name_of(options_.type) << ", added up over "
              << rank_.size() << (rank_.size() == 1 ? " rank" : " ranks")
              << (options_.check ? ": every element is right" : "") << "\n\n";
    const char* modelled = backend::modelled_time() ? " (modelled)" : "";
    Table table({"", std::string("ms, host-timed") + modelled, "algorithm GB/s", "bus GB/s"});
    for (const Found& found : found_) {
      const double ms = found.ms.median;
      const double algorithm = algorithm_bandwidth(bytes(), ms);
      const double bus = bus_bandwidth_all_reduce(bytes(), rank_.size(), ms);
      table.add_row({found.name, fixed(ms, 3), fixed(algorithm, 2), fixed(bus, 2)});
      report.add_result({{"variant", found.name},
                         {"section", std::string("transport")},
                         {"settings", transport_settings()},
                         {"gpus", std::int64_t{rank_.size()}},
                         {"bytes", bytes()},
                         {"host_ms", ms},
                         {"algorithm_gb_per_s", algorithm},
                         {"bus_gb_per_s", bus}});
    }
    std::cout << table << "\nNCCL's settings: " << transport_settings() << "\n\n";
    print_topology();
  }

 private:
  struct Found {
    std::string name;
    Summary ms;
  };

  std::int64_t bytes() const { return static_cast<std::int64_t>(in_.bytes()); }

  double timed_call(const std::function<void()>& call) {
    rank_.barrier();
    const HostTimer timer;
    call();
    rank_.synchronize(rank_.stream());
    const std::vector<double> all = rank_.exchange(timer.milliseconds());
    return *std::max_element(all.begin(), all.end());
  }

  void compare(const std::string& name) {
    std::vector<T> values(out_.size());
    CUDA_CHECK(cudaMemcpy(values.data(), out_.data(), out_.bytes(), cudaMemcpyDeviceToHost));
    if (options_.corrupt) corrupt_one_element(std::span<T>(values));
    std::vector<T> expected(values.size());
    parallel_shares(elements_, [&](Range share) {
      for (std::int64_t i = share.begin; i < share.end; ++i)
        expected[static_cast<std::size_t>(i)] = from_float<T>(transport_sum(i, rank_.size()));
    });
    require_right(compare_matrices(std::span<const T>(expected), std::span<const T>(values), elements_),
                  name);
  }

  /// What an earlier call has left must not pass for the result of the last one.
  void poison() {
    CUDA_CHECK(cudaMemsetAsync(out_.data(), 0xFF, out_.bytes(), rank_.stream()));
    rank_.synchronize(rank_.stream());
  }

  void print_topology() const {
    Table table({"GPU", "PCI bus id", "NUMA node", "reaches directly"});
    const std::vector<GpuLinks> gpus = topology(rank_.shares_gpu() ? 1 : rank_.size());
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
      std::string reaches;
      for (const int peer : gpus[gpu].reaches)
        reaches += (reaches.empty() ? "GPU " : ", ") + std::to_string(peer);
      table.add_row({std::to_string(gpu), gpus[gpu].place.bus_id, gpus[gpu].place.numa_node,
                     reaches.empty() ? "none" : reaches});
    }
    std::cout << table;
  }

  Rank& rank_;
  const Options& options_;
  std::int64_t elements_;
  DeviceBuffer<T> in_, out_;
  std::vector<Found> found_;
  std::vector<std::pair<std::string, std::string>> skipped_;  // those that were left out, and why
};

void run(const Options& options) {
  Report report(kExperiment, options);
  run_ranks(options.gpus, [&](Rank& rank) {
    visit_type<float, __half, __nv_bfloat16>(options.type, [&](auto tag) {
      TransportBench<typename decltype(tag)::type> transports(rank, options);
      transports.template run<NcclTransport>("transport");
      transports.template run<HostTransport>("through_host");
      transports.finish(report);
    });
  });
  report.save();
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) {
  return overlap::chapter_main(argc, argv, overlap::kExperiment, overlap::run);
}
