#include "overlap/bench/bench.hpp"

#include <algorithm>
#include <array>
#include <iostream>

#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/timeline.hpp"

namespace overlap {

const char* name_of(Role role) {
  constexpr std::array kNames = {"gemm_only", "algorithm", "product", "part", "communication_only"};
  return kNames.at(static_cast<std::size_t>(role));
}

Bench::~Bench() = default;

void Bench::add_variant(const std::string& name, const std::function<Variant()>& make) {
  if (!settings_.runs(name)) return;
  try {
    variants_.push_back(make());
    variants_.back().name = name;
  } catch (const Skip& skip) {  // for the same reason on all ranks
    // The exception has passed owners of CUDA objects, which stopped the run: no further variant can run.
    if (rank_ != nullptr && rank_->stopping()) throw;
    skipped_.emplace_back(name, skip.what());
    if (is_first()) std::cout << name << " is left out: " << skip.what() << "\n";
  }
}

void Bench::run_once(const Variant& variant) {
  if (rank_ == nullptr) return variant.call(nullptr);
  rank_->barrier();
  variant.call(rank_->stream());
  rank_->synchronize(rank_->stream());
}

void Bench::verify() {
  const bool any = std::any_of(variants_.begin(), variants_.end(),
                               [](const Variant& variant) { return bool{variant.compare}; });
  if (!any && !skipped_.empty()) throw Skip(skipped_.back().second);
  if (!settings_.check) return;
  if (results_move()) {
    fill(Data::kRandom);
    for (const Variant& variant : variants_) run_once(variant);
  }
  fill(Data::kExact);
  std::string names;
  for (const Variant& variant : variants_) {
    if (!variant.compare) continue;
    variant.poison(Data::kExact);
    run_once(variant);
    variant.compare(Data::kExact);
    names += (names.empty() ? "" : ", ") + variant.name;
  }
  if (rank_ != nullptr) rank_->barrier();  // every rank has finished comparing
  if (is_first() && !names.empty()) std::cout << all_right(names) << "\n";
}

void Bench::time(bool back_to_back) {
  fill(Data::kRandom);
  std::vector<TimedVariant> timed(variants_.begin(), variants_.end());
  for (std::size_t v = 0; v < timed.size(); ++v) {
    const Variant& variant = variants_[v];
    if (!settings_.check || !variant.compare) continue;
    timed[v].before_last = [&variant] { variant.poison(Data::kRandom); };
    timed[v].after_last = [&variant] { variant.compare(Data::kRandom); };
  }
  if (rank_ == nullptr) {
    times_ = time_variants(timed, settings_.iterations, settings_.warmup);
  } else {
    const std::vector<backend::GpuState> before = gpu_states(*rank_);
    times_ = time_variants(*rank_, timed, settings_.iterations, settings_.warmup, back_to_back);
    clocks_ = clocks_of(before, gpu_states(*rank_));
  }
  if (settings_.timeline.empty()) return;
  for (const Variant& variant : variants_) {
    if (rank_ != nullptr) rank_->barrier();
    const TimelineSection section(variant.section.empty() ? variant.name : variant.section);
    run_once(variant);
  }
}

void Bench::look_at_results(const std::function<void(const std::string& name)>& look) {
  for (const Variant& variant : variants_) {
    if (!variant.compare) continue;
    variant.poison(Data::kRandom);
    run_once(variant);
    look(variant.name);
  }
}

void Bench::print() const {
  if (!is_first() || times_.empty()) return;
  std::cout << above_table() << table();
  if (!clocks_.unknown()) std::cout << clocks_.line() << "\n";
}

void Bench::save(Results& results) const {
  save_skipped(results);
  if (!is_first() || times_.empty()) return;
  results.set_clocks(clocks_);
  table().save(results);
}

void Bench::measure(Results& results, bool back_to_back) {
  try {
    verify();
    time(back_to_back);
  } catch (const Skip& skip) {  // each reason was told; a part alone says nothing
    times_.clear();
    for (const Variant& variant : variants_) {
      if (settings_.runs(variant.name)) skipped_.emplace_back(variant.name, skip.what());
    }
  }
  save_skipped(results);
}

void Bench::save_skipped(Results& results) const {
  if (!is_first()) return;
  for (const auto& [variant, reason] : skipped_) results.add_skipped(variant, reason);
}

void Bench::run(Results& results) {
  measure(results);
  print();
  save(results);
}

const VariantTimes* Bench::times_of(const std::string& name) const {
  const auto found = std::find_if(times_.begin(), times_.end(),
                                  [&](const VariantTimes& times) { return times.name == name; });
  return found == times_.end() ? nullptr : &*found;
}

}  // namespace overlap
