// Rates of GEMMs and collectives, and the exposed part of communication. All times are in milliseconds,
// bandwidths in GB/s (10^9 bytes a second). Functions throw std::invalid_argument for a time or a peak that
// is not positive, or a size that is negative.
#pragma once

#include <cstddef>
#include <cstdint>

#include "overlap/gpu/shape.hpp"

namespace overlap {

/// Floating point operations of a product: two for each multiply-add.
double flops(MatmulShape shape);

/// Bytes of A, B and C of a product, each once: what memory must move at least.
std::int64_t operand_bytes(MatmulShape shape, std::size_t element_bytes);

/// 10^12 floating point operations a second.
double tflops(MatmulShape shape, double ms);

/// `value` in per cent of `whole`: of a peak, of a link's bandwidth, of GEMM only.
double percent_of(double value, double whole);

/// Communication that is not hidden: how much longer the whole takes than the product alone. Noise can make
/// it a little less than 0.
double exposed_ms(double total_ms, double gemm_only_ms);

/// The part of the communication that is hidden behind the product, in per cent: 100 if the whole takes no
/// longer than the product alone, 0 if it takes as long as one after the other.
double hidden_percent(double total_ms, double gemm_only_ms, double communication_only_ms);

/// Bytes a second through one rank, whatever the collective.
double algorithm_bandwidth(std::int64_t bytes, double ms);

/// Bus bandwidth, to be compared with a link's whatever the number of ranks, as nccl-tests define it
/// (doc/PERFORMANCE.md, "Bus bandwidth"): the algorithm's bandwidth times the part of the bytes that each
/// rank's link has to carry. `bytes` is the size of the larger of the two buffers: what each rank has in the
/// end of an all-gather or in the beginning of a reduce-scatter, all ranks' shards together. That part is
/// (ranks - 1) / ranks in both, since a rank's own shard does not travel. 0 for one rank, which sends
/// nothing. Throws std::invalid_argument also if ranks < 1.
double bus_bandwidth_all_gather(std::int64_t bytes, int ranks, double ms);
/// The same for an all-reduce, which is both, one after the other: 2 (ranks - 1) / ranks.
double bus_bandwidth_all_reduce(std::int64_t bytes, int ranks, double ms);

}  // namespace overlap
