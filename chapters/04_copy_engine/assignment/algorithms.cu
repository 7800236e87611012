// What of this chapter only enqueues, and so can be judged by its calls (tools/teaching/replay).
#include "04_copy_engine/copy_engine_ring.cuh"
#include "overlap/program/algorithms.hpp"

const overlap::ChapterAlgorithms& overlap::chapter_algorithms() {
  static const ChapterAlgorithms known = {
      .algorithms = {algorithm_entry<copy_engine::CopyEngineRing>("copy_engine_ring", Sharing::kGather)}};
  return known;
}
