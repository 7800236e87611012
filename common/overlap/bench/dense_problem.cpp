#include "overlap/bench/dense_problem.hpp"

#include <iostream>

#include "overlap/data/data.hpp"
#include "overlap/data/freivalds.hpp"
#include "overlap/gpu/backend.hpp"
#include "overlap/gpu/gemm.hpp"

namespace overlap {
namespace {

// GEMMs with more multiply-adds are checked by Freivalds' vectors, because the CPU would need seconds for
// each rank.
constexpr double kReferenceLimit = 1e9;

// The first operand, its seed and the kind of its values; the second one has the next seed.
enum class Values { kExact, kNormal };

template <Floating T>
std::vector<T> values_of(const Shard& shard, Values kind, bool first, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(shard.elements()));
  const std::span<T> out(values);
  if (kind == Values::kNormal) {
    fill_normal(out, shard, seed + (first ? 0 : 1));
  } else if (first) {
    fill_sparse_signs(out, shard, seed);
  } else {
    fill_ternary(out, shard, seed + 1);
  }
  return values;
}

template <Floating T>
Verification compare_product(MatmulShape shape, const std::vector<T>& a, const std::vector<T>& b,
                             const std::vector<T>& c, const Shard& shard, std::uint64_t seed) {
  if (shape.multiply_adds() > kReferenceLimit) {
    return check_product<T>(shape, std::span<const T>(a), std::span<const T>(b), std::span<const T>(c), shard,
                            seed);
  }
  std::vector<T> expected(c.size());
  reference_matmul<T>(shape, a, b, expected);
  return compare_matrices(std::span<const T>(expected), std::span<const T>(c), shard);
}

}  // namespace

std::string DenseProblem::formula() const {
  const auto [m, n, k] = whole_;
  return std::string("C = A B in ") + name_of(type_) + ": A " + size_text(m, k) + ", B " + size_text(k, n) +
         "; ";
}

void print_problem(const DenseProblem& problem) {
  const Rank& rank = problem.rank();
  if (rank.id() != 0) return;
  std::cout << problem.formula() << problem.unit() << " shared out over " << rank.size()
            << (rank.size() == 1 ? " rank" : " ranks") << " (" << backend::name()
            << (rank.shares_gpu() ? ", all on one GPU" : "") << ")\n";
}

// ---- A by rows, B by columns ------------------------------------------------------------------------------

template <Floating T>
GatherProblem<T>::GatherProblem(Rank& rank, MatmulShape whole, std::uint64_t seed)
    : DenseProblem(rank, whole, type_of<T>(), seed),
      a_(rank.device(), a_shard().elements()),
      b_(rank.device(), b_shard().elements()),
      c_(rank.device(), c_shard().elements()),
      whole_a_(rank.device(), checked_elements(whole.m, whole.k, sizeof(T))),
      alone_c_(rank.device(), c_shard().elements()) {}

template <Floating T>
void GatherProblem<T>::fill_exact() {
  upload(rank(), values_of<T>(a_shard(), Values::kExact, true, seed()), a_);
  upload(rank(), values_of<T>(b_shard(), Values::kExact, false, seed()), b_);
  upload(rank(), values_of<T>(whole_matrix(whole().m, whole().k), Values::kExact, true, seed()), whole_a_);
}

template <Floating T>
void GatherProblem<T>::fill_normal() {
  const std::vector<T> a = values_of<T>(whole_matrix(whole().m, whole().k), Values::kNormal, true, seed());
  const std::vector<T> b = values_of<T>(b_shard(), Values::kNormal, false, seed());
  upload(rank(), values_of<T>(a_shard(), Values::kNormal, true, seed()), a_);
  upload(rank(), b, b_);
  upload(rank(), a, whole_a_);
  norms_ = matmul_norms(product(), std::span<const T>(a), std::span<const T>(b));
}

template <Floating T>
void GatherProblem<T>::negate() {
  for (const DeviceBuffer<T>* const buffer : {&a_, &whole_a_, &alone_c_}) overlap::negate(rank(), *buffer);
}

template <Floating T>
Verification GatherProblem<T>::compare_exact(bool corrupt) {
  std::vector<T> c = download(rank(), c_.data(), c_shard().elements());
  if (corrupt) corrupt_one_element(std::span<T>(c));
  return compare_product(product(),
                         values_of<T>(whole_matrix(whole().m, whole().k), Values::kExact, true, seed()),
                         values_of<T>(b_shard(), Values::kExact, false, seed()), c, c_shard(), seed());
}

