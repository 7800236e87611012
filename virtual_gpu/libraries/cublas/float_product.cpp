#include "libraries/cublas/float_product.hpp"

#include "vgpu/control.hpp"

namespace vgpu {

template <class Real>
static void multiply_by_method(const RealProduct<Real>& product) {
#if VGPU_OPENBLAS
  if (product_method() == ProductMethod::kOpenBlas) return multiply_by_openblas(product);
#endif
  multiply_by_loop(product);
}

void multiply(const RealProduct<float>& product) { multiply_by_method(product); }
void multiply(const RealProduct<double>& product) { multiply_by_method(product); }

}  // namespace vgpu
