// What of this chapter only enqueues, and so can be judged by its calls (tools/teaching/replay).
#include "05_two_streams/pull_two_streams.cuh"
#include "05_two_streams/ring_two_streams.cuh"
#include "overlap/program/algorithms.hpp"

const overlap::ChapterAlgorithms& overlap::chapter_algorithms() {
  static const ChapterAlgorithms known = {
      .algorithms = {algorithm_entry<two_streams::RingTwoStreams>("ring_two_streams", Sharing::kGather),
                     algorithm_entry<two_streams::PullTwoStreams>("pull_two_streams", Sharing::kGather)}};
  return known;
}
