// How an algorithm's parts follow and overlap each other, as times on a machine. What the parts are, how many
// and how large, comes from the algorithm's cost card; here stands only what waits for what.
//
// All ranks do the same at the same time, so one rank's call is all there is to follow: a shard comes from
// the neighbour when this rank's own would get there. Times are microseconds.
#pragma once

#include <cstdint>

#include "machine.hpp"
#include "overlap/data/cost.hpp"
#include "overlap/gpu/shape.hpp"

namespace overlap::planner {

/// A product, or one of equal parts of it.
struct Product {
  double us = 0;       ///< alone: whole waves, or what its operands and its result take in memory
  double work_us = 0;  ///< the multiprocessors' time in it over their number: what is left of `us` if others
                       ///< fill its last wave
  double waves = 0;    ///< of its tiles, the last one by its part
  double wave_us = 0;  ///< one wave of its tiles: for so long a multiprocessor is not free
};

/// A rank's products, cut into equal parts by rows of C.
struct Cut {
  MatmulShape shape = {};  ///< all of it
  std::int64_t parts = 1;  ///< 1 or more
  Tile tile = {};          ///< of a kernel that has one for all sizes; none: the library's, as fits the part
  /// The largest part.
  MatmulShape part() const { return {(shape.m + parts - 1) / parts, shape.n, shape.k}; }
};

/// A part, of 16-bit elements, on so many multiprocessors. The library takes the tile that would be done
/// first on all of them: the machine's, turned, or halved once or twice. Nothing without elements.
Product part_of(const Machine& machine, Cut cut, int multiprocessors);
/// The same on all multiprocessors.
Product part_of(const Machine& machine, Cut cut);

/// By how much a call that computes so long is slower than a short one: the limit of power.
double slow_down(const Machine& machine, double product_us);

/// A kernel that reads and writes so many bytes, with its launch.
double kernel_us(const Machine& machine, double bytes);

/// How NCCL gets at its buffers.
enum class Collective { kPlain, kRegistered, kCopyEngine };
/// A collective of NCCL that sends so many messages along a ring, alone. 0 without messages. On more GPUs
/// than a node has, its rings use all ways out of a node.
double collective_us(const Machine& machine, int ranks, std::int64_t messages, double bytes_out,
                     Collective mode = Collective::kPlain);

// ---- What a call takes, without what lies before its first kernel and behind its last ------------------

/// One product after another on a stream.
double products_us(const Machine& machine, Cut cut);
/// Products on two streams: each fills the last wave of the one before.
double products_on_two_streams_us(const Machine& machine, Cut cut);

/// A ring of NCCL's sends and receives beside products, which it takes multiprocessors from.
double nccl_ring_us(const Machine& machine, Cut cut, const Cost& cost, int ranks);
/// A ring of copies; a part's product waits for its shard. On two streams, the wait is another stream's.
double copy_ring_us(const Machine& machine, Cut cut, const Cost& cost, bool two_streams);
/// Pulls in turn between two barriers; `published` bytes are copied first.
double pulls_us(const Machine& machine, Cut cut, const Cost& cost, double published);
/// Parts of the product are sent as they get ready; what has come is added once, in `added` bytes.
double send_and_sum_us(const Machine& machine, Cut cut, const Cost& cost, double added);

/// Accumulators that go round.
struct Rotation {
  bool zeros = false;      ///< begun by a pass of zeros
  bool stores = false;     ///< the kernel that adds stores on the next rank; else a copy follows it
  double accumulator = 0;  ///< bytes of one
  double result = 0;       ///< bytes of the rank's result
};
/// A kernel that adds waits for its accumulator, and until multiprocessors get free.
double rotation_us(const Machine& machine, Cut cut, const Cost& cost, Rotation rotation);

/// One persistent kernel that takes tiles as their shards come. `hops`: a shard is passed on from rank to
/// rank; else its owner sends it to everybody.
double persistent_us(const Machine& machine, Cut cut, const Cost& cost, int ranks, bool hops);
/// Nodes of equally many ranks.
struct Nodes {
  int count = 1;  ///< of them
  int ranks = 1;  ///< of each
};
/// One persistent kernel, whose tiles wait for shards that come along a rail from node to node (`rail` is
/// what a rank sends there), and are pushed to all of a node. `cost`: both. `aside` multiprocessors are not
/// its own.
double two_level_us(const Machine& machine, Cut cut, const Cost& rail, const Cost& cost, Nodes nodes,
                    int aside);
/// One persistent kernel whose blocks all meet in each step, and which sends a shard while it multiplies it.
double stepwise_us(const Machine& machine, Cut cut, const Cost& cost, int ranks);
/// One persistent kernel that sends partial tiles from its epilogue, own tiles last; `added` bytes are added.
double scattered_us(const Machine& machine, Cut cut, const Cost& cost, double added);

}  // namespace overlap::planner
