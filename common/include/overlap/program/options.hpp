// The one command line of all chapter programs. Every option has the same meaning everywhere.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "overlap/bench/settings.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/element_type.hpp"
#include "overlap/gpu/nccl_mode.hpp"
#include "overlap/gpu/shape.hpp"

namespace overlap {

/// What a chapter does where the user does not say otherwise.
struct ChapterDefaults {
  MatmulShape shape = {};       ///< of the whole problem, and
  MatmulShape per_gpu = {};     ///< what each GPU adds to it
  int gpus = 1;                 ///< at most: fewer if fewer are there
  int iterations = 1;           ///< timed runs
  int warmup = 0;               ///< runs before them that are not timed
  SparseShape sparse = {};      ///< of a chapter on sparse gradients, which has no `shape`
  std::int64_t duplicates = 0;  ///< entries of each rank beyond sparse.entries

  /// The sizes of the whole problem on so many GPUs.
  MatmulShape shape_on(int number_of_gpus) const;
};

/// What a chapter is. (Every member has a default, so that a designated initialiser may leave it out.)
struct ChapterInfo {
  std::string name = {};                   ///< as its folder: "01_column_split"
  std::string summary = {};                ///< one sentence for --help
  std::vector<std::string> variants = {};  ///< for --list and --only, in the order in which they run
  ChapterDefaults on_virtual_gpus = {};    ///< sizes that take seconds on a CPU
  ChapterDefaults on_real_gpus = {};       ///< the source's sizes
  /// With the race detector, where a kernel takes about twenty times as long; empty: as on
  /// virtual GPUs.
  std::optional<ChapterDefaults> on_race_build = {};
  std::vector<ElementType> types = {ElementType::kInt32};  ///< those it can do
  ElementType default_type = ElementType::kInt32;          ///< without --type
  bool ranks_may_share_gpus = false;  ///< with more --gpus than there are, all ranks share one
  bool has_nccl_modes = false;  ///< its variants are those of nccl_modes() and others; --nccl keeps one mode

  /// True of a chapter on sparse gradients: it has --rows and its like instead of --m, --n, --k.
  bool sparse() const { return on_virtual_gpus.sparse.rows > 0; }
  /// The defaults on the GPUs that this program was built for.
  const ChapterDefaults& defaults() const;
};

/// The command line, checked and complete.
struct Options : BenchSettings {
  int gpus = 1;                       ///< ranks, or GPUs of a program without ranks
  bool gpus_given = false;            ///< if not, chapter_main() takes at most as many GPUs as there are
  MatmulShape shape = {};             ///< of the whole problem, whatever the number of GPUs
  MatmulShape given_shape = {};       ///< the sizes that the user gave, 0 where there is none
  SparseShape sparse = {};            ///< of a chapter on sparse gradients
  std::int64_t duplicates = 0;        ///< entries of each rank that repeat one of its rows
  std::uint64_t seed = 1;             ///< of the data
  std::string json = {};              ///< file for the report; empty: none
  int timeout_s = 0;                  ///< seconds; 0: none
  std::optional<NcclMode> nccl = {};  ///< the only mode of NCCL to run; empty: all of nccl_modes()
  BackendOptions backend = {};        ///< --schedule and --machine

  /// Takes so many GPUs, and the chapter's sizes for them where the user gave none.
  void use_gpus(int number, const ChapterDefaults& defaults);
};

/// Reads the command line. --help and --list are answered on `out`; the result is then empty. Throws
/// UsageError, one sentence that starts with the option, if the command line cannot be used; Skip if --nccl
/// asks for what this program was built without. Makes no CUDA call.
std::optional<Options> parse_options(int argc, const char* const* argv, const ChapterInfo& chapter,
                                     std::ostream& out);

}  // namespace overlap
