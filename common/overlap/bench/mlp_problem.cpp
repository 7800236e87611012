#include "overlap/bench/mlp_problem.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "overlap/data/data.hpp"
#include "overlap/data/parallel.hpp"
#include "overlap/data/random.hpp"
#include "overlap/gpu/gemm.hpp"

namespace overlap {
namespace {

// The matrices have seeds of their own.
enum Part : std::uint64_t { kX, kScales, kGain, kW1, kW2, kParts };

std::uint64_t seed_of(Part part, std::uint64_t seed) { return RandomBits::more(seed * kParts + part); }

constexpr float kEpsilon = 1e-5f;       // the usual one for layers with random normals
constexpr double kGainDeviation = 0.1;  // their gains are about 1

// ---- Exact data: see the header ---------------------------------------------------------------------------

template <Floating T>
constexpr std::int64_t kSignsPerColumnOfW1 = type_of<T>() == ElementType::kBf16 ? 9 : 14;
template <Floating T>
constexpr std::int64_t kSignsPerColumnOfW2 = type_of<T>() == ElementType::kBf16 ? 14 : 73;
template <Floating T>
constexpr bool kFits = 2 * kSignsPerColumnOfW1<T>* kSignsPerColumnOfW2<T> + 4 <= largest_integer<T>();
static_assert(kFits<__half> && kFits<__nv_bfloat16> && kFits<float>);

float sign_of(std::uint64_t bits) { return (bits & 1) != 0 ? 1.0f : -1.0f; }

template <Floating T>
std::vector<T> exact_x(const Shard& shard, std::uint64_t seed) {
  const RandomBits signs(seed_of(kX, seed)), scales(seed_of(kScales, seed));
  std::vector<T> x(static_cast<std::size_t>(shard.elements()));
  auto next = x.begin();
  for (std::int64_t row = shard.rows.begin; row < shard.rows.end; ++row) {
    const float scale = static_cast<float>(1 << below(3, scales.at(static_cast<std::uint64_t>(row))));
    for (std::int64_t column = 0; column < shard.width; ++column) {
      *next++ =
          from_float<T>(scale * sign_of(signs.at(static_cast<std::uint64_t>(row * shard.width + column))));
    }
  }
  return x;
}

template <Floating T>
std::vector<T> exact_gain(std::int64_t h, std::uint64_t seed) {
  const RandomBits random(seed_of(kGain, seed));
  std::vector<T> gain(static_cast<std::size_t>(h));
  for (std::size_t k = 0; k < gain.size(); ++k) {
    const std::uint64_t bits = random.at(k);
    gain[k] = from_float<T>(sign_of(bits) * ((bits & 2) != 0 ? 2.0f : 1.0f));
  }
  return gain;
}

// A shard of a matrix of `height` rows with `signs` elements of 1 or -1 in each column, one in each of so
// many strata of the rows; the other elements are 0. In a stratum of w rows, w neighbouring columns have w
// different places, so that every row is used as soon as there are enough columns.
template <Floating T>
std::vector<T> sparse_columns(const Shard& shard, std::int64_t height, std::int64_t signs,
                              std::uint64_t seed) {
  std::vector<T> matrix(static_cast<std::size_t>(shard.elements()), from_float<T>(0));
  const RandomBits random(seed);
  const auto strata = static_cast<int>(std::min(signs, height));
  for (int stratum = 0; stratum < strata; ++stratum) {
    const Range rows = balanced_share(height, strata, stratum);
    for (std::int64_t column = shard.columns.begin; column < shard.columns.end; ++column) {
      const auto at = [&](std::int64_t i) {
        return random.at(static_cast<std::uint64_t>(i * strata + stratum));
      };
      const std::int64_t first =
          column / rows.size();  // the columns that share an offset: kept apart from signs
      const auto offset = static_cast<std::int64_t>(
          below(static_cast<std::uint64_t>(rows.size()), RandomBits::more(at(first))));
      const std::int64_t row = rows.begin + (column + offset) % rows.size();
      if (row < shard.rows.begin || row >= shard.rows.end) continue;
      const std::int64_t place =
          (row - shard.rows.begin) * shard.columns.size() + column - shard.columns.begin;
      matrix[static_cast<std::size_t>(place)] = from_float<T>(sign_of(at(column)));
    }
  }
  return matrix;
}

template <Floating T>
std::vector<T> exact_w1(const Shard& shard, std::int64_t h, std::uint64_t seed) {
  return sparse_columns<T>(shard, h, kSignsPerColumnOfW1<T>, seed_of(kW1, seed));
}

template <Floating T>
std::vector<T> exact_w2(const Shard& shard, std::int64_t f, std::uint64_t seed) {
  return sparse_columns<T>(shard, f, kSignsPerColumnOfW2<T>, seed_of(kW2, seed));
}

// ---- Random normals ---------------------------------------------------------------------------------------

template <Floating T>
std::vector<T> normals(const Shard& shard, Part part, std::uint64_t seed, double stddev) {
  std::vector<T> values(static_cast<std::size_t>(shard.elements()));
  fill_normal(std::span<T>(values), shard, seed_of(part, seed), stddev);
  return values;
}

double deviation_of(std::int64_t terms) { return 1 / std::sqrt(static_cast<double>(terms)); }

template <Floating T>
std::vector<T> rounded(const std::vector<double>& values) {
  std::vector<T> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(),
                 [](double value) { return from_double<T>(value); });
  return result;
}

template <Floating T>
std::vector<T> activated_and_rounded(Activation activation, const std::vector<float>& values) {
  std::vector<T> result(values.size());
  const auto activate = [&](Range share) {
    for (auto i = static_cast<std::size_t>(share.begin); i < static_cast<std::size_t>(share.end); ++i) {
      result[i] = from_double<T>(activated(activation, static_cast<double>(values[i])));
    }
  };
  parallel_shares(static_cast<std::int64_t>(values.size()), activate, worth_a_thread(64));
  return result;
}

// How far an element of Y may be off, for each unit of its row's norm: ours and the one computed alone, with
// these roundings. The weights are random normals of deviation s1 = 1 / sqrt(h) and s2 = 1 / sqrt(f), which
// know nothing of what errors they will meet: so a vector e of errors becomes e W, whose elements are normal
// of deviation s |e|. None of a result's elements (there are less than 2^32) exceeds 8 deviations, but for a
// probability of 2^32 * 1.3e-15 = 6e-6; likewise a row of f of them has a norm of at most s |e| (sqrt(f) +
// 8). Along the way, with u the rounding to T, v = 2^-23 that of sums in f32 (tolerance.hpp), a a row of N:
//   N        each element is rounded, after a mean in f32:                         |e| <= (u + 2^-17) |a|
//   N W1     h sums, each a partial one of deviation s1 |a| or less, then rounded: h v + u
//   act      enlarges an error 1.13 times at most (GELU's steepest slope), is itself computed to 2^-20,
//            is rounded, and is not larger than its argument
//   ... W2   f sums; each rank's partial sum stored, those add up to sqrt(ranks) |g| by Cauchy and Schwarz;
//            and ranks - 1 sums of them stored, or one
// Each is an error relative to (sqrt(f) + 8) |a| s1 before W2, and W2 makes 8 s2 times that of it.
double error_of_row(MatmulShape whole, int ranks, double u) {
  constexpr double kDeviations = 8, kSlope = 1.13, kSum = 0x1p-23, kNorm = 0x1p-17, kActivation = 0x1p-20;
  const double h_sums = static_cast<double>(whole.k) * kSum, f_sums = static_cast<double>(whole.n) * kSum;
  const double before = kSlope * (u + kNorm + h_sums + u) + kActivation + u;
  const double ours = before + f_sums + (std::sqrt(ranks) + std::max(ranks - 1, 1)) * u;
  const double alone = before + f_sums;
  const double scale = (std::sqrt(static_cast<double>(whole.n)) + kDeviations) * deviation_of(whole.k);
  return kDeviations * deviation_of(whole.n) * scale * (ours + alone);
}

}  // namespace

