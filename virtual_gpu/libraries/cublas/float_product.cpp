#include "libraries/cublas/float_product.hpp"

#include <stdexcept>

#include "vgpu/control.hpp"

namespace vgpu {

static ProductMethod& method() {
  static ProductMethod chosen = VGPU_OPENBLAS ? ProductMethod::kOpenBlas : ProductMethod::kLoop;
  return chosen;
}

ProductMethod product_method() { return method(); }

void use_product_method(ProductMethod wanted) {
  if (wanted == ProductMethod::kOpenBlas && !VGPU_OPENBLAS)
    throw std::logic_error("the virtual GPUs were built without OpenBLAS");
  method() = wanted;
}

template <class Real>
static void multiply_by_method(const RealProduct<Real>& product) {
#if VGPU_OPENBLAS
  if (method() == ProductMethod::kOpenBlas) return multiply_by_openblas(product);
#endif
  multiply_by_loop(product);
}

void multiply(const RealProduct<float>& product) { multiply_by_method(product); }
void multiply(const RealProduct<double>& product) { multiply_by_method(product); }

}  // namespace vgpu
