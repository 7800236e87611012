#include "overlap/bench/sparse_bench.hpp"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <span>
#include <utility>

#include "overlap/bench/table.hpp"
#include "overlap/data/verify.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/check.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap {
namespace {

constexpr const char* kAllReduce = "all_reduce";
constexpr double kMostSecondsOfAVariant = 10;
constexpr int kFewestIterations = 3;

template <typename T>
std::vector<T> to_host(const T* data, std::size_t elements) {
  std::vector<T> host(elements);
  if (elements > 0) CUDA_CHECK(cudaMemcpy(host.data(), data, elements * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

double median(std::vector<double> samples) { return summarise(std::move(samples)).median; }

double largest(Rank& rank, double value) {
  const std::vector<double> all = rank.exchange(value);
  return *std::max_element(all.begin(), all.end());
}

/// How long a call was in the phase of that name.
double milliseconds_of(const std::vector<Phase>& call, const std::string& name) {
  double ms = 0;
  for (const Phase& phase : call) ms += phase.name == name ? phase.ms : 0;
  return ms;
}

/// When a rank comes to the all-reduce, after the begin of the call.
double arrival_at_all_reduce(const std::vector<Phase>& call) {
  double ms = 0;
  for (const Phase& phase : call) {
    if (phase.name == kAllReduce) break;
    ms += phase.ms;
  }
  return ms;
}

}  // namespace

double SparseTimes::phase_ms(const std::string& wanted) const {
  const auto found =
      std::find_if(phases.begin(), phases.end(), [&](const Phase& phase) { return phase.name == wanted; });
  return found == phases.end() ? 0 : found->ms;
}

void require_exact_sums(const SparseData& data, const BenchSettings& settings) {
  visit_type<float, __half, __nv_bfloat16>(settings.type, [&](auto tag) {
    constexpr auto kLargest = largest_integer<typename decltype(tag)::type>();
    if (data.most_entries_of_a_row() <= kLargest) return;
    throw UsageError("--duplicates: " + std::to_string(data.most_entries_of_a_row()) +
                     " entries have the same row, and a sum of more than " + std::to_string(kLargest) +
                     " is not exact in " + name_of(settings.type) + ", so it could not be verified");
  });
}

SparseBenchBase::SparseBenchBase(Rank& rank, const SparseData& data, const BenchSettings& settings)
    : rank_(rank),
      data_(data),
      settings_(settings),
      entries_(static_cast<std::int64_t>(data.entries(rank.id()).size())) {}

SparseBenchBase::~SparseBenchBase() = default;

template <SparseIndex Index, Floating T>
SparseBench<Index, T>::SparseBench(Rank& rank, const SparseData& data, const BenchSettings& settings)
    : SparseBenchBase(rank, data, settings),
      indices_(rank.device(), static_cast<std::size_t>(entries_)),
      values_(rank.device(), static_cast<std::size_t>(entries_ * data.shape().features)) {
  const std::vector<std::int64_t>& rows = data.entries(rank.id());
  std::vector<Index> narrow;
  std::transform(rows.begin(), rows.end(), std::back_inserter(narrow),
                 [](std::int64_t row) { return static_cast<Index>(row); });
  if (entries_ > 0)
    CUDA_CHECK(cudaMemcpy(indices_.data(), narrow.data(), indices_.bytes(), cudaMemcpyHostToDevice));
}

template <SparseIndex Index, Floating T>
SparseBench<Index, T>::~SparseBench() = default;

template <SparseIndex Index, Floating T>
void SparseBench<Index, T>::add(const std::string& name,
                                const std::function<std::unique_ptr<Variant>()>& make) {
  if (!settings_.runs(name)) return;
  try {
    variants_.push_back({name, make()});
  } catch (const Skip& skip) {  // for the same reason on all ranks
    skipped_.emplace_back(name, skip.what());
    if (rank_.id() == 0) std::cout << name << " is left out: " << skip.what() << "\n";
  }
}

template <SparseIndex Index, Floating T>
void SparseBench<Index, T>::fill(SparseValues kind) {
  std::vector<T> values(values_.size());
  data_.fill<T>(rank_.id(), kind, values);
  if (!values.empty())
    CUDA_CHECK(cudaMemcpy(values_.data(), values.data(), values_.bytes(), cudaMemcpyHostToDevice));
  rank_.barrier();
}

template <SparseIndex Index, Floating T>
SparseRows<Index, T> SparseBench<Index, T>::call(const Named& variant) {
  const SparseRows<Index, T> result =
      variant.variant->run(indices_.data(), values_.data(), entries_, rank_.stream());
  rank_.synchronize(rank_.stream());
  return result;
}

template <SparseIndex Index, Floating T>
void SparseBench<Index, T>::compare(const Named& variant, const SparseRows<Index, T>& result,
                                    SparseValues kind) {
  const auto count = static_cast<std::size_t>(result.count);
  const std::vector<Index> indices = to_host(result.indices, count);
  std::vector<T> values = to_host(result.values, count * static_cast<std::size_t>(data_.shape().features));
  if (settings_.corrupt) corrupt_one_element(std::span<T>(values));
  const std::string wrong = data_.difference<Index, T>(
      kind, std::span<const Index>(indices), std::span<const T>(values), variant.variant->zero_rows());
  if (!wrong.empty()) throw WrongResult(variant.name + ": " + wrong);
  const int lost = variant.variant->lost_rows(rank_.stream());
  if (lost > 0)
    throw WrongResult(variant.name + ": " + std::to_string(lost) + " rows found no place in the result");
}

// The call before has written it, and the next one is to write it again: the memory is the algorithm's own.
template <SparseIndex Index, Floating T>
void SparseBench<Index, T>::poison(const SparseRows<Index, T>& result) {
  if (result.count == 0) return;
  const auto count = static_cast<std::size_t>(result.count);
  const auto features = static_cast<std::size_t>(data_.shape().features);
  CUDA_CHECK(cudaMemset(const_cast<Index*>(result.indices), 0xFF, count * sizeof(Index)));    // -1
  CUDA_CHECK(cudaMemset(const_cast<T*>(result.values), 0xFF, count * features * sizeof(T)));  // NaN
  CUDA_CHECK(cudaDeviceSynchronize());
}

template <SparseIndex Index, Floating T>
void SparseBench<Index, T>::verify() {
  if (variants_.empty() && !skipped_.empty()) throw Skip(skipped_.back().second);
  if (!settings_.check) return;
  // What the first call leaves behind must not pass for the result of the second.
  fill(SparseValues::kReal);
  for (const Named& variant : variants_) call(variant);
  fill(SparseValues::kExact);
  std::string names;
  for (const Named& variant : variants_) {
    compare(variant, call(variant), SparseValues::kExact);
    names += (names.empty() ? "" : ", ") + variant.name;
  }
  rank_.barrier();  // every rank has compared
  if (rank_.id() != 0 || names.empty()) return;
  std::cout << "all " << data_.global_rows().size() << " rows of " << data_.shape().features
            << " elements are right: " << names << "\n";
}

template <SparseIndex Index, Floating T>
double SparseBench<Index, T>::timed_call(const Named& variant, SparseRows<Index, T>* result) {
  rank_.barrier();
  const HostTimer timer;
  const SparseRows<Index, T> rows = call(variant);
  const double ms = timer.milliseconds();
  if (result != nullptr) *result = rows;
  return largest(rank_, ms);
}

template <SparseIndex Index, Floating T>
void SparseBench<Index, T>::time() {
  fill(SparseValues::kReal);
  std::vector<int> iterations;
  for (const Named& variant : variants_) {
    const double ms = timed_call(variant, nullptr);
    for (int i = 0; i < settings_.warmup && i * ms < 1e3; ++i) call(variant);
    const int that_fit = std::max(kFewestIterations, static_cast<int>(1e3 * kMostSecondsOfAVariant / ms));
    iterations.push_back(
        std::min(settings_.iterations, that_fit));  // `ms`, and so this, is the same on all ranks
  }
  std::vector<SparseRows<Index, T>> results(variants_.size());
  const std::vector<backend::GpuState> before = gpu_states(rank_);
  std::vector<std::vector<double>> host_ms(variants_.size());
  std::vector<std::vector<std::vector<Phase>>> phases(variants_.size());
  for (int i = 0; i < settings_.iterations; ++i) {
    for (std::size_t v = 0; v < variants_.size(); ++v) {
      if (i >= iterations[v]) continue;
      const bool compared = settings_.check && i == iterations[v] - 1;
      if (compared) poison(results[v]);
      host_ms[v].push_back(timed_call(variants_[v], &results[v]));
      phases[v].push_back(variants_[v].variant->phases());
      if (compared) compare(variants_[v], results[v], SparseValues::kReal);
    }
  }
  regime_ = regime_of(before, gpu_states(rank_));
  times_.clear();
  for (std::size_t v = 0; v < variants_.size(); ++v) {
    times_.push_back(summary(variants_[v].name, host_ms[v], phases[v]));
  }
  if (settings_.timeline.empty()) return;
  for (const Named& variant : variants_) {
    rank_.barrier();
    const TimelineSection section(variant.name);
    call(variant);
  }
}

SparseTimes SparseBenchBase::summary(const std::string& name, const std::vector<double>& host_ms,
                                     const std::vector<std::vector<Phase>>& phases) {
  SparseTimes times{.name = name, .host_ms = summarise(host_ms), .phases = {}, .skew_ms = 0};
  if (phases.empty()) return times;
  // A rank without rows has fewer phases than the others, so the names are those of any rank. Ranks of one
  // process can read each other's samples.
  using Calls = std::vector<std::vector<Phase>>;
  const std::vector<const Calls*> all = rank_.exchange(&phases);
  std::vector<std::string> names;
  for (const Calls* calls : all) {
    for (const Phase& phase : calls->front()) {
      if (std::find(names.begin(), names.end(), phase.name) == names.end()) names.push_back(phase.name);
    }
  }
  std::stable_partition(names.begin(), names.end(), [](const std::string& one) { return one != kAllReduce; });
  for (const std::string& one : names) {
    std::vector<double> samples;
    for (std::size_t call = 0; call < phases.size(); ++call) {
      std::vector<double> of_ranks;
      for (const Calls* calls : all) of_ranks.push_back(milliseconds_of((*calls)[call], one));
      samples.push_back(one == kAllReduce ? *std::min_element(of_ranks.begin(), of_ranks.end())
                                          : *std::max_element(of_ranks.begin(), of_ranks.end()));
    }
    times.phases.push_back({one, median(samples)});
  }
  std::vector<double> skews;
  for (std::size_t call = 0; call < phases.size(); ++call) {
    std::vector<double> arrivals;
    for (const Calls* calls : all) arrivals.push_back(arrival_at_all_reduce((*calls)[call]));
    skews.push_back(*std::max_element(arrivals.begin(), arrivals.end()) -
                    *std::min_element(arrivals.begin(), arrivals.end()));
  }
  times.skew_ms = median(skews);
  rank_.barrier();  // `phases` stay until everybody has read them
  return times;
}

void SparseBenchBase::print() const {
  if (rank_.id() != 0 || times_.empty()) return;
  const auto global = static_cast<double>(data_.global_rows().size());
  std::cout << "\ntable of " << data_.shape().rows << " x " << data_.shape().features << " in "
            << name_of(settings_.type) << ", rows numbered in " << name_of(settings_.index) << "; "
            << rank_.size() << (rank_.size() == 1 ? " rank" : " ranks") << ", " << entries_
            << " entries on rank 0, N = " << data_.total_rows()
            << " rows of single ranks, G = " << data_.global_rows().size() << " different ones, d = N / G = "
            << fixed(global > 0 ? static_cast<double>(data_.total_rows()) / global : 0, 3) << " ("
            << name_of(settings_.pattern) << ", " << backend::name() << ")\n\n";
  const char* modelled = backend::modelled_time() ? " (modelled)" : "";
  std::vector<std::string> header = {"", std::string("ms, host-timed") + modelled};
  std::vector<std::string> names;
  for (const SparseTimes& times : times_) {
    for (const Phase& phase : times.phases) {
      if (std::find(names.begin(), names.end(), phase.name) == names.end()) names.push_back(phase.name);
    }
  }
  // The all-reduce is the last thing that any variant does.
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != kAllReduce; });
  header.insert(header.end(), names.begin(), names.end());
  header.emplace_back("skew");
  header.emplace_back("calls");
  Table table(header);
  for (const SparseTimes& times : times_) {
    std::vector<std::string> row = {times.name, fixed(times.host_ms.median, 3)};
    for (const std::string& name : names) {
      const bool has = std::any_of(times.phases.begin(), times.phases.end(),
                                   [&](const Phase& phase) { return phase.name == name; });
      row.push_back(has ? fixed(times.phase_ms(name), 3) : "-");
    }
    row.push_back(times.phases.empty() ? "-" : fixed(times.skew_ms, 3));
    row.push_back(std::to_string(times.host_ms.samples));
    table.add_row(std::move(row));
  }
  std::cout << table;
  if (!regime_.unknown()) std::cout << regime_.line() << "\n";
}

void SparseBenchBase::save(Results& results) const {
  if (rank_.id() != 0) return;
  for (const auto& [variant, reason] : skipped_) results.add_skipped(variant, reason);
  if (times_.empty()) return;
  results.set_regime(regime_);
  for (const SparseTimes& times : times_) {
    Results::Fields fields = {{"variant", times.name},
                              {"role", std::string("algorithm")},
                              {"gpus", std::int64_t{rank_.size()}},
                              {"host_ms", times.host_ms.median},
                              {"host_p99_ms", times.host_ms.p99},
                              {"calls", std::int64_t{times.host_ms.samples}},
                              {"rows_of_ranks", data_.total_rows()},
                              {"global_rows", static_cast<std::int64_t>(data_.global_rows().size())}};
    for (const Phase& phase : times.phases) fields.emplace_back(phase.name + "_ms", phase.ms);
    if (!times.phases.empty()) fields.emplace_back("skew_ms", times.skew_ms);
    results.add_result(std::move(fields));
  }
}

const SparseTimes* SparseBenchBase::times_of(const std::string& name) const {
  const auto found = std::find_if(times_.begin(), times_.end(),
                                  [&](const SparseTimes& times) { return times.name == name; });
  return found == times_.end() ? nullptr : &*found;
}

template class SparseBench<std::int32_t, float>;
template class SparseBench<std::int32_t, __half>;
template class SparseBench<std::int32_t, __nv_bfloat16>;
template class SparseBench<std::int64_t, float>;
template class SparseBench<std::int64_t, __half>;
template class SparseBench<std::int64_t, __nv_bfloat16>;

}  // namespace overlap