// ---- The problem ------------------------------------------------------------------------------------------

template <Floating T>
MlpProblem<T>::MlpProblem(Rank& rank, MatmulShape whole, std::uint64_t seed, Activation activation)
    : DenseProblem(rank, whole, type_of<T>(), seed),
      activation_(activation),
      x_(rank.device(), static_cast<std::size_t>(own_rows().elements())),
      whole_x_(rank.device(), static_cast<std::size_t>(checked_elements(whole.m, whole.k, sizeof(T)))),
      gain_(rank.device(), static_cast<std::size_t>(whole.k)),
      w1_(rank.device(), static_cast<std::size_t>(w1_shard().elements())),
      w2_(rank.device(), static_cast<std::size_t>(w2_shard().elements())),
      y_(rank.device(), x_.size()),
      whole_y_(rank.device(), whole_x_.size()),
      normed_(rank.device(), whole_x_.size()),
      activated_(rank.device(), static_cast<std::size_t>(whole.m * w1_shard().columns.size())),
      hidden_(rank.device(), activated_.size()),
      partial_(rank.device(), whole_x_.size()) {}

template <Floating T>
void MlpProblem<T>::fill_exact() {
  const auto [t, f, h] = whole();
  const std::vector<T> x = exact_x<T>(own_rows(), seed()), gain = exact_gain<T>(h, seed());
  const std::vector<T> w1 = exact_w1<T>(whole_matrix(h, f), h, seed());
  const std::vector<T> w2 = exact_w2<T>(whole_matrix(f, h), f, seed());
  upload(rank(), x, x_);
  upload(rank(), exact_x<T>(whole_matrix(t, h), seed()), whole_x_);
  upload(rank(), gain, gain_);
  upload(rank(), exact_w1<T>(w1_shard(), h, seed()), w1_);
  upload(rank(), exact_w2<T>(w2_shard(), f, seed()), w2_);
  layer_ = {gain_.data(), w1_.data(), w2_.data(), Activation::kRelu, 0};
  expected_ = reference_mlp<T>(x, {gain, w1, w2, Activation::kRelu, 0});
}

