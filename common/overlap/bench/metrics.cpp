#include "overlap/bench/metrics.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

namespace overlap {
namespace {

void require_positive(const char* what, double value) {
  if (!(value > 0) || std::isinf(value)) {
    throw std::invalid_argument(std::string("metrics: ") + what + " is not a positive number");
  }
}

void require_times(double total_ms, double gemm_only_ms) {
  require_positive("the time of the whole", total_ms);
  require_positive("the time of the product alone", gemm_only_ms);
}

// The part of a buffer's bytes that each rank sends in an all-gather or a reduce-scatter: all but its own
// share.
double part_sent(int ranks) {
  if (ranks < 1) throw std::invalid_argument("metrics: there is no rank");
  return (ranks - 1.0) / ranks;
}

}  // namespace

double flops(MatmulShape shape) {
  if (shape.m < 0 || shape.n < 0 || shape.k < 0) throw std::invalid_argument("metrics: a size is negative");
  return 2 * shape.multiply_adds();
}

std::int64_t operand_bytes(MatmulShape shape, std::size_t element_bytes) {
  if (shape.m < 0 || shape.n < 0 || shape.k < 0) throw std::invalid_argument("metrics: a size is negative");
  return static_cast<std::int64_t>(element_bytes) *
         (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
}

double tflops(MatmulShape shape, double ms) {
  require_positive("the time", ms);
  return flops(shape) / (ms * 1e9);
}

double percent_of(double value, double whole) {
  require_positive("the whole", whole);
  return 100 * value / whole;
}

double exposed_ms(double total_ms, double gemm_only_ms) {
  require_times(total_ms, gemm_only_ms);
  return total_ms - gemm_only_ms;
}

double hidden_percent(double total_ms, double gemm_only_ms, double communication_only_ms) {
  require_positive("the time of the communication alone", communication_only_ms);
  return 100 * (1 - exposed_ms(total_ms, gemm_only_ms) / communication_only_ms);
}

double algorithm_bandwidth(std::int64_t bytes, double ms) {
  if (bytes < 0) throw std::invalid_argument("metrics: a size is negative");
  require_positive("the time", ms);
  return static_cast<double>(bytes) / (ms * 1e6);
}

double bus_bandwidth_all_gather(std::int64_t bytes, int ranks, double ms) {
  return algorithm_bandwidth(bytes, ms) * part_sent(ranks);
}

double bus_bandwidth_all_reduce(std::int64_t bytes, int ranks, double ms) {
  return algorithm_bandwidth(bytes, ms) * 2 * part_sent(ranks);
}

}  // namespace overlap
