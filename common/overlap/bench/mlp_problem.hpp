// An MLP layer shared out over ranks: the data, the products without any communication, and the comparison of
// what an algorithm has computed.
//
// The three sizes of the command line: m tokens t, n feed-forward size f, k hidden size h.
//
// Exact data: every intermediate result, in any order of computation, is a number that the type holds, so the
// result has to be right to the last bit.
// - The elements of row i of X are all s or -s, with s = 1, 2 or 4 by row: the mean of their squares is a
//   power of four, epsilon is 0, and the root and its reciprocal are powers of two.
// - The gain is 1, 2, -1 or -2: so are all elements of N.
// - Each column of W1 has q elements of 1 or -1 and each column of W2 has p, the others are 0: elements of
//   N W1 are integers of at most 2 q, ReLU keeps integers, and every sum of some of an element's p summands
//   is an integer of at most 2 q p, whoever adds them and in whatever order. X added, it is at most
//   2 q p + 4, and that is 256 in bf16 (q = 9, p = 14) and 2048 in f16 and f32 (q = 14, p = 73): they hold
//   all these integers.
// A missing normalisation, a missing gain, a missing ReLU or a lost summand changes the result.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "overlap/bench/dense_problem.hpp"
#include "overlap/data/mlp_layer.hpp"

namespace overlap {

/// Y = X + act(norm(X) W1) W2, where rank r has rows of X, columns of W1 and the same rows of W2 (MlpLayer),
/// and wants its rows of Y: X[t_r, h], Y[t_r, h]; or all rows of both on every rank.
template <Floating T>
class MlpProblem : public DenseProblem {
 public:
  /// `whole` is {t, f, h}. `activation` is that of fill_normal(). Allocates; the matrices hold nothing yet.
  /// Throws CudaError.
  MlpProblem(Rank& rank, MatmulShape whole, std::uint64_t seed,
             Activation activation = Activation::kGeluTanh);

  const T* a() const { return x_.data(); }              ///< its rows of X, [t_r, h]
  const T* whole_x() const { return whole_x_.data(); }  ///< all of X, [t, h]
  const MlpLayer<T>& b() const { return layer_; }       ///< its part of the layer

  /// Its rows of Y, [t_r, h]. What is compared is this or whole_y(): what was asked for last.
  T* c() {
    whole_result_ = false;
    return y_.data();
  }
  /// All of Y, [t, h].
  T* whole_y() {
    whole_result_ = true;
    return whole_y_.data();
  }

  /// {t, f_r, 2 h}: as many multiply-adds as the rank's two products, [t, h] [h, f_r] and [t, f_r] [f_r, h].
  MatmulShape product() const override { return {whole().m, w1_shard().columns.size(), 2 * whole().k}; }
  /// The two products of rank 0, which has the largest shares.
  static std::vector<MatmulShape> largest_products(MatmulShape whole, int ranks) {
    const std::int64_t inner = balanced_share(whole.n, ranks, 0).size();
    return {{whole.m, inner, whole.k}, {whole.m, whole.k, inner}};
  }
  std::int64_t result_elements() const override { return whole().m * whole().k; }
  std::int64_t collective_bytes() const override { return result_elements() * std::int64_t{sizeof(T)}; }
  std::string formula() const override;
  const char* unit() const override { return "rows of X and Y, columns of W1 and rows of W2"; }
  void fill_exact() override;
  void fill_normal() override;
  void poison_result() override {
    fill_with_nan(rank(), y_);
    fill_with_nan(rank(), whole_y_);
  }
  void negate() override;
  Verification compare_exact(bool corrupt) override { return compare(corrupt, true); }
  /// All elements, with those that one GPU alone computes: see error_of_row() in the source.
  Verification compare_normal(bool corrupt) override { return compare(corrupt, false); }
  void gemm_only(cudaStream_t stream) override;

 private:
  /// Of X and Y.
  Shard own_rows() const { return row_shard(whole().m, whole().k, rank().size(), rank().id()); }
  Shard w1_shard() const { return column_shard(whole().k, whole().n, rank().size(), rank().id()); }
  Shard w2_shard() const { return row_shard(whole().n, whole().k, rank().size(), rank().id()); }
  std::vector<T> hidden_alone(MatmulShape shape, const DeviceBuffer<T>& normed,
                              const DeviceBuffer<T>& w1) const;
  void multiply_alone(const std::vector<T>& x,
                      const std::vector<double>& normed);  // sets the last two members
  Verification compare(bool corrupt, bool exact);
  Verification compare_rows(const Shard& rows, std::span<const T> y, const double* expected,
                            const double* bounds, bool exact) const;

  Activation activation_;
  DeviceBuffer<T> x_, whole_x_, gain_, w1_, w2_, y_, whole_y_;
  DeviceBuffer<T> normed_, activated_, hidden_, partial_;  // of gemm_only(): its two factors and two results
  MlpLayer<T> layer_{};
  bool whole_result_ = false;
  std::vector<double> expected_;  // its rows of Y
  std::vector<double> bounds_;    // of random normals: how far each of its rows may be off
};

}  // namespace overlap
