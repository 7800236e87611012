// What of this chapter only enqueues, and so can be judged by its calls (tools/teaching/replay).
#include "03_ring_all_gather/ring_all_gather.cuh"
#include "overlap/program/algorithms.hpp"

const overlap::ChapterAlgorithms& overlap::chapter_algorithms() {
  static const ChapterAlgorithms known = {
      .algorithms = {algorithm_entry<ring_all_gather::RingAllGatherMatmul>("ring", Sharing::kGather)}};
  return known;
}