template <Floating T>
void MlpProblem<T>::fill_normal() {
  const auto [t, f, h] = whole();
  const std::vector<T> x = normals<T>(own_rows(), kX, seed(), 1);
  const std::vector<T> whole_x = normals<T>(whole_matrix(t, h), kX, seed(), 1);
  std::vector<T> gain = normals<T>(whole_matrix(1, h), kGain, seed(), kGainDeviation);
  for (T& element : gain) element = from_double<T>(1 + value_of(element));
  upload(rank(), x, x_);
  upload(rank(), whole_x, whole_x_);
  upload(rank(), gain, gain_);
  upload(rank(), normals<T>(w1_shard(), kW1, seed(), deviation_of(h)), w1_);
  upload(rank(), normals<T>(w2_shard(), kW2, seed(), deviation_of(f)), w2_);
  layer_ = {gain_.data(), w1_.data(), w2_.data(), activation_, kEpsilon};

  upload(rank(), rounded<T>(reference_norm<T>(whole_x, gain, kEpsilon)), normed_);
  upload(rank(), hidden_alone({t, w1_shard().columns.size(), h}, normed_, w1_), activated_);
  multiply_alone(x, reference_norm<T>(x, gain, kEpsilon));
}

template <Floating T>
std::vector<T> MlpProblem<T>::hidden_alone(MatmulShape shape, const DeviceBuffer<T>& normed,
                                           const DeviceBuffer<T>& w1) const {
  const DeviceBuffer<float> product(rank().device(), static_cast<std::size_t>(shape.m * shape.n));
  matmul_row_major(rank().cublas(), rank().stream(), shape, normed.data(), w1.data(), product.data());
  return activated_and_rounded<T>(activation_, download(rank(), product.data(), shape.m * shape.n));
}

// Its rows of Y with all of W1 and W2 on one GPU, and nothing but the two products computed there.
template <Floating T>
void MlpProblem<T>::multiply_alone(const std::vector<T>& x, const std::vector<double>& normed) {
  const auto [t, f, h] = whole();
  const std::int64_t rows = own_rows().rows.size();
  const DeviceBuffer<T> a(rank().device(), x.size()),
      weights(rank().device(), static_cast<std::size_t>(h * f));
  upload(rank(), rounded<T>(normed), a);
  upload(rank(), normals<T>(whole_matrix(h, f), kW1, seed(), deviation_of(h)), weights);
  const std::vector<T> hidden = hidden_alone({rows, f, h}, a, weights);

  const DeviceBuffer<T> g(rank().device(), hidden.size());
  const DeviceBuffer<float> product(rank().device(), x.size());
  upload(rank(), hidden, g);
  upload(rank(), normals<T>(whole_matrix(f, h), kW2, seed(), deviation_of(f)), weights);
  matmul_row_major(rank().cublas(), rank().stream(), {rows, h, f}, g.data(), weights.data(), product.data());
  const std::vector<float> sum = download(rank(), product.data(), rows * h);

  expected_.resize(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) expected_[i] = value_of(x[i]) + static_cast<double>(sum[i]);
  const Tolerance rounding = matmul_tolerance(0, type(), type());  // of a sum of nothing: that of storing it
  bounds_.resize(static_cast<std::size_t>(rows));
  for (std::size_t row = 0; row < bounds_.size(); ++row) {
    double squares = 0;
    for (std::size_t k = row * static_cast<std::size_t>(h); k < (row + 1) * static_cast<std::size_t>(h);
         ++k) {
      squares += normed[k] * normed[k];
    }
    bounds_[row] = error_of_row(whole(), rank().size(), rounding.value) * std::sqrt(squares);
  }
}

