#include "overlap/bench/sparse_bench.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <sstream>
#include <utility>

#include "overlap/bench/device_data.hpp"
#include "overlap/data/verify.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/host_copy.hpp"

namespace overlap {
namespace {

constexpr const char* kAllReduce = "all_reduce";

/// The phases that any of the variants has, the all-reduce last.
std::vector<std::string> phases_of(const std::vector<VariantTimes>& all) {
  std::vector<std::string> names;
  for (const VariantTimes& times : all) {
    for (const Phase& phase : times.phases) {
      if (std::find(names.begin(), names.end(), phase.name) == names.end()) names.push_back(phase.name);
    }
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != kAllReduce; });
  return names;
}

/// cudaMemcpy from pageable memory may return before the data is on the GPU, and the rank's streams do not
/// wait for the default one.
void wait_for_copies() { CUDA_CHECK(cudaStreamSynchronize(nullptr)); }

}  // namespace

void require_exact_sums(const SparseData& data, const BenchSettings& settings) {
  visit_type<float, __half, __nv_bfloat16>(settings.type, [&](auto tag) {
    constexpr auto kLargest = largest_integer<typename decltype(tag)::type>();
    if (data.max_entries_per_row() <= kLargest) return;
    throw UsageError("--duplicates: " + std::to_string(data.max_entries_per_row()) +
                     " entries have the same row, and a sum of more than " + std::to_string(kLargest) +
                     " is not exact in " + name_of(settings.type) + ", so it could not be verified");
  });
}

void require_room(SparseShape shape, int ranks, RowPattern pattern, std::int64_t duplicates, ElementType type,
                  IndexType index) {
  cudaDeviceProp gpu{};
  CUDA_CHECK(cudaGetDeviceProperties(&gpu, 0));
  const std::size_t of_index = index == IndexType::kInt32 ? sizeof(std::int32_t) : sizeof(std::int64_t);
  // In floating point, because the exact product may exceed 2^63.
  const double of_entry = static_cast<double>(shape.features) * static_cast<double>(size_of(type));
  const double entries = static_cast<double>(shape.entries) + static_cast<double>(duplicates);
  const double bytes = entries * (of_entry + static_cast<double>(of_index));
  if (bytes > static_cast<double>(gpu.totalGlobalMem)) {
    throw UsageError("--entries: those of one GPU take " + fixed(bytes / (1 << 20), 0) +
                     " MiB, and GPU 0 has " + std::to_string(gpu.totalGlobalMem >> 20));
  }
  // Of an entry: its row, the row again with its place to be sorted, its place.
  constexpr double kOfNumbers = 48;
  const double gradients = pattern == RowPattern::kUneven ? (ranks + 1) / 2. : ranks;
  const double weights = pattern == RowPattern::kZipf ? 8 * static_cast<double>(shape.rows) : 0;
  const double on_host = gradients * entries * kOfNumbers + weights;
  const double host =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (on_host <= host) return;
  throw UsageError("--entries --rows: to draw the rows of all GPUs takes " + fixed(on_host / (1 << 20), 0) +
                   " MiB, and this computer has " + fixed(host / (1 << 20), 0));
}

void SparseBenchBase::require_no_lost_rows(const std::string& name, int lost_rows) {
  if (lost_rows > 0)
    throw WrongResult(name + ": " + std::to_string(lost_rows) + " rows found no place in the result");
}

void SparseBenchBase::require_exact_sums_in_16_bits() const {
  const std::int64_t most = data_.max_entries_per_row();
  if (!settings().check || most <= largest_integer<__nv_bfloat16>()) return;
  throw Skip(std::to_string(most) + " entries have the same row, and a sum of so many is not exact in bf16");
}

std::string SparseBenchBase::all_right(const std::string& names) const {
  return "all " + std::to_string(data_.global_rows().size()) + " rows of " +
         std::to_string(data_.shape().features) + " elements are right: " + names;
}

std::string SparseBenchBase::above_table() const {
  const auto global = static_cast<double>(data_.global_rows().size());
  const double density = global > 0 ? static_cast<double>(data_.total_rows()) / global : 0;
  std::ostringstream text;
  text << "\ntable of " << data_.shape().rows << " x " << data_.shape().features << " in "
       << name_of(settings().type) << ", rows numbered in " << name_of(index_) << "; " << rank().size()
       << (rank().size() == 1 ? " rank" : " ranks") << ", " << entries_
       << " entries on rank 0, N = " << data_.total_rows()
       << " rows of single ranks, G = " << data_.global_rows().size()
       << " different ones, d = N / G = " << fixed(density, 3) << " (" << name_of(pattern_) << ", "
       << backend::name() << ")\n\n";
  return text.str();
}

ResultTable SparseBenchBase::table() const {
  std::vector<Column> columns = {{"", "variant"}, {modelled("ms, host-timed"), "host_ms"}};
  for (const std::string& phase : phases_of(times())) columns.push_back({phase, phase + "_ms"});
  columns.push_back({"skew", "skew_ms"});
  columns.push_back({"calls", "calls"});
  ResultTable table(std::move(columns));
  for (const VariantTimes& one : times()) {
    Results::Fields fields = {{"variant", one.name},
                              {"role", std::string("algorithm")},
                              {"gpus", std::int64_t{rank().size()}},
                              {"host_ms", one.host_ms.median},
                              {"host_p99_ms", one.host_ms.p99},
                              {"calls", std::int64_t{one.host_ms.samples}},
                              {"rows_of_ranks", data_.total_rows()},
                              {"global_rows", static_cast<std::int64_t>(data_.global_rows().size())}};
    for (const Phase& phase : one.phases) fields.emplace_back(phase.name + "_ms", phase.ms);
    if (!one.phases.empty()) fields.emplace_back("skew_ms", one.skew_ms);
    table.add(std::move(fields));
  }
  return table;
}

