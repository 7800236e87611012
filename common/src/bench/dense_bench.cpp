#include "overlap/bench/dense_bench.hpp"

#include <algorithm>
#include <iostream>

#include "overlap/bench/metrics.hpp"
#include "overlap/bench/table.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap {
namespace {

constexpr const char* kGemmOnlyName = "gemm_only";

const char* name_of(Role role) {
  switch (role) {
    case Role::kGemmOnly:
      return "gemm_only";
    case Role::kAlgorithm:
      return "algorithm";
    case Role::kProduct:
      return "product";
    case Role::kPart:
      return "part";
    case Role::kCommunication:
      return "communication_only";
  }
  return "unknown";
}

bool writes_result(Role role) { return role == Role::kAlgorithm || role == Role::kProduct; }

std::string microseconds(double ms) { return fixed(1e3 * ms, 1); }

}  // namespace

DenseBench::DenseBench(DenseProblem& problem, const BenchSettings& settings)
    : problem_(problem), settings_(settings) {
  variants_.push_back(
      {kGemmOnlyName, Role::kGemmOnly, [&problem](cudaStream_t stream) { problem.gemm_only(stream); }});
}

void DenseBench::add(const std::string& name, Role role, const std::function<Enqueue()>& make) {
  if (!settings_.runs(name)) return;
  try {
    variants_.push_back({name, role, make()});
  } catch (const Skip& skip) {  // for the same reason on all ranks
    skipped_.emplace_back(name, skip.what());
    if (problem_.rank().id() == 0) std::cout << name << " is left out: " << skip.what() << "\n";
  }
}

void DenseBench::run_once(const Variant& variant) {
  Rank& rank = problem_.rank();
  rank.barrier();
  variant.enqueue(rank.stream());
  rank.synchronize(rank.stream());
}

void DenseBench::compare(const Variant& variant, bool exact) {
  const Verification found =
      exact ? problem_.compare_exact(settings_.corrupt) : problem_.compare_normal(settings_.corrupt);
  require_right(found, variant.name);
}

void DenseBench::verify() {
  Rank& rank = problem_.rank();
  const bool any = std::any_of(variants_.begin(), variants_.end(),
                               [](const Variant& variant) { return writes_result(variant.role); });
  if (!any && !skipped_.empty()) throw Skip(skipped_.back().second);
  if (!settings_.check) return;
  problem_.fill_exact();
  std::string names;
  for (const Variant& variant : variants_) {
    if (!writes_result(variant.role)) continue;
    problem_.poison_result();
    run_once(variant);
    compare(variant, true);
    names += (names.empty() ? "" : ", ") + variant.name;
  }
  rank.barrier();  // every rank has compared
  if (rank.id() != 0 || names.empty()) return;
  std::cout << "all " << problem_.result_elements() << " elements are right: " << names << "\n";
}

void DenseBench::time(bool back_to_back) {
  Rank& rank = problem_.rank();
  problem_.fill_normal();
  std::vector<TimedVariant> timed;
  for (const Variant& variant : variants_) {
    timed.push_back({variant.name, variant.enqueue});
    if (!settings_.check || !writes_result(variant.role)) continue;
    timed.back().before_last = [this] { problem_.poison_result(); };
    timed.back().after_last = [this, &variant] { compare(variant, false); };
  }
  const std::vector<backend::GpuState> before = gpu_states(rank);
  times_ = time_variants(rank, timed, settings_.iterations, settings_.warmup, back_to_back);
  regime_ = regime_of(before, gpu_states(rank));
  if (settings_.timeline.empty()) return;
  for (const Variant& variant : variants_) {
    rank.barrier();
    const TimelineSection section(variant.name);
    variant.enqueue(rank.stream());
    rank.synchronize(rank.stream());
  }
}

void DenseBench::look_at_results(const std::function<void(const std::string& name)>& look) {
  for (const Variant& variant : variants_) {
    if (!writes_result(variant.role)) continue;
    problem_.poison_result();
    run_once(variant);
    look(variant.name);
  }
}

