// The two products of tensor parallelism, shared out over ranks: the data, the product without any
// communication, and the comparison of what an algorithm has computed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "overlap/bench/device_data.hpp"
#include "overlap/data/matrix.hpp"
#include "overlap/data/tolerance.hpp"
#include "overlap/data/verify.hpp"
#include "overlap/gpu/element.hpp"
#include "overlap/gpu/ranks.hpp"
#include "overlap/gpu/stream.hpp"

namespace overlap {

/// One rank's part of a product, for DenseBench. What fills or compares waits for the rank's stream.
class DenseProblem {
 public:
  DenseProblem(Rank& rank, MatmulShape whole, ElementType type, std::uint64_t seed)
      : rank_(rank), whole_(whole), type_(type), seed_(seed) {}
  virtual ~DenseProblem() = default;
  DenseProblem(const DenseProblem&) = delete;
  DenseProblem& operator=(const DenseProblem&) = delete;

  Rank& rank() const { return rank_; }          ///< whose part it is
  MatmulShape whole() const { return whole_; }  ///< sizes of the whole problem
  ElementType type() const { return type_; }    ///< of A, B and C
  virtual MatmulShape product() const = 0;      ///< what this rank has to multiply
  virtual std::int64_t result_elements() const { return whole_.m * whole_.n; }
  virtual std::int64_t collective_bytes() const = 0;  ///< as the bus bandwidths of metrics.hpp want them
  virtual std::string formula() const;                ///< what is computed, and its sizes, in words
  virtual const char* unit() const = 0;               ///< how A and B are shared out, in words

  virtual void fill_exact() = 0;     ///< A and B whose product has to be right to the last bit (data.hpp)
  virtual void fill_normal() = 0;    ///< A and B of random normals: for times
  virtual void poison_result() = 0;  ///< C = NaN
  /// After fill_normal(): the problem becomes the one with the result -C, and compare_normal() expects that.
  /// Twice is not at all.
  virtual void negate() = 0;
  /// Compares every element of C, after fill_exact(). `corrupt`: the tests' hook.
  virtual Verification compare_exact(bool corrupt) = 0;
  /// Compares every element of C with a product by cuBLAS alone, within the proven bound (tolerance.hpp),
  /// after fill_normal() and gemm_only().
  virtual Verification compare_normal(bool corrupt) = 0;
  /// Enqueues the rank's product, as if all that it needs were already here. Leaves C alone.
  virtual void gemm_only(cudaStream_t stream) = 0;

 private:
  Rank& rank_;
  MatmulShape whole_;
  ElementType type_;
  std::uint64_t seed_;

 protected:
  /// "ROWS x COLUMNS", for formula().
  static std::string size_text(std::int64_t rows, std::int64_t columns) {
    return std::to_string(rows) + " x " + std::to_string(columns);
  }
  std::uint64_t seed() const { return seed_; }  ///< of A; B has the next one
};

/// Prints what is computed and how it is shared out; rank 0 prints.
void print_problem(const DenseProblem& problem);

/// C = A B, where rank r has rows of A and columns of B, and wants its columns of C: A[m_r, k], B[k, n_r],
/// C[m, n_r], with m_r and n_r by balanced_share(). To multiply, it needs all rows of A.
template <Floating T>
class GatherProblem : public DenseProblem {
 public:
  /// Allocates; the matrices hold nothing yet. Throws CudaError.
  GatherProblem(Rank& rank, MatmulShape whole, std::uint64_t seed);

  const T* a() const { return a_.data(); }  ///< its rows of A, [m_r, k]
  const T* b() const { return b_.data(); }  ///< its columns of B, [k, n_r]
  T* c() const { return c_.data(); }        ///< its columns of C, [m, n_r]

