#include "overlap/program/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <ostream>

#include "overlap/data/matrix.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/processes.hpp"
#include "overlap/program/cost_cards.hpp"
#include "overlap/program/option_values.hpp"
#include "overlap/program/report.hpp"

namespace overlap {
namespace {

constexpr const char* kCommon = "Common";
constexpr const char* kMore = "More";
constexpr const char* kVirtual = "Virtual GPUs only";
constexpr const char* kHidden = "";  // CLI11: such a group is not in the help
constexpr int kMaxCostedGpus = 4096;

// The command line of one chapter. It refers to `options`, which must live as long.
class CommandLine {
 public:
  CommandLine(const ChapterInfo& chapter, Options& options)
      : app_(chapter.summary, chapter.name), chapter_(chapter), options_(options) {
    add_common();
    add_more();
    add_virtual();
    app_.allow_extras();  // so that they are refused below, with our own message
    app_.get_formatter()->column_width(24);
  }

  // The output of --help or --list, if requested.
  std::optional<std::string> parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return help();
    } catch (const CLI::ArgumentMismatch& error) {
      throw UsageError(mismatch_sentence(error.what()));
    } catch (const CLI::ParseError& error) {
      throw UsageError(error.what());
    }
    for (const std::string& word : app_.remaining()) {
      throw UsageError(word.starts_with("-") ? word + ": unknown option" : "'" + word + "': not an option");
    }
    check_gpus();
    if (chapter_.sparse()) fit_sparse_defaults();
    if (check_ && no_check_) throw UsageError("--no-check: cannot be given together with --check");
    options_.check = !no_check_;
    if (!list_) return std::nullopt;
    std::string names;
    for (const std::string& variant : chapter_.variants) names += variant + "\n";
    return names;
  }

 private:
  using Apply = std::function<void(const std::string& option, const std::string& text)>;

  // CLI11 leaves two empty lines between groups; one is enough.
  std::string help() const {
    std::string text = app_.help();
    for (std::size_t place = 0; (place = text.find("\n\n\n", place)) != std::string::npos;)
      text.erase(place, 1);
    while (text.ends_with("\n\n")) text.pop_back();
    return text;
  }

  // An option that takes one value.
  void add(const char* group, const std::string& name, const std::string& value_name, const std::string& help,
           const Apply& apply) {
    app_.add_option_function<std::string>(
            name, [name, apply](const std::string& text) { apply(name, text); }, help)
        ->type_name(value_name)
        ->group(group);
  }

  // An option whose value is a whole number.
  template <typename T, typename Target>
  void add_number(const char* group, const std::string& name, const std::string& value_name,
                  const std::string& help, T least, T most, Target& target) {
    add(group, name, value_name, help,
        [least, most, &target](const std::string& option, const std::string& text) {
          target = number<T>(option, text, least, most);
        });
  }

  // An option without a value.
  void add_flag(const char* group, const std::string& name, const std::string& help, bool& given) {
    app_.add_flag(name, given, help)->disable_flag_override()->group(group);
  }

  void add_size(const std::string& name, const std::string& what, std::int64_t MatmulShape::*member) {
    const std::int64_t fixed = chapter_.defaults().shape.*member,
                       growing = chapter_.defaults().per_gpu.*member;
    std::string usual = fixed > 0 || growing == 0 ? std::to_string(fixed) : "";
    if (growing > 0) usual += (usual.empty() ? "" : " and ") + std::to_string(growing) + " for each GPU";
    if (growing > 0 && backend::modelled_time())
      usual += " of at most " + std::to_string(chapter_.defaults().growing_to);
    add_number<std::int64_t>(kCommon, name, "SIZE", what + ", in elements (default " + usual + ")", 1,
                             kMaxBytes, options_.given_shape.*member);
  }

  void add_sparse_size(const char* group, const std::string& name, const std::string& what,
                       std::int64_t least, std::int64_t& size, const std::string& more = "") {
    add_number(group, name, "SIZE", what + " (default " + std::to_string(size) + more + ")", least, kMaxBytes,
               size);
  }

