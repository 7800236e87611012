// Chapter 01: the product on one GPU and on N GPUs, verified on every element, then timed.
#include <algorithm>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "01_column_split/column_split.cuh"
#include "overlap/bench/timing.hpp"
#include "overlap/data/verify.hpp"
#include "overlap/gpu/timeline.hpp"
#include "overlap/program/chapter.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

// Elements of A and B lie between -kLargest and kLargest, so a sum of k products fits an int for any k up to
// 2^25.
constexpr int kLargest = 8;

struct Measurement {
  std::vector<std::vector<double>> kernel_ms;     // [GPU][iteration]
  std::vector<double> slowest_ms, end_to_end_ms;  // [iteration]
};

struct Variant {
  std::string name;
  ColumnSplitMatmul matmul;
  Measurement measured;
};

struct Data {
  PinnedBuffer<int> a, b, c;
  std::vector<int> expected;
};

std::string gpus_text(int gpus) { return gpus == 1 ? "1 GPU" : std::to_string(gpus) + " GPUs"; }

/// A and B at random; C's right value from the CPU.
Data make_data(const Options& options) {
  const auto [m, n, k] = options.shape;
  if (k > std::numeric_limits<int>::max() / (kLargest * kLargest)) {
    throw UsageError("--k: sums of " + std::to_string(k) + " products would not fit an int");
  }
  Data data{PinnedBuffer<int>(checked_elements(m, k, sizeof(int))),
            PinnedBuffer<int>(checked_elements(k, n, sizeof(int))),
            PinnedBuffer<int>(checked_elements(m, n, sizeof(int))),
            {}};
  fill_integers({data.a.begin(), data.a.end()}, -kLargest, kLargest, options.seed);
  fill_integers({data.b.begin(), data.b.end()}, -kLargest, kLargest, options.seed + 1);
  if (options.check) {
    data.expected.resize(data.c.size());
    reference_matmul(options.shape, {data.a.begin(), data.a.end()}, {data.b.begin(), data.b.end()},
                     data.expected);
  }
  return data;
}

/// Makes A -A, and expects -C.
void negate(Data& data) {
  for (int& element : data.a) element = -element;
  for (int& element : data.expected) element = -element;
}

/// Compares every element of C. Throws WrongResult.
void require_right_product(const Variant& variant, Data& data, const Options& options) {
  if (options.corrupt) corrupt_one_element({data.c.begin(), data.c.end()});
  require_right(compare_matrices(data.expected, {data.c.begin(), data.c.end()}, options.shape.n),
                gpus_text(variant.matmul.gpus()));
}

/// One timed run: kernels by events, all of it (copies included) by the host's clock.
void time_once(Variant& variant, Data& data, bool keep) {
  const HostTimer timer;
  variant.matmul.run(data.a.data(), data.b.data(), data.c.data());
  variant.matmul.synchronize();
  const double end_to_end_ms = timer.milliseconds();
  if (!keep) return;

  Measurement& measured = variant.measured;
  measured.kernel_ms.resize(variant.matmul.gpus());
  double slowest = 0;
  for (int gpu = 0; gpu < variant.matmul.gpus(); ++gpu) {
    const double milliseconds = variant.matmul.kernel_ms(gpu);
    measured.kernel_ms[gpu].push_back(milliseconds);
    slowest = std::max(slowest, milliseconds);
  }
  measured.slowest_ms.push_back(slowest);
  measured.end_to_end_ms.push_back(end_to_end_ms);
}

