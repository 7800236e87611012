// A chapter's description and its defaults.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "overlap/data/sparse.hpp"
#include "overlap/gpu/element_type.hpp"
#include "overlap/gpu/shape.hpp"

namespace overlap {

/// Defaults of a chapter.
struct ChapterDefaults {
  MatmulShape shape = {};       ///< of the whole problem, and
  MatmulShape per_gpu = {};     ///< what each GPU adds to it
  int growing_to = 8;           ///< virtual GPUs: more than these share the sizes, or entries, of so many
  int gpus = 1;                 ///< at most: fewer if fewer are there
  int iterations = 1;           ///< timed runs
  int warmup = 0;               ///< runs before them that are not timed
  SparseShape sparse = {};      ///< of a chapter on sparse gradients, which has no `shape`
  std::int64_t duplicates = 0;  ///< entries of each rank beyond sparse.entries

  /// The sizes of the whole problem on so many GPUs. On virtual GPUs the work must not grow with their
  /// square; beyond growing_to, sizes are rounded up so that each GPU's share of 16-bit rows suits TMA.
  MatmulShape shape_on(int number_of_gpus) const;
  bool empty() const;
};

struct CostCards;
struct Options;

/// What a chapter is. (Every member has a default, so that a designated initialiser may leave it out.)
struct ChapterInfo {
  std::string name = {};     ///< as its folder: "01_column_split"
  std::string summary = {};  ///< one sentence for --help
  /// The table of variants: for --list, --only and --cost. dense_chapter_main() and its like set it.
  std::function<CostCards(const Options& options)> table = {};
  /// The names of the table, in the order in which they run; a program without a table gives them itself.
  std::vector<std::string> variants = {};
  ChapterDefaults on_virtual_gpus = {};  ///< sizes that take seconds on a CPU
  ChapterDefaults on_real_gpus = {};     ///< the source's sizes
  /// With the race detector, where a kernel takes about twenty times as long; empty: as on
  /// virtual GPUs.
  std::optional<ChapterDefaults> on_race_build = {};
  std::vector<ElementType> types = {};  ///< those it can do, of which --type is the first one; empty: int32
  bool without_ranks = false;           ///< it needs as many GPUs as --gpus says: ranks could all share one
  /// Its ranks are in nodes: --gpus-per-node says how many in each. Virtual GPUs may be up to 64.
  bool has_nodes = false;
  bool has_nccl_modes = false;  ///< its variants are those of nccl_modes() and others; --nccl keeps one mode

  /// Those it can do: at least one.
  std::vector<ElementType> element_types() const;
  int max_gpus() const;
  /// True of a chapter on sparse gradients: it has --rows, --features and --entries instead of --m, --n, --k.
  bool sparse() const { return on_virtual_gpus.sparse.rows > 0; }
  /// The defaults on the GPUs that this program was built for.
  const ChapterDefaults& defaults() const;
};

/// `info`, completed with the types and sizes of all chapters on C = A B that gather A.
ChapterInfo gather_chapter(ChapterInfo info);
/// The same for C = X W, whose summands are reduce-scattered.
ChapterInfo scatter_chapter(ChapterInfo info);
/// The same for sums of sparse gradients.
ChapterInfo sparse_chapter(ChapterInfo info);

}  // namespace overlap