  // --gpus and --gpus-per-node, with a higher limit if no GPU is needed.
  void check_gpus() {
    if (gpus_per_node_ && !chapter_.has_nodes && !options_.cost)
      throw UsageError("--gpus-per-node: unknown option");
    const int most = options_.cost ? kMaxCostedGpus : chapter_.max_gpus();
    if (gpus_) options_.gpus = number<int>("--gpus", *gpus_, 1, most);
    if (gpus_per_node_)
      options_.given_gpus_per_node = number<int>("--gpus-per-node", *gpus_per_node_, 1, most);
    options_.gpus_given = gpus_.has_value();
  }

  // Makes defaults fit the given options: no more entries than the table has rows, on more than growing_to
  // virtual GPUs no more in all than on growing_to, and no duplicates without entries.
  void fit_sparse_defaults() {
    SparseOptions& sparse = options_.sparse;
    const int apart = sparse.pattern == RowPattern::kDisjoint ? options_.gpus : 1;
    if (app_.count("--entries") == 0) {
      const int growing_to = chapter_.defaults().growing_to;
      if (backend::modelled_time() && options_.gpus > growing_to)
        sparse.shape.entries = std::max<std::int64_t>(1, sparse.shape.entries * growing_to / options_.gpus);
      sparse.shape.entries = std::min(sparse.shape.entries, sparse.shape.rows / apart);
    }
    if (app_.count("--duplicates") == 0 && sparse.shape.entries == 0) sparse.duplicates = 0;
  }

  // The options of sparse gradients.
  void add_sparse() {
    add(kMore, "--pattern", "NAME",
        "distribution of the rows: uniform, zipf, identical, disjoint, uneven (default uniform)",
        [this](const std::string& option, const std::string& text) {
          options_.sparse.pattern =
              chosen<RowPattern>(option, text,
                                 {RowPattern::kUniform, RowPattern::kZipf, RowPattern::kIdentical,
                                  RowPattern::kDisjoint, RowPattern::kUneven});
        });
    add_sparse_size(kMore, "--duplicates", "entries of each GPU that repeat one of its rows", 0,
                    options_.sparse.duplicates);
    add(kMore, "--index", "NAME", "type of row numbers: int32, int64 (default int32)",
        [this](const std::string& option, const std::string& text) {
          options_.sparse.index = chosen<IndexType>(option, text, {IndexType::kInt32, IndexType::kInt64});
        });
    add_number<std::int64_t>(
        kMore, "--global", "COUNT",
        "with --cost: different rows of all GPUs together (default: the expected number)", 1, kMaxBytes,
        options_.sparse.global);
  }

  void add_common() {
    add(kCommon, "--gpus", "COUNT",
        "GPUs that share the work, 1 to " + std::to_string(chapter_.max_gpus()) + " (default " +
            std::to_string(options_.gpus) + ", or all if there are fewer)",
        [this](const std::string&, const std::string& text) { gpus_ = text; });
    // --cost takes this option in every chapter.
    add(chapter_.has_nodes ? kCommon : kHidden, "--gpus-per-node", "COUNT",
        "GPUs of each node, a divisor of --gpus (default: the largest one up to 8 below --gpus)",
        [this](const std::string&, const std::string& text) { gpus_per_node_ = text; });
    if (chapter_.sparse()) {
      add_sparse_size(kCommon, "--rows", "rows of the table", 1, options_.sparse.shape.rows);
      add_sparse_size(kCommon, "--features", "elements of a row", 1, options_.sparse.shape.features);
      add_sparse_size(kCommon, "--entries", "different rows in the gradient of each GPU", 0,
                      options_.sparse.shape.entries,
                      backend::modelled_time()
                          ? ", fewer on more than " + std::to_string(chapter_.defaults().growing_to)
                          : "");
    } else {
      add_size("--m", "rows of A and C", &MatmulShape::m);
      add_size("--n", "columns of B and C", &MatmulShape::n);
      add_size("--k", "columns of A, rows of B", &MatmulShape::k);
    }
    add_number(kCommon, "--iterations", "COUNT",
               "timed runs, 1 to 10000 (default " + std::to_string(options_.iterations) + ")", 1, 10000,
               options_.iterations);
    add(kCommon, "--json", "FILE", "also write the results to this file, as JSON (default: no file)",
        [this](const std::string& option, const std::string& text) {
          if (options_.is_root()) require_writable(option, text);
          options_.json = text;
        });
  }

