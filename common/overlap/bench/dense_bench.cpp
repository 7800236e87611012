#include "overlap/bench/dense_bench.hpp"

#include <cstddef>
#include <iostream>

#include "overlap/bench/metrics.hpp"
#include "overlap/gpu/backend.hpp"

namespace overlap {
namespace {

constexpr const char* kGemmOnlyName = "gemm_only";

bool writes_result(Role role) { return role == Role::kAlgorithm || role == Role::kProduct; }

}  // namespace

DenseBench::DenseBench(DenseProblem& problem, const BenchSettings& settings)
    : Bench(&problem.rank(), settings), problem_(problem) {
  Variant alone;
  alone.name = kGemmOnlyName;
  alone.role = Role::kGemmOnly;
  alone.call = [&problem](cudaStream_t stream) { problem.gemm_only(stream); };
  add_always(std::move(alone));
}

void DenseBench::add(const std::string& name, Role role, const std::function<Enqueue()>& make) {
  add_variant(name, [&] {
    Variant variant;
    variant.role = role;
    variant.call = make();
    if (!writes_result(role)) return variant;
    // The last timed call gets -A, so that data left by earlier calls, in C or in the variant's slots and
    // buffers, cannot pass for its result.
    variant.poison = [this](Data data) {
      if (data == Data::kRandom) problem_.negate();
      problem_.poison_result();
    };
    variant.compare = [this, name](Data data) {
      require_right(data == Data::kExact ? problem_.compare_exact(settings().corrupt)
                                         : problem_.compare_normal(settings().corrupt),
                    name);
      if (data == Data::kRandom) problem_.negate();
    };
    return variant;
  });
}

void DenseBench::fill(Data data) { data == Data::kExact ? problem_.fill_exact() : problem_.fill_normal(); }

std::string DenseBench::all_right(const std::string& names) const {
  return "all " + std::to_string(problem_.result_elements()) + " elements are right: " + names;
}

ResultTable DenseBench::table() const {
  ResultTable table(
      {{"", "variant"},
       {modelled("us"), "device_ms", microseconds()},
       {"TFLOP/s", "tflops", digits(2)},
       {"% of peak", "percent_of_peak", digits(1)},
       {"x GEMM only", "ratio_to_gemm_only", digits(3)},
       {"exposed us", "exposed_ms", microseconds()},
       {"with the host us", "host_ms", microseconds()},
       {"of " + std::to_string(VariantTimes::calls_at_once(problem_.rank().size())) + " at once us",
        "back_to_back_ms", microseconds()}});
  for (std::size_t i = 0; i < times().size(); ++i) table.add(row(variants()[i], times()[i]));
  return table;
}

Results::Fields DenseBench::row(const Variant& variant, const VariantTimes& times) const {
  const int ranks = problem_.rank().size();
  const double ms = times.device_ms.median, alone = this->times().front().device_ms.median;
  Results::Fields fields = {{"variant", times.name},
                            {"role", std::string(name_of(variant.role))},
                            {"gpus", std::int64_t{ranks}},
                            {"device_ms", ms},
                            {"device_p99_ms", times.device_ms.p99},
                            {"host_ms", times.host_ms.median},
                            {"back_to_back_ms", times.back_to_back_ms}};
  if (variant.role == Role::kCommunication) {
    if (ms > 0) {  // one rank sends nothing, in no time
      const double rate = bus_bandwidth_all_gather(problem_.collective_bytes(), ranks, ms);
      fields.emplace_back("bus_gb_per_s", rate);
    }
  } else if (variant.role != Role::kPart) {
    const double rate = tflops(problem_.product(), ms), peak = backend::peak_tflops(problem_.type());
    fields.emplace_back("tflops", rate);
    // The floating point operations of the rank's GEMM, for profilers.
    fields.emplace_back("flops", flops(problem_.product()));
    fields.emplace_back("bytes", operand_bytes(problem_.product(), size_of(problem_.type())));
    if (peak > 0) fields.emplace_back("percent_of_peak", percent_of(rate, peak));
    fields.emplace_back("ratio_to_gemm_only", ms / alone);
    if (variant.role == Role::kAlgorithm) fields.emplace_back("exposed_ms", exposed_ms(ms, alone));
  }
  return fields;
}

void DenseBench::print_exposed(const std::string& algorithm) const {
  const VariantTimes* const whole = times_of(algorithm);
  const VariantTimes* const split = times_of("split_only");
  const VariantTimes* const communication = times_of("communication_only");
  if (!is_first() || problem_.rank().size() == 1 || !whole || !split || !communication) return;
  const double alone_ms = times_of(kGemmOnlyName)->device_ms.median;
  const double split_ms = split->device_ms.median, whole_ms = whole->device_ms.median;
  std::cout << "\nexposed: " << fixed(1e3 * exposed_ms(split_ms, alone_ms), 1)
            << " us by splitting the product, " << fixed(1e3 * exposed_ms(whole_ms, split_ms), 1)
            << " us by the transfers; "
            << fixed(hidden_percent(whole_ms, split_ms, communication->device_ms.median), 0)
            << " % of the communication is hidden\n";
}

}  // namespace overlap
