// The one command line of all chapter programs. Every option has the same meaning everywhere.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "overlap/bench/settings.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/element_type.hpp"
#include "overlap/gpu/nccl_mode.hpp"
#include "overlap/gpu/shape.hpp"
#include "overlap/program/chapter_info.hpp"

namespace overlap {

class Processes;

/// What only a program on sparse gradients is told.
struct SparseOptions {
  SparseShape shape = {};                     ///< of the whole problem
  std::int64_t duplicates = 0;                ///< entries of each rank that repeat one of its rows
  RowPattern pattern = RowPattern::kUniform;  ///< which rows the ranks have
  IndexType index = IndexType::kInt32;        ///< of row numbers
  std::int64_t global = 0;                    ///< with --cost: different rows of all ranks
};

/// The command line, checked and complete.
struct Options : BenchSettings {
  int gpus = 1;                       ///< ranks, or GPUs of a program without ranks
  bool gpus_given = false;            ///< if not, chapter_main() takes at most as many GPUs as there are
  int given_gpus_per_node = 0;        ///< what the user gave, 0 if nothing
  int gpus_per_node = 0;              ///< of a chapter whose ranks are in nodes, else 0
  MatmulShape shape = {};             ///< of the whole problem, whatever the number of GPUs
  MatmulShape given_shape = {};       ///< the sizes that the user gave, 0 where there is none
  SparseOptions sparse = {};          ///< of a chapter on sparse gradients, which has no `shape`
  std::uint64_t seed = 1;             ///< of the data
  std::string json = {};              ///< file for the report; empty: none
  int timeout_s = 0;                  ///< seconds; 0: none
  std::optional<NcclMode> nccl = {};  ///< the only mode of NCCL to run; empty: all of nccl_modes()
  BackendOptions backend = {};        ///< --schedule and --machine
  bool cost = false;                  ///< print the cost cards, and run nothing
  Processes* processes = nullptr;     ///< if several run this program together

  /// True in the process that prints and writes files: the only one, or process 0.
  bool is_root() const;

  /// Takes so many GPUs, and the chapter's sizes for them where the user gave none. Throws UsageError if
  /// nodes of the given size cannot hold them.
  void use_gpus(int number, const ChapterInfo& chapter);
};

/// Reads the command line. --help and --list are answered on `out`; the result is then empty. Throws
/// UsageError, one sentence that starts with the option, if the command line cannot be used; Skip if --nccl
/// asks for what this program was built without. Makes no CUDA call. `processes`: if several processes run
/// this program, each of which is a node.
std::optional<Options> parse_options(int argc, const char* const* argv, const ChapterInfo& chapter,
                                     std::ostream& out, Processes* processes = nullptr);

}  // namespace overlap
