// What of this chapter only enqueues, and so can be judged by its calls (tools/teaching/replay).
#include "02_gather_then_multiply/gather_then_multiply.cuh"
#include "overlap/program/algorithms.hpp"

const overlap::ChapterAlgorithms& overlap::chapter_algorithms() {
  static const ChapterAlgorithms known = {
      .algorithms = {algorithm_entry<gather_then_multiply::GatherThenMultiply>("nccl", Sharing::kGather)}};
  return known;
}
