// Chapter 04: the cost of a message by its size. A copy takes a fixed time and a time for each byte: t = a +
// b x bytes. Where a is large compared with b x bytes, messages are too small for this transport.
#pragma once

#include <cuda_runtime.h>

#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "04_copy_engine/experiments/transport_timing.cuh"
#include "04_copy_engine/experiments/transports.cuh"
#include "overlap/bench/result_table.hpp"
#include "overlap/bench/settings.hpp"

namespace overlap::copy_engine {

/// y = a + b x.
struct Line {
  double a = 0;  ///< y at x = 0
  double b = 0;  ///< what each unit of x adds
};

/// The line with the least sum of squares of relative errors, ((a + b x - y) / y)^2. (With absolute errors
/// only the largest messages would count, and a would be noise.) Throws std::invalid_argument unless there
/// are two different values of x, as many y, all positive.
inline Line fit_line(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size()) throw std::invalid_argument("fit_line: as many x as y");
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(y[i] > 0)) throw std::invalid_argument("fit_line: a y is not positive");
    const double weight = 1 / (y[i] * y[i]);
    w += weight, wx += weight * x[i], wy += weight * y[i];
    wxx += weight * x[i] * x[i], wxy += weight * x[i] * y[i];
  }
  const double determinant = w * wxx - wx * wx;
  if (!(determinant > 1e-12 * w * wxx)) throw std::invalid_argument("fit_line: two different x at least");
  const double b = (w * wxy - wx * wy) / determinant;
  return {(wy - b * wx) / w, b};
}

/// Times one message to the left neighbour, of each of these sizes, by copy engines and by NCCL; rank 0
/// prints and reports sizes and fits. The last timed message of each is compared.
inline void time_sizes(Rank& rank, const std::vector<std::int64_t>& sizes, const BenchSettings& settings,
                       Results& results) {
  std::vector<std::unique_ptr<Transports>> transports;
  std::vector<SideBySideCall> calls;
  std::vector<std::string> names;
  for (const std::int64_t bytes : sizes) {
    transports.push_back(std::make_unique<Transports>(rank, bytes));
    for (const Transport& transport : transports.back()->list()) {
      const bool wanted = transport.name == "NCCL send and receive" ||
                          transport.name == "copy engine, push" || transport.name == "copy engine, pull";
      if (!wanted) continue;
      if (transports.size() == 1) names.push_back(transport.name);
      calls.push_back({[&transport](cudaStream_t stream) { transport.send(1, stream); }, {}});
      if (!settings.check) continue;
      calls.back().before_last = [all = transports.back().get()] { all->write_next(); };
      calls.back().after_last = [all = transports.back().get(), &transport, &settings] {
        all->compare(transport.name + ", " + std::to_string(all->bytes()) + " bytes", settings.corrupt);
      };
    }
  }
  const std::vector<double> times = time_alone(rank, calls, settings.iterations);
  if (rank.id() != 0) return;

  std::vector<Column> columns = {{"bytes", "bytes"}};
  for (const std::string& name : names)
    columns.insert(columns.end(),
                   {{name, name + " ms", microseconds()}, {"GB/s", name + " GB/s", digits(2)}});
  ResultTable table(std::move(columns));
  std::vector<std::vector<double>> microseconds_of(names.size());
  std::vector<double> bytes;
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    bytes.push_back(static_cast<double>(transports[s]->bytes()));
    Results::Fields line = {{"bytes", transports[s]->bytes()}};  // of which each message is a result
    for (std::size_t n = 0; n < names.size(); ++n) {
      const double ms = times[s * names.size() + n], rate = bytes.back() / ms * 1e-6;
      microseconds_of[n].push_back(1e3 * ms);
      line.insert(line.end(), {{names[n] + " ms", ms}, {names[n] + " GB/s", rate}});
      results.add_result({{"section", std::string("sizes")},
                          {"variant", names[n]},
                          {"gpus", std::int64_t{rank.size()}},
                          {"bytes", transports[s]->bytes()},
                          {"device_ms", ms},
                          {"gb_per_s", rate}});
    }
    table.add({}, line);
  }
  std::cout << "\nsizes: one message to the left neighbour, " << modelled("us") << " and GB/s\n" << table;
  for (std::size_t n = 0; n < names.size(); ++n) {
    const Line line = fit_line(bytes, microseconds_of[n]);
    if (!(line.b > 0)) {  // all sizes are so small that noise dominates
      std::cout << names[n] << ": no rate, since larger messages took no longer\n";
      continue;
    }
    std::cout << names[n] << ": t = " << fixed(line.a, 2) << " us + bytes / " << fixed(1e-3 / line.b, 2)
              << " GB/s\n";
    results.add_result({{"section", std::string("sizes")},
                        {"variant", names[n] + ", fit"},
                        {"gpus", std::int64_t{rank.size()}},
                        {"fixed_us", line.a},
                        {"gb_per_s", 1e-3 / line.b}});
  }
}

}  // namespace overlap::copy_engine