void DenseBench::print() const {
  if (problem_.rank().id() != 0) return;
  const double alone = times_.front().device_ms.median;
  const double peak = backend::peak_tflops(problem_.type());
  const char* modelled = backend::modelled_time() ? " (modelled)" : "";
  Table table({"", std::string("us") + modelled, "TFLOP/s", "% of peak", "x GEMM only", "exposed us",
               "with the host us", "of " + std::to_string(VariantTimes::calls_at_once()) + " at once us"});
  for (std::size_t i = 0; i < variants_.size(); ++i) {
    const Role role = variants_[i].role;
    const double ms = times_[i].device_ms.median;
    const bool product = role != Role::kCommunication && role != Role::kPart;
    const double rate = product ? tflops(problem_.product(), ms) : 0;
    table.add_row({times_[i].name, microseconds(ms), product ? fixed(rate, 2) : "-",
                   product && peak > 0 ? fixed(percent_of(rate, peak), 1) : "-",
                   product ? fixed(ms / alone, 3) : "-",
                   role == Role::kAlgorithm ? microseconds(exposed_ms(ms, alone)) : "-",
                   microseconds(times_[i].host_ms.median), microseconds(times_[i].back_to_back_ms)});
  }
  std::cout << "\n" << table;
  if (!regime_.unknown()) std::cout << regime_.line() << "\n";
}

void DenseBench::save(Results& results) const {
  if (problem_.rank().id() != 0) return;
  save_skipped(results);
  results.set_regime(regime_);
  const double alone = times_.front().device_ms.median;
  const double peak = backend::peak_tflops(problem_.type());
  for (std::size_t i = 0; i < variants_.size(); ++i) {
    const VariantTimes& times = times_[i];
    const Role role = variants_[i].role;
    const double ms = times.device_ms.median;
    Results::Fields fields = {{"variant", times.name},
                              {"role", std::string(name_of(role))},
                              {"gpus", std::int64_t{problem_.rank().size()}},
                              {"device_ms", ms},
                              {"device_p99_ms", times.device_ms.p99},
                              {"host_ms", times.host_ms.median},
                              {"back_to_back_ms", times.back_to_back_ms}};
    if (role == Role::kCommunication) {
      if (ms > 0) {  // one rank sends nothing, in no time
        fields.emplace_back("bus_gb_per_s", bus_bandwidth_all_gather(problem_.collective_bytes(),
                                                                     problem_.rank().size(), ms));
      }
    } else if (role != Role::kPart) {
      const double rate = tflops(problem_.product(), ms);
      fields.emplace_back("tflops", rate);
      if (peak > 0) fields.emplace_back("percent_of_peak", percent_of(rate, peak));
      fields.emplace_back("ratio_to_gemm_only", ms / alone);
      if (role == Role::kAlgorithm) fields.emplace_back("exposed_ms", exposed_ms(ms, alone));
    }
    results.add_result(std::move(fields));
  }
}

void DenseBench::save_skipped(Results& results) const {
  if (problem_.rank().id() != 0) return;
  for (const auto& [variant, reason] : skipped_) results.add_skipped(variant, reason);
}

void DenseBench::run(Results& results) {
  try {
    verify();
  } catch (const Skip&) {  // each reason was told
    return save_skipped(results);
  }
  time();
  print();
  save(results);
}

const VariantTimes* DenseBench::times_of(const std::string& name) const {
  const auto found = std::find_if(times_.begin(), times_.end(),
                                  [&](const VariantTimes& times) { return times.name == name; });
  return found == times_.end() ? nullptr : &*found;
}

void print_shares(const DenseProblem& problem) {
  if (problem.rank().id() != 0) return;
  const auto [m, n, k] = problem.whole();
  const int ranks = problem.rank().size();
  std::cout << "C = A B in " << name_of(problem.type()) << ": A " << m << " x " << k << ", B " << k << " x "
            << n << "; " << problem.unit() << " shared out over " << ranks
            << (ranks == 1 ? " rank" : " ranks") << " (" << backend::name()
            << (problem.rank().shares_gpu() ? ", all on one GPU" : "") << ")\n";
}

}  // namespace overlap