  void add_more() {
    add_number(kMore, "--warmup", "COUNT",
               "runs before the timed ones, 0 to 1000 (default " + std::to_string(options_.warmup) + ")", 0,
               1000, options_.warmup);
    add(kMore, "--type", "NAME",
        "type of the elements: " + joined(type_names(chapter_)) + " (default " + name_of(options_.type) + ")",
        [this](const std::string&, const std::string& text) { options_.type = chosen_type(chapter_, text); });
    add_number<std::uint64_t>(
        kMore, "--seed", "NUMBER",
        "the data depend on this number only (default " + std::to_string(options_.seed) + ")", 0, UINT64_MAX,
        options_.seed);
    add_flag(kMore, "--check", "verify every element of the result (default)", check_);
    add_flag(kMore, "--no-check", "do not verify the result", no_check_);
    add(kMore, "--timeline", "FILE", "also write a timeline of all GPUs to this file (default: no file)",
        [this](const std::string& option, const std::string& text) {
          if (options_.is_root()) require_writable(option, text);
          options_.timeline = text;
        });
    add_flag(kMore, "--list", "print the variants of this chapter and stop", list_);
    add_flag(kMore, "--cost", "print what a call of each variant moves and computes, as JSON, and stop",
             options_.cost);
    add(kMore, "--only", "A,B", "run these variants only (default: all)",
        [this](const std::string&, const std::string& text) {
          options_.variants = chosen_variants(chapter_, text);
        });
    if (chapter_.sparse()) add_sparse();
    if (chapter_.has_nccl_modes) {
      add(kMore, "--nccl", "MODE",
          "use this mode of NCCL only: plain, registered, copy-engine (default: all that are available)",
          [this](const std::string&, const std::string& text) { options_.nccl = chosen_nccl_mode(text); });
    }
    add_number(kMore, "--timeout", "SECONDS",
               "stop with an error after this many seconds of real time, up to 86400; 0: no limit (default " +
                   std::to_string(options_.timeout_s) + ")",
               0, 86400, options_.timeout_s);
    app_.set_help_flag("--help", "print this help and stop")->group(kMore);
    add_flag(kHidden, "--corrupt", "change one element of the result before it is verified",
             options_.corrupt);
  }

  // Programs for real GPUs accept these options, too, in order to refuse them with a reason.
  void add_virtual() {
    const char* group = backend::modelled_time() ? kVirtual : kHidden;
    add_number<std::uint64_t>(group, "--schedule", "SEED",
                              "run all operations in a random order that CUDA allows, drawn from this seed",
                              0, UINT64_MAX, options_.backend.schedule);
    add(group, "--machine", "NAME|FILE", "model this machine",
        [this](const std::string& option, const std::string& text) {
          if (text.empty()) throw UsageError(option + ": the name is empty");
          options_.backend.machine = text;
        });
  }

  CLI::App app_;
  const ChapterInfo& chapter_;
  Options& options_;
  std::optional<std::string> gpus_, gpus_per_node_;  // as they were given
  bool check_ = false;
  bool no_check_ = false;
  bool list_ = false;
};

// Refuses a matrix that could not be addressed.
void check_matrix(const char* name, const char* sizes, std::int64_t rows, std::int64_t columns,
                  ElementType type) {
  try {
    checked_elements(rows, columns, size_of(type));
  } catch (const UsageError& error) {
    throw UsageError(std::string(sizes) + ": " + name + ", " + error.what());
  }
}

/// At most eight, as in most machines, and two nodes if possible.
int usual_gpus_per_node(int gpus) {
  int most = 1;
  for (int size = 1; size <= 8 && size < gpus; ++size) {
    if (gpus % size == 0) most = size;
  }
  return most;
}

/// How many GPUs each process has: it is a node. `given_per_node`: --gpus-per-node, 0 if it was not given.
int gpus_of_each(int processes, int gpus, int given_per_node) {
  const int each = gpus / processes;
  const std::string of = std::to_string(processes) + " processes (each is a node)";
  if (each * processes != gpus)
    throw UsageError("--gpus: " + std::to_string(gpus) + " is no multiple of " + of);
  if (given_per_node > 0 && given_per_node != each)
    throw UsageError("--gpus-per-node: " + std::to_string(given_per_node) + ", but --gpus " +
                     std::to_string(gpus) + " gives " + std::to_string(each) + " to each of " + of);
  return each;
}

