// Which algorithms there are to predict, chapter by chapter: what each multiplies and moves is what the
// chapter's own cost() says, what overlaps is schedule.hpp's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "machine.hpp"
#include "overlap/data/cost.hpp"
#include "overlap/data/sparse.hpp"
#include "overlap/gpu/shape.hpp"

namespace overlap::planner {

/// A variant of a chapter's program, on the rank with the largest shares.
struct Variant {
  std::string chapter;                       ///< NN_name
  std::string name;                          ///< as the chapter's --list has it
  Cost cost;                                 ///< the chapter's, of one call
  bool peers = false;                        ///< needs the memory of all other GPUs
  std::function<double(const Machine&)> us;  ///< a call, on a machine
  int most_ranks = 0;  ///< that the chapter's kernel takes; 0: any. With more there is neither cost nor time
  std::string differs = {};  ///< how its result is another one than the others'; then it never wins
};

/// What several variants compute.
struct Operation {
  std::string name;     ///< as the manifests call it
  std::string formula;  ///< with the sizes
  /// The rank's product alone, which the others are compared with; none for sparse sums.
  std::function<double(const Machine&)> gemm_only_us;
  std::vector<Variant> variants;
};

/// Chapter 16, beside the library's product: a rank's columns of C[m, n] = A[m, k] B[k, n]. Elements of 2
/// bytes, as in all dense operations. Its first rungs are not predicted: what slows them is not in their
/// cost.
Operation matmul(MatmulShape whole, int ranks);
/// Chapters 02 to 05, 17, 18 and 20: C[m, n] = A[m, k] B[k, n], A by rows, B by columns. More ranks than
/// `gpus_per_node` make nodes of so many; 0: all are in one.
Operation all_gather_matmul(MatmulShape whole, int ranks, int gpus_per_node = 0);
/// Chapters 06 and 19: C[m, n] = X[m, k] W[k, n], X by columns, W and C by rows.
Operation matmul_reduce_scatter(MatmulShape whole, int ranks);
/// Chapter 07: m tokens, hidden size k, inner size n.
Operation mlp_block(MatmulShape whole, int ranks);

/// A sum of row-sparse gradients.
struct SparseProblem {
  SparseShape shape = {};  ///< `entries` are the different rows of each rank
  int ranks = 1;
  std::int64_t global = 0;  ///< different rows of all ranks
};
/// How many different rows all ranks have, if each has its own at random.
std::int64_t expected_global(std::int64_t rows, std::int64_t of_a_rank, int ranks);
/// Chapters 08 to 15. Row numbers and values of 4 bytes.
Operation sparse_all_reduce(SparseProblem problem);

}  // namespace overlap::planner