template <SparseIndex Index, Floating T>
SparseBench<Index, T>::SparseBench(Rank& rank, const SparseData& data, const BenchSettings& settings,
                                   RowPattern pattern)
    : SparseBenchBase(rank, data, settings, pattern, index_type_of<Index>()),
      indices_(rank.device(), static_cast<std::size_t>(entries_)),
      values_(rank.device(), static_cast<std::size_t>(entries_ * data.shape().features)) {
  const std::vector<std::int64_t>& rows = data.entries(rank.id());
  std::vector<Index> narrow;
  std::transform(rows.begin(), rows.end(), std::back_inserter(narrow),
                 [](std::int64_t row) { return static_cast<Index>(row); });
  if (entries_ > 0)
    CUDA_CHECK(cudaMemcpy(indices_.data(), narrow.data(), indices_.bytes(), cudaMemcpyHostToDevice));
  wait_for_copies();
}

template <SparseIndex Index, Floating T>
void SparseBench<Index, T>::add_runner(const std::string& name, SparseValues exact,
                                       const std::function<std::unique_ptr<Runner>()>& make) {
  add_variant(name, [&] {
    const bool rounds = exact == SparseValues::kExactIn16Bits;  // on the wire
    if (rounds) require_exact_sums_in_16_bits();
    const std::shared_ptr<Runner> runner = make();
    const auto result = std::make_shared<SparseRows<Index, T>>();  // of the last call
    Variant variant;
    variant.clock = Clock::kHost;
    variant.call = [this, runner, result](cudaStream_t stream) {
      *result = runner->run(indices_.data(), values_.data(), entries_, stream);
    };
    variant.phases = [runner] { return runner->phases(); };
    // The last timed call gets negated values, so that sums left in the variant's buffers cannot pass for its
    // result.
    variant.poison = [this, result, rounds, exact](Data data) {
      poison(*result);
      if (data == Data::kRandom) negate(rank(), values_);
      if (rounds && data == Data::kExact) fill_values(exact);
    };
    variant.compare = [this, name, runner, result, rounds, exact](Data data) {
      compare(name, *result, data == Data::kExact ? exact : SparseValues::kReal,
              runner->promise(data_, rank().id()));
      require_no_lost_rows(name, runner->lost_rows(rank().stream()));
      if (data == Data::kRandom) negate(rank(), values_);
      if (rounds && data == Data::kExact) fill(data);  // for the next variant
    };
    return variant;
  });
}

template <SparseIndex Index, Floating T>
void SparseBench<Index, T>::fill(Data data) {
  fill_values(data == Data::kExact ? SparseValues::kExact : SparseValues::kReal);
}

template <SparseIndex Index, Floating T>
void SparseBench<Index, T>::fill_values(SparseValues kind) {
  std::vector<T> values(values_.size());
  data_.fill<T>(rank().id(), kind, values);
  if (!values.empty())
    CUDA_CHECK(cudaMemcpy(values_.data(), values.data(), values_.bytes(), cudaMemcpyHostToDevice));
  wait_for_copies();
  rank().barrier();
}

template <SparseIndex Index, Floating T>
void SparseBench<Index, T>::compare(const std::string& name, const SparseRows<Index, T>& result,
                                    SparseValues kind, const SparsePromise& promise) const {
  const std::vector<Index> indices = on_host(result.indices, result.count);
  std::vector<T> values = on_host(result.values, result.count * data_.shape().features);
  if (settings().corrupt) corrupt_one_element(std::span<T>(values));
  if (kind == SparseValues::kReal) negate(std::span<T>(values));
  const std::string wrong =
      data_.difference<Index, T>(kind, std::span<const Index>(indices), std::span<const T>(values), promise);
  if (!wrong.empty()) throw WrongResult(name + ": " + wrong);
}

// The previous call has written it, and the next one must write it again: the memory belongs to the
// algorithm.
template <SparseIndex Index, Floating T>
void SparseBench<Index, T>::poison(const SparseRows<Index, T>& result) const {
  if (result.count == 0) return;
  const auto rows = static_cast<std::size_t>(result.count);
  const std::size_t elements = rows * static_cast<std::size_t>(data_.shape().features);
  CUDA_CHECK(cudaMemset(const_cast<Index*>(result.indices), 0xFF, rows * sizeof(Index)));  // -1
  CUDA_CHECK(cudaMemset(const_cast<T*>(result.values), 0xFF, elements * sizeof(T)));       // NaN
  CUDA_CHECK(cudaDeviceSynchronize());
}

template class SparseBench<std::int32_t, float>;
template class SparseBench<std::int32_t, __half>;
template class SparseBench<std::int32_t, __nv_bfloat16>;
template class SparseBench<std::int64_t, float>;
template class SparseBench<std::int64_t, __half>;
template class SparseBench<std::int64_t, __nv_bfloat16>;

}  // namespace overlap