// norm(-X) with the gain -g is norm(X) with g; so -X and -W2 make Y = X + act(norm(X) W1) W2 to -Y.
template <Floating T>
void MlpProblem<T>::negate() {
  for (const DeviceBuffer<T>* const buffer : {&x_, &whole_x_, &gain_, &w2_}) overlap::negate(rank(), *buffer);
  for (double& element : expected_) element = -element;
}

template <Floating T>
Verification MlpProblem<T>::compare(bool corrupt, bool exact) {
  const std::int64_t elements = whole_result_ ? result_elements() : own_rows().elements();
  std::vector<T> y = download(rank(), whole_result_ ? whole_y_.data() : y_.data(), elements);
  if (corrupt) corrupt_one_element(std::span<T>(y));
  if (!whole_result_) return compare_rows(own_rows(), y, expected_.data(), bounds_.data(), exact);

  // Each rank knows its own rows; so all of Y is compared with what all of them expect.
  const std::vector<const double*> expected = rank().template exchange<const double*>(expected_.data());
  const std::vector<const double*> bounds = rank().template exchange<const double*>(bounds_.data());
  Verification found;
  for (int owner = 0; owner < rank().size(); ++owner) {
    Shard rows = row_shard(whole().m, whole().k, rank().size(), owner);
    rows.rank = rank().id();
    const std::span<const T> part = std::span<const T>(y).subspan(
        static_cast<std::size_t>(rows.rows.begin * whole().k), static_cast<std::size_t>(rows.elements()));
    const auto index = static_cast<std::size_t>(owner);
    found += compare_rows(rows, part, expected[index], bounds[index], exact);
  }
  rank().barrier();  // nobody looks at this rank's rows any more
  return found;
}

template <Floating T>
Verification MlpProblem<T>::compare_rows(const Shard& rows, std::span<const T> y, const double* expected,
                                         const double* bounds, bool exact) const {
  const std::vector<double> right(expected, expected + y.size());
  if (exact) return compare_matrices(std::span<const T>(rounded<T>(right)), y, rows);
  Tolerance tolerance = matmul_tolerance(0, type(), type());
  tolerance.magnitude = 1;
  MatmulNorms norms;
  norms.a_rows.assign(bounds, bounds + rows.rows.size());
  norms.b_columns.assign(static_cast<std::size_t>(whole().k), 1.0);
  return compare_within(std::span<const double>(right), y, rows, tolerance, norms);
}

template <Floating T>
void MlpProblem<T>::gemm_only(cudaStream_t stream) {
  const auto [t, f, h] = whole();
  const std::int64_t own_f = w1_shard().columns.size();
  matmul_row_major(rank().cublas(), stream, {t, own_f, h}, normed_.data(), w1_.data(), hidden_.data());
  matmul_row_major(rank().cublas(), stream, {t, h, own_f}, activated_.data(), w2_.data(), partial_.data());
}

template <Floating T>
std::string MlpProblem<T>::formula() const {
  const auto [t, f, h] = whole();
  return std::string("Y = X + act(norm(X) W1) W2 in ") + name_of(type()) + ": X " + size_text(t, h) +
         ", W1 " + size_text(h, f) + ", W2 " + size_text(f, h) + " (m tokens, k hidden, n feed-forward);\n";
}

template class MlpProblem<__half>;
template class MlpProblem<__nv_bfloat16>;
template class MlpProblem<float>;

}  // namespace overlap