/// The problem of --cost, which draws no rows.
void complete_rows(SparseOptions& sparse, int gpus) {
  const SparseShape shape = sparse.shape;
  if (shape.entries > shape.rows) throw UsageError("--entries: more than the table has rows");
  if (sparse.global == 0) sparse.global = expected_global_rows(shape, gpus);
  if (sparse.global < shape.entries || sparse.global > shape.rows || sparse.global > shape.entries * gpus)
    throw UsageError("--global: it is at least --entries, and at most --gpus times --entries");
}

}  // namespace

bool Options::is_root() const { return processes == nullptr || processes->index() == 0; }

void Options::use_gpus(int number, const ChapterInfo& chapter) {
  const MatmulShape usual = chapter.defaults().shape_on(number);
  const auto size = [&](std::int64_t MatmulShape::*member) {
    return given_shape.*member > 0 ? given_shape.*member : usual.*member;
  };
  gpus = number;
  if (gpus_given) backend.gpus = number;
  if (processes != nullptr) {
    gpus_per_node = gpus_of_each(processes->count(), number, given_gpus_per_node);
  } else if (chapter.has_nodes) {
    gpus_per_node = given_gpus_per_node > 0 ? given_gpus_per_node : usual_gpus_per_node(number);
    if (number % gpus_per_node != 0) {
      throw UsageError("--gpus-per-node: " + std::to_string(gpus_per_node) + " does not divide the " +
                       std::to_string(number) + " of --gpus");
    }
    backend.gpus_per_node = gpus_per_node;
    backend.nodes = number / gpus_per_node;
  }
  shape = {size(&MatmulShape::m), size(&MatmulShape::n), size(&MatmulShape::k)};
}

std::optional<Options> parse_options(int argc, const char* const* argv, const ChapterInfo& chapter,
                                     std::ostream& out, Processes* processes) {
  const ChapterDefaults& defaults = chapter.defaults();
  Options options;
  options.processes = processes;
  options.gpus = defaults.gpus;
  if (processes != nullptr) {  // a multiple of their number
    const int count = processes->count();
    options.gpus = std::max(1, defaults.gpus / count) * count;
  }
  options.iterations = defaults.iterations;
  options.warmup = defaults.warmup;
  options.sparse.shape = defaults.sparse;
  options.sparse.duplicates = defaults.duplicates;
  options.type = chapter.element_types().front();
  options.variants = chapter.variants;
  // A real GPU can hang for ever. Virtual ones cannot: they report a deadlock. The variants of chapter 15
  // take 54 s on 4 x H200.
  options.timeout_s = backend::modelled_time() ? 0 : chapter.sparse() ? 240 : 60;

  const std::optional<std::string> answer = CommandLine(chapter, options).parse(argc, argv);
  if (answer) {
    out << *answer;
    return std::nullopt;
  }
  if (options.nccl) keep_nccl_mode(*options.nccl, chapter, options.variants);
  options.use_gpus(options.gpus, chapter);
  if (!options.timeline.empty() && options.timeline == options.json)
    throw UsageError("--timeline: '" + options.timeline + "' is also the file of --json");
  if (chapter.sparse()) {
    check_matrix("the table", "--rows --features", options.sparse.shape.rows, options.sparse.shape.features,
                 options.type);
    if (options.sparse.index == IndexType::kInt32 && options.sparse.shape.rows > INT32_MAX)
      throw UsageError("--index: int32 cannot number so many --rows");
    if (options.sparse.shape.entries == 0 && options.sparse.duplicates > 0)
      throw UsageError("--duplicates: there is no row to repeat");
    if (options.cost) {
      complete_rows(options.sparse, options.gpus);
    } else if (options.sparse.global > 0) {
      throw UsageError("--global: only with --cost; in a run the data decide");
    }
    return options;
  }
  check_matrix("A", "--m --k", options.shape.m, options.shape.k, options.type);
  check_matrix("B", "--k --n", options.shape.k, options.shape.n, options.type);
  check_matrix("C", "--m --n", options.shape.m, options.shape.n, options.type);
  return options;
}

}  // namespace overlap
