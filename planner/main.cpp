// plan: predicts what a call of each chapter's algorithms takes, on a machine that need not be there. Nothing
// is run: the chapters' cost cards say what is moved and multiplied, a machine file how fast.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "catalogue.hpp"
#include "overlap/gpu/error.hpp"
#include "report.hpp"

namespace overlap::planner {
namespace {

/// The command line.
struct Request {
  MatmulShape shape = {};
  SparseShape sparse = {5'000'000, 2048, 50'000};
  std::int64_t global = 0;
  int gpus = 8, gpus_per_node = 0;
  std::string machine = "h200-nvlink", type = "f16", operation, json;
  bool is_sparse = false;
  bool usual_sizes = false;  // no size was given
};

constexpr std::int64_t kMostSize = std::int64_t{1} << 26;
// Chapters count the tiles of a matrix in 32 bits. The result is one of each rank's columns or rows.
constexpr double kMostOperand = 1e13, kMostResult = 1e14;
constexpr int kMostGpus = 4096;

void define(CLI::App& app, Request& request) {
  const auto size = [&](const char* name, std::int64_t& value, const char* what) {
    return app.add_option(name, value, what)->check(CLI::Range(std::int64_t{1}, kMostSize));
  };
  size("--m", request.shape.m, "rows of A or X, tokens of an MLP block [1024 for each GPU]");
  size("--n", request.shape.n,
       "columns of B or W, inner size of an MLP block [4096 for each GPU; of W 4096]");
  size("--k", request.shape.k,
       "columns of A or X, hidden size of an MLP block [4096; of X 4096 for each GPU]");
  app.add_option("--gpus", request.gpus, "ranks")->check(CLI::Range(1, kMostGpus))->capture_default_str();
  app.add_option("--gpus-per-node", request.gpus_per_node,
                 "how many reach each other's memory [as the machine's file says]")
      ->check(CLI::Range(1, kMostGpus));
  app.add_option("--machine", request.machine, "NAME or FILE of a machine")->capture_default_str();
  app.add_option("--type", request.type, "of elements: f16 or bf16, which are as fast")
      ->check(CLI::IsMember({"f16", "bf16"}))
      ->capture_default_str();
  app.add_option("--operation", request.operation, "only this one")
      ->check(CLI::IsMember(
          {"matmul", "all_gather_matmul", "matmul_reduce_scatter", "mlp_block", "sparse_all_reduce"}));
  app.add_flag("--sparse", request.is_sparse, "the sums of row-sparse gradients, chapters 08 to 15");
  size("--rows", request.sparse.rows, "sparse: rows of the table")->capture_default_str();
  size("--features", request.sparse.features, "sparse: elements of a row")->capture_default_str();
  size("--entries", request.sparse.entries, "sparse: different rows of each rank")->capture_default_str();
  size("--global", request.global, "sparse: different rows of all ranks [what rows at random give]");
  app.add_option("--json", request.json, "write the prediction to this file; - for standard output");
}

/// What the options leave open, and what they must not say together.
void complete(Request& request) {
  request.is_sparse = request.is_sparse || request.operation == "sparse_all_reduce";
  if (request.is_sparse && !request.operation.empty() && request.operation != "sparse_all_reduce")
    throw UsageError("--sparse: " + request.operation + " is not sparse");
  request.usual_sizes = request.shape == MatmulShape{};
  if (request.shape.m == 0) request.shape.m = 1024 * std::int64_t{request.gpus};
  if (request.shape.n == 0) request.shape.n = 4096 * std::int64_t{request.gpus};
  if (request.shape.k == 0) request.shape.k = 4096;
  const MatmulShape shape = request.shape;
  const auto elements = [](std::int64_t one, std::int64_t other) {
    return static_cast<double>(one) * static_cast<double>(other);
  };
  if (std::max(elements(shape.m, shape.k), elements(shape.k, shape.n)) > kMostOperand ||
      elements(shape.m, shape.n) > kMostResult) {
    throw UsageError("--m, --n, --k: a matrix of more elements than any machine holds");
  }
  const SparseShape sparse = request.sparse;
  if (sparse.entries > sparse.rows) throw UsageError("--entries: more than the table has rows");
  if (request.global == 0) {
    request.global = expected_global(sparse.rows, sparse.entries, request.gpus);
  } else if (request.global < sparse.entries || request.global > sparse.rows ||
             request.global > sparse.entries * request.gpus) {
    throw UsageError("--global: all ranks have at least --entries rows, and at most --gpus times as many");
  }
}

std::vector<Operation> operations(const Request& request, const Machine& machine) {
  if (request.is_sparse) return {sparse_all_reduce({request.sparse, request.gpus, request.global})};
  const int gpus = request.gpus;
  const MatmulShape shape = request.shape;
  // Of sizes that are not given, the one that is shared out grows with the GPUs: there it is k.
  const MatmulShape scattered = request.usual_sizes ? MatmulShape{shape.m, shape.k, shape.n} : shape;
  std::vector<Operation> chosen;
  const auto choose = [&](const char* name, const auto& make) {
    if (request.operation.empty() || request.operation == name) chosen.push_back(make());
  };
  choose("matmul", [&] { return matmul(shape, gpus); });
  choose("all_gather_matmul", [&] { return all_gather_matmul(shape, gpus, machine.gpus_per_node); });
  choose("matmul_reduce_scatter", [&] { return matmul_reduce_scatter(scattered, gpus); });
  choose("mlp_block", [&] { return mlp_block(shape, gpus); });
  return chosen;
}

int answer(int argc, char** argv) {
  CLI::App app("Predicts what a call of each chapter's algorithms takes. Nothing is run.", "plan");
  Request request;
  define(app, request);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw UsageError(error.what());
  }
  complete(request);
  const Machine machine = read_machine(request.machine, request.gpus_per_node);
  if (request.gpus > machine.gpus_per_node && request.gpus % machine.gpus_per_node != 0) {
    throw UsageError("--gpus-per-node: nodes of " + std::to_string(machine.gpus_per_node) +
                     " GPUs cannot hold " + std::to_string(request.gpus));
  }
  const Prediction prediction = predict(machine, request.gpus, request.type, operations(request, machine));
  if (request.json != "-") print(std::cout, prediction);
  if (!request.json.empty()) write_json(request.json, prediction);
  return kExitOk;
}

}  // namespace
}  // namespace overlap::planner

int main(int argc, char** argv) {
  try {
    return overlap::planner::answer(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "plan: " << error.what() << "\n";
    return overlap::kExitFailed;
  }
}
