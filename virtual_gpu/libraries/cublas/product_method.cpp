// Apart from the products themselves: a program that only asks for the method does not load OpenBLAS.
#include <stdexcept>

#include "libraries/cublas/float_product.hpp"
#include "vgpu/control.hpp"

namespace vgpu {
namespace {

ProductMethod& method() {
  static ProductMethod chosen = VGPU_OPENBLAS ? ProductMethod::kOpenBlas : ProductMethod::kLoop;
  return chosen;
}

}  // namespace

ProductMethod product_method() { return method(); }

void use_product_method(ProductMethod wanted) {
  if (wanted == ProductMethod::kOpenBlas && !VGPU_OPENBLAS)
    throw std::logic_error("the virtual GPUs were built without OpenBLAS");
  method() = wanted;
}

}  // namespace vgpu
