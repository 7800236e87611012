#include "libraries/cublas/float_product.hpp"

#include "vgpu/control.hpp"

namespace vgpu {

void multiply(const FloatProduct& product) {
#if VGPU_OPENBLAS
  if (product_method() == ProductMethod::kOpenBlas) return multiply_by_openblas(product);
#endif
  multiply_by_loop(product);
}

}  // namespace vgpu
