// An MLP layer as transformers have it, with normalisation and residual: its parameters, and its value on the
// CPU.
#pragma once

#include <span>
#include <vector>

#include "overlap/gpu/element.hpp"

namespace overlap {

/// The activation between the two GEMMs.
enum class Activation {
  kRelu,      ///< max(v, 0): keeps integers, for exact data
  kGeluTanh,  ///< v / 2 (1 + tanh(sqrt(2 / pi) (v + 0.044715 v^3))), of Hendrycks and Gimpel, 2016
  kGeluErf,   ///< v / 2 (1 + erf(v / sqrt(2))), which the one above approximates to 5e-4
};

/// The activation of one number, in double: what kernels are compared with.
double activated(Activation activation, double value);

/// What one rank holds of a layer of hidden size h and feed-forward size f:
///   Y = X + act(N W1) W2,  N[i][k] = gain[k] X[i][k] / sqrt(mean of X[i]^2 + epsilon)   (RMSNorm: Zhang and
/// Sennrich, Root Mean Square Layer Normalization, 2019), with X[t, h] and Y[t, h] of t tokens. Rank r has
/// f_r = balanced_share(f) columns of W1 and the same rows of W2. All in its GPU's memory.
template <Floating T>
struct MlpLayer {
  const T* gain;          ///< [h]
  const T* w1;            ///< [h, f_r]
  const T* w2;            ///< [f_r, h]
  Activation activation;  ///< act
  float epsilon;          ///< added to the mean square
};

/// The same layer in the host's memory, with all of W1[h, f] and W2[f, h].
template <Floating T>
struct HostLayer {
  std::span<const T> gain;  ///< [h]
  std::span<const T> w1;    ///< [h, f]
  std::span<const T> w2;    ///< [f, h]
  Activation activation;    ///< act
  double epsilon;           ///< added to the mean square
};

/// N of the rows of X[rows, h], in double, where h is the size of `gain`. Throws std::invalid_argument unless
/// X is a whole number of rows.
template <Floating T>
std::vector<double> reference_norm(std::span<const T> x, std::span<const T> gain, double epsilon);

/// Y of the rows of X[rows, h], in double, on all hardware threads: exact on exact data. Elements of W1 and
/// W2 that are 0 cost nothing. Throws std::invalid_argument if sizes do not fit.
template <Floating T>
std::vector<double> reference_mlp(std::span<const T> x, const HostLayer<T>& layer);

}  // namespace overlap