void print(const std::vector<Variant>& variants, const char* modelled) {
  for (const Variant& variant : variants) {
    std::cout << "\n" << gpus_text(variant.matmul.gpus()) << "\n";
    Table table({"GPU", "columns", std::string("kernel ms") + modelled});
    for (int gpu = 0; gpu < variant.matmul.gpus(); ++gpu) {
      const Range columns = variant.matmul.columns(gpu);
      const std::string text =
          columns.empty() ? "none" : std::to_string(columns.begin) + " to " + std::to_string(columns.end - 1);
      table.add_row({std::to_string(gpu), text, fixed(summarise(variant.measured.kernel_ms[gpu]).median, 3)});
    }
    std::cout << table;
  }
  const double kernel_base = summarise(variants.front().measured.slowest_ms).median;
  const double total_base = summarise(variants.front().measured.end_to_end_ms).median;
  Table table({"", std::string("kernel ms") + modelled, "speed-up", std::string("with copies ms") + modelled,
               "speed-up"});
  for (const Variant& variant : variants) {
    const double kernel = summarise(variant.measured.slowest_ms).median;
    const double total = summarise(variant.measured.end_to_end_ms).median;
    table.add_row({gpus_text(variant.matmul.gpus()), fixed(kernel, 3), fixed(kernel_base / kernel, 2) + " x",
                   fixed(total, 3), fixed(total_base / total, 2) + " x"});
  }
  std::cout << "\n" << table;
}

void save(const std::vector<Variant>& variants, const ChapterInfo& chapter, const Options& options) {
  Report report(chapter, options);
  for (const Variant& variant : variants) {
    const Summary kernel = summarise(variant.measured.slowest_ms);
    const Summary total = summarise(variant.measured.end_to_end_ms);
    Report::Fields fields = {{"variant", variant.name},       {"gpus", std::int64_t{variant.matmul.gpus()}},
                             {"kernel_ms", kernel.median},    {"kernel_p99_ms", kernel.p99},
                             {"end_to_end_ms", total.median}, {"end_to_end_p99_ms", total.p99}};
    for (int gpu = 0; gpu < variant.matmul.gpus(); ++gpu) {
      fields.emplace_back("kernel_ms_gpu" + std::to_string(gpu),
                          summarise(variant.measured.kernel_ms[gpu]).median);
    }
    report.add_result(std::move(fields));
  }
  report.save();
}

const ChapterInfo kChapter = {
    .name = "01_column_split",
    .summary = "C = A B in int, the columns of B split over several GPUs.",
    .variants = {"one_gpu", "all_gpus"},
    .on_virtual_gpus = {.shape = {512, 1024, 128}, .gpus = 4, .iterations = 3, .warmup = 1},
    .on_real_gpus = {.shape = {4096, 8192, 1024}, .gpus = 16, .iterations = 20, .warmup = 3},
    .on_race_build = {{.shape = {128, 256, 32}, .gpus = 4, .iterations = 1, .warmup = 0}},
};

void run(const Options& options) {
  const auto [m, n, k] = options.shape;
  std::cout << "C = A B in int32: A " << m << " x " << k << ", B " << k << " x " << n
            << "; columns split over " << gpus_text(options.gpus) << " (" << backend::name() << ")\n";

  // The GPUs first: if one is missing or too small, nobody has waited for the CPU's reference in vain.
  std::vector<Variant> variants;
  if (options.runs("one_gpu")) variants.push_back({"one_gpu", ColumnSplitMatmul(1, options.shape), {}});
  const bool is_the_same = options.gpus == 1 && !variants.empty();  // then it is measured once
  if (options.runs("all_gpus") && !is_the_same)
    variants.push_back({"all_gpus", ColumnSplitMatmul(options.gpus, options.shape), {}});
  Data data = make_data(options);

  // In turns, so that a change of the clock frequency meets all variants alike. The first run and the last
  // timed one start with a poisoned C and are compared: no time is shown of a product that was wrong. The
  // last one multiplies -A: what the runs before have left on a GPU must not pass for its result.
  const int runs = options.warmup + options.iterations;
  for (int i = -1; i < runs; ++i) {
    const bool compare = options.check && (i == -1 || i == runs - 1);
    if (compare && i == runs - 1) negate(data);
    for (Variant& variant : variants) {
      if (compare) poison({data.c.begin(), data.c.end()});
      const TimelineSection section(gpus_text(variant.matmul.gpus()), i == runs - 1);
      time_once(variant, data, i >= options.warmup);
      if (compare) require_right_product(variant, data, options);
    }
  }
  if (options.check) std::cout << "all " << data.expected.size() << " elements are right\n";

  save(variants, kChapter, options);
  print(variants, backend::modelled_time() ? " (modelled)" : "");
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) { return overlap::chapter_main(argc, argv, overlap::kChapter, overlap::run); }