  MatmulShape product() const override { return {whole().m, b_shard().columns.size(), whole().k}; }
  /// What rank 0, which has the largest shares, multiplies.
  static std::vector<MatmulShape> largest_products(MatmulShape whole, int ranks) {
    return {{whole.m, balanced_share(whole.n, ranks, 0).size(), whole.k}};
  }
  std::int64_t collective_bytes() const override { return whole().m * whole().k * std::int64_t{sizeof(T)}; }
  const char* unit() const override { return "rows of A and columns of B"; }
  void fill_exact() override;
  void fill_normal() override;
  void poison_result() override { fill_with_nan(rank(), c_); }
  void negate() override;
  Verification compare_exact(bool corrupt) override;
  Verification compare_normal(bool corrupt) override;
  void gemm_only(cudaStream_t stream) override;
  const T* whole_a() const { return whole_a_.data(); }  ///< all of A, which only products alone may use

 private:
  Shard a_shard() const { return row_shard(whole().m, whole().k, rank().size(), rank().id()); }
  Shard b_shard() const { return column_shard(whole().k, whole().n, rank().size(), rank().id()); }
  Shard c_shard() const { return column_shard(whole().m, whole().n, rank().size(), rank().id()); }

  DeviceBuffer<T> a_, b_, c_, whole_a_, alone_c_;
  MatmulNorms norms_;  // of the random normals
};

/// What a rank wants of a sum over ranks.
enum class Wanted {
  kOwnRows,  ///< by balanced_share(): a reduce-scatter
  kAllRows,  ///< an all-reduce
};

/// C = X W, where rank r has columns of X and rows of W, and wants its rows of C, or all of them: X[m, k_r],
/// W[k_r, n], C[m_r, n] or C[m, n], with k_r and m_r by balanced_share(). Its own product is a summand of all
/// of C.
template <Floating T>
class ScatterProblem : public DenseProblem {
 public:
  /// Allocates; the matrices hold nothing yet. Throws CudaError.
  ScatterProblem(Rank& rank, MatmulShape whole, std::uint64_t seed, Wanted wanted = Wanted::kOwnRows);

  const T* a() const { return x_.data(); }  ///< its columns of X, [m, k_r]
  const T* b() const { return w_.data(); }  ///< its rows of W, [k_r, n]
  T* c() const { return c_.data(); }        ///< its rows of C, [m_r, n], or all, [m, n]

  MatmulShape product() const override { return {whole().m, whole().n, w_shard().rows.size()}; }
  /// See GatherProblem.
  static std::vector<MatmulShape> largest_products(MatmulShape whole, int ranks) {
    return {{whole.m, whole.n, balanced_share(whole.k, ranks, 0).size()}};
  }
  std::int64_t collective_bytes() const override { return whole().m * whole().n * std::int64_t{sizeof(T)}; }
  const char* unit() const override { return "columns of A and rows of B"; }
  void fill_exact() override;
  void fill_normal() override;
  void poison_result() override { fill_with_nan(rank(), c_); }
  void negate() override;
  Verification compare_exact(bool corrupt) override;
  Verification compare_normal(bool corrupt) override;
  void gemm_only(cudaStream_t stream) override;
  /// After fill_normal(): the rank's rows of C as one product with sums and result in f32 has them, and the
  /// norms that bound errors (tolerance.hpp).
  const std::vector<double>& reference() const { return expected_; }
  const MatmulNorms& norms() const { return norms_; }  ///< see reference()

 private:
  Shard x_shard() const { return column_shard(whole().m, whole().k, rank().size(), rank().id()); }
  Shard w_shard() const { return row_shard(whole().k, whole().n, rank().size(), rank().id()); }
  Shard c_shard() const {
    return wanted_ == Wanted::kAllRows ? whole_matrix(whole().m, whole().n)
                                       : row_shard(whole().m, whole().n, rank().size(), rank().id());
  }
  /// The product of its rows of C, over all of k.
  MatmulShape own_rows() const { return {c_shard().rows.size(), whole().n, whole().k}; }

  void multiply_alone();  // sets the last two members

  Wanted wanted_;
  DeviceBuffer<T> x_, w_, c_, partial_;

  std::vector<double> expected_;  // for compare_normal()
  MatmulNorms norms_;             // of the random normals
};

/// The same, where every rank wants all of C.
template <Floating T>
class AllReduceProblem final : public ScatterProblem<T> {
 public:
  AllReduceProblem(Rank& rank, MatmulShape whole, std::uint64_t seed)
      : ScatterProblem<T>(rank, whole, seed, Wanted::kAllRows) {}
};

}  // namespace overlap
