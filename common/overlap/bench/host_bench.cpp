#include "overlap/bench/host_bench.hpp"

#include <algorithm>
#include <limits>
#include <sstream>

#include "overlap/data/verify.hpp"
#include "overlap/gpu/error.hpp"

namespace overlap {
namespace {

// Elements of A and B lie between -kLargest and kLargest, so a sum of k products fits an int for any k up to
// 2^25.
constexpr int kLargest = 8;

}  // namespace

std::string gpus_text(int gpus) { return gpus == 1 ? "1 GPU" : std::to_string(gpus) + " GPUs"; }

HostBench::HostBench(MatmulShape shape, std::uint64_t seed, const BenchSettings& settings)
    : Bench(nullptr, settings), shape_(shape), seed_(seed) {
  if (shape.k > std::numeric_limits<int>::max() / (kLargest * kLargest))
    throw UsageError("--k: sums of " + std::to_string(shape.k) + " products would not fit an int");
}

Bench::Variant HostBench::completed(Variant variant, int gpus) {
  variant.section = gpus_text(gpus);
  variant.clock = Clock::kHost;
  variant.device_ms = [kernels = variant.phases] {
    double slowest = 0;
    for (const Phase& kernel : kernels()) slowest = std::max(slowest, kernel.ms);
    return slowest;
  };
  variant.poison = [this](Data data) {
    if (data == Data::kRandom) negate();
    poison({matrices_->c.begin(), matrices_->c.end()});
  };
  variant.compare = [this, gpus](Data data) {
    const std::span<int> c(matrices_->c.begin(), matrices_->c.end());
    if (settings().corrupt) corrupt_one_element(c);
    require_right(
        compare_matrices(std::span<const int>(matrices_->expected), std::span<const int>(c), shape_.n),
        gpus_text(gpus));
    if (data == Data::kRandom) negate();
  };
  return variant;
}

/// Negates A and the expected C.
void HostBench::negate() {
  for (int& element : matrices_->a) element = -element;
  for (int& element : matrices_->expected) element = -element;
}

// Both kinds of data are the same: sums of integers are exact. They are made late, so that a run without a
// suitable GPU ends before the CPU has computed anything.
void HostBench::fill(Data) {
  if (matrices_) return;
  const auto [m, n, k] = shape_;
  matrices_.emplace(Matrices{PinnedBuffer<int>(checked_elements(m, k, sizeof(int))),
                             PinnedBuffer<int>(checked_elements(k, n, sizeof(int))),
                             PinnedBuffer<int>(checked_elements(m, n, sizeof(int))),
                             {}});
  auto& [a, b, c, expected] = *matrices_;
  fill_integers({a.begin(), a.end()}, -kLargest, kLargest, seed_);
  fill_integers({b.begin(), b.end()}, -kLargest, kLargest, seed_ + 1);
  if (!settings().check) return;
  expected.resize(c.size());
  reference_matmul(shape_, {a.begin(), a.end()}, {b.begin(), b.end()}, expected);
}

std::string HostBench::all_right(const std::string&) const {
  return "all " + std::to_string(shape_.m * shape_.n) + " elements are right";
}

std::string HostBench::above_table() const {
  std::ostringstream text;
  for (std::size_t v = 0; v < times().size(); ++v) {
    text << "\n" << variants()[v].section << "\n";
    Table table({"GPU", "columns", modelled("kernel ms")});
    for (std::size_t gpu = 0; gpu < columns_[v].size(); ++gpu) {
      const Range columns = columns_[v][gpu];
      table.add_row({std::to_string(gpu),
                     columns.empty()
                         ? "none"
                         : std::to_string(columns.begin) + " to " + std::to_string(columns.end - 1),
                     fixed(times()[v].phases[gpu].ms, 3)});
    }
    text << table;
  }
  text << "\n";
  return text.str();
}

ResultTable HostBench::table() const {
  ResultTable table({{"", "where"},
                     {modelled("kernel ms"), "kernel_ms"},
                     {"speed-up", "kernel_speed_up", digits(2, 1, " x")},
                     {modelled("with copies ms"), "end_to_end_ms"},
                     {"speed-up", "speed_up", digits(2, 1, " x")}});
  for (std::size_t v = 0; v < times().size(); ++v) {
    const VariantTimes &one = times()[v], &base = times().front();
    Results::Fields fields = {{"variant", one.name},
                              {"gpus", static_cast<std::int64_t>(columns_[v].size())},
                              {"kernel_ms", one.device_ms.median},
                              {"kernel_p99_ms", one.device_ms.p99},
                              {"end_to_end_ms", one.host_ms.median},
                              {"end_to_end_p99_ms", one.host_ms.p99}};
    for (const Phase& kernel : one.phases) fields.emplace_back(kernel.name, kernel.ms);
    table.add(std::move(fields), {{"where", variants()[v].section},
                                  {"kernel_speed_up", base.device_ms.median / one.device_ms.median},
                                  {"speed_up", base.host_ms.median / one.host_ms.median}});
  }
  return table;
}

}  // namespace overlap