template <Floating T>
Verification GatherProblem<T>::compare_normal(bool corrupt) {
  std::vector<T> c = download(rank(), c_.data(), c_shard().elements());
  if (corrupt) corrupt_one_element(std::span<T>(c));
  const std::vector<T> alone = download(rank(), alone_c_.data(), c_shard().elements());
  const Tolerance tolerance = between_two_results(matmul_tolerance(whole().k, type(), type()));
  return compare_within(std::span<const T>(alone), std::span<const T>(c), c_shard(), tolerance, norms_);
}

template <Floating T>
void GatherProblem<T>::gemm_only(cudaStream_t stream) {
  matmul_row_major(rank().cublas(), stream, product(), whole_a_.data(), b_.data(), alone_c_.data());
}

// ---- X by columns, W by rows ------------------------------------------------------------------------------

template <Floating T>
ScatterProblem<T>::ScatterProblem(Rank& rank, MatmulShape whole, std::uint64_t seed, Wanted wanted)
    : DenseProblem(rank, whole, type_of<T>(), seed),
      wanted_(wanted),
      x_(rank.device(), x_shard().elements()),
      w_(rank.device(), w_shard().elements()),
      c_(rank.device(), c_shard().elements()),
      partial_(rank.device(), checked_elements(whole.m, whole.n, sizeof(T))) {}

template <Floating T>
void ScatterProblem<T>::fill_exact() {
  upload(rank(), values_of<T>(x_shard(), Values::kExact, true, seed()), x_);
  upload(rank(), values_of<T>(w_shard(), Values::kExact, false, seed()), w_);
}

template <Floating T>
void ScatterProblem<T>::fill_normal() {
  upload(rank(), values_of<T>(x_shard(), Values::kNormal, true, seed()), x_);
  upload(rank(), values_of<T>(w_shard(), Values::kNormal, false, seed()), w_);
  multiply_alone();
}

template <Floating T>
void ScatterProblem<T>::multiply_alone() {
  Shard rows = c_shard();
  rows.columns = {0, whole().k}, rows.width = whole().k;
  const std::vector<T> x = values_of<T>(rows, Values::kNormal, true, seed());
  const std::vector<T> w = values_of<T>(whole_matrix(whole().k, whole().n), Values::kNormal, false, seed());
  const DeviceBuffer<T> gpu_x(rank().device(), x.size()), gpu_w(rank().device(), w.size());
  const DeviceBuffer<float> gpu_c(rank().device(), static_cast<std::size_t>(c_shard().elements()));
  upload(rank(), x, gpu_x);
  upload(rank(), w, gpu_w);
  matmul_row_major(rank().cublas(), rank().stream(), own_rows(), gpu_x.data(), gpu_w.data(), gpu_c.data());
  const std::vector<float> alone = download(rank(), gpu_c.data(), c_shard().elements());
  expected_.assign(alone.begin(), alone.end());
  norms_ = matmul_norms(own_rows(), std::span<const T>(x), std::span<const T>(w));
}

template <Floating T>
void ScatterProblem<T>::negate() {
  overlap::negate(rank(), x_);
  for (double& element : expected_) element = -element;
}

template <Floating T>
Verification ScatterProblem<T>::compare_exact(bool corrupt) {
  std::vector<T> c = download(rank(), c_.data(), c_shard().elements());
  if (corrupt) corrupt_one_element(std::span<T>(c));
  Shard rows = c_shard();
  rows.columns = {0, whole().k}, rows.width = whole().k;
  return compare_product(own_rows(), values_of<T>(rows, Values::kExact, true, seed()),
                         values_of<T>(whole_matrix(whole().k, whole().n), Values::kExact, false, seed()), c,
                         c_shard(), seed());
}

template <Floating T>
Verification ScatterProblem<T>::compare_normal(bool corrupt) {
  std::vector<T> c = download(rank(), c_.data(), c_shard().elements());
  if (corrupt) corrupt_one_element(std::span<T>(c));
  // The expected value is itself a sum in f32, rounded to f32; each rank's summand may have been rounded to
  // T.
  const Tolerance of_expected = matmul_tolerance(whole().k, type(), ElementType::kF32);
  const Tolerance of_c = matmul_tolerance(whole().k, type(), type(), {type(), rank().size()});
  return compare_within(std::span<const double>(expected_), std::span<const T>(c), c_shard(),
                        {of_c.magnitude + of_expected.magnitude, of_c.value + of_expected.value,
                         of_c.absolute + of_expected.absolute},
                        norms_);
}

template <Floating T>
void ScatterProblem<T>::gemm_only(cudaStream_t stream) {
  matmul_row_major(rank().cublas(), stream, product(), x_.data(), w_.data(), partial_.data());
}

template class GatherProblem<__half>;
template class GatherProblem<__nv_bfloat16>;
template class GatherProblem<float>;
template class ScatterProblem<__half>;
template class ScatterProblem<__nv_bfloat16>;
template class ScatterProblem<float>;

}  // namespace overlap
