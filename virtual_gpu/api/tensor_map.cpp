// Tensor maps, and functions of the driver API by name.
#include "engine/hopper/tensor_map.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "cuda.h"
#include "cuda_runtime_api.h"
#include "engine/host/api_call.hpp"

namespace vgpu {
namespace {

struct ElementType {
  CUtensorMapDataType type;
  int bytes;              // 0: copies round the values
  TensorElement element;  // what a bulk addition makes of it
};

/// Null if there is no such type.
const ElementType* find_element(CUtensorMapDataType type) {
  static constexpr ElementType kTypes[] = {
      {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, TensorElement::kOther},
      {CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, TensorElement::kOther},
      {CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, TensorElement::kWord},
      {CU_TENSOR_MAP_DATA_TYPE_INT32, 4, TensorElement::kWord},
      {CU_TENSOR_MAP_DATA_TYPE_UINT64, 8, TensorElement::kLongWord},
      {CU_TENSOR_MAP_DATA_TYPE_INT64, 8, TensorElement::kOther},
      {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, TensorElement::kHalf},
      {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, TensorElement::kFloat},
      {CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8, TensorElement::kOther},
      {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, TensorElement::kBfloat16},
      {CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, 0, TensorElement::kOther},
      {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 0, TensorElement::kOther},
      {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, 0, TensorElement::kOther},
  };
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [type](const ElementType& entry) { return entry.type == type; });
  return found == std::end(kTypes) ? nullptr : found;
}

void require(bool holds, const char* sentence) {
  if (!holds) throw ApiError(cudaErrorInvalidValue, sentence);
}
void require_supported(bool holds, const char* sentence) {
  if (!holds) throw ApiError(cudaErrorNotSupported, sentence);
}
/// Errors of the driver API are not found by cudaGetLastError().
template <class Function>
CUresult driver_call(const char* name, Function function) {
  require_own_thread(name);
  const cudaError_t before = runtime().host().last_error();
  const cudaError_t code = api_call(name, function);
  runtime().host().set_last_error(before);
  return static_cast<CUresult>(code);
}
bool is_multiple(const void* address, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

/// The arguments that describe one dimension.
void check_dimension(cuuint64_t size, const cuuint64_t* stride, cuuint32_t box, cuuint32_t element_stride) {
  require(size >= 1 && size <= cuuint64_t{1} << 32, "each size must be 1 to 2^32");
  require(stride == nullptr || (*stride % 16 == 0 && *stride < cuuint64_t{1} << 40),
          "each stride must be a multiple of 16 bytes, and less than 2^40");
  require(box >= 1 && box <= 256, "each side of the box must be 1 to 256");
  require(element_stride >= 1 && element_stride <= 8, "each element stride must be 1 to 8");
}

}  // namespace
}  // namespace vgpu

using namespace vgpu;

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2_promotion,
                                CUtensorMapFloatOOBfill fill) {
  return driver_call("cuTensorMapEncodeTiled", [&](Runtime&) {
    require(map != nullptr && is_multiple(map, 64), "the map must lie at a multiple of 64 bytes");
    const ElementType* element = find_element(type);
    require(element != nullptr, "there is no such data type");
    require(rank >= 1 && rank <= TensorMap::kMaxDimensions, "the rank must be 1 to 5");
    require(sizes != nullptr && strides != nullptr && box != nullptr && element_strides != nullptr,
            "sizes, strides (also of one dimension), box and element strides must be given");
    require(interleave >= CU_TENSOR_MAP_INTERLEAVE_NONE && interleave <= CU_TENSOR_MAP_INTERLEAVE_32B &&
                (interleave == CU_TENSOR_MAP_INTERLEAVE_NONE || rank >= 3),
            "there is no such interleaved layout");
    require(
        l2_promotion >= CU_TENSOR_MAP_L2_PROMOTION_NONE && l2_promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        "there is no such L2 promotion");
    require(fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
                fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
            "there is no such fill");
    const bool whole_numbers = type <= CU_TENSOR_MAP_DATA_TYPE_INT64;
    require(fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || !whole_numbers,
            "only floating point has NaN as its fill");
    require(address != nullptr && is_multiple(address, 16), "the tensor must lie at a multiple of 16 bytes");
    require_supported(element->bytes > 0, "types that round on the way are not supported");
    require_supported(interleave == CU_TENSOR_MAP_INTERLEAVE_NONE, "interleaved layouts are not supported");
    require_supported(fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, "only zeros are supported as a fill");

    TensorMap made{};
    made.address = static_cast<std::byte*>(address);
    made.rank = static_cast<std::uint8_t>(rank);
    made.element_bytes = static_cast<std::uint8_t>(element->bytes);
    made.element = element->element;
    for (cuuint32_t d = 0; d < rank; ++d) {
      check_dimension(sizes[d], d == 0 ? nullptr : strides + (d - 1), box[d], element_strides[d]);
      require_supported(d == 0 || element_strides[d] == 1, "only element strides of 1 are supported");
      made.last[d] = static_cast<std::uint32_t>(sizes[d] - 1);
      made.box[d] = static_cast<std::uint16_t>(box[d]);
      if (d > 0) made.strides[d - 1] = strides[d - 1];
    }
    require(made.row_bytes() % 16 == 0, "the box's innermost side must be a multiple of 16 bytes");
    require(swizzle >= CU_TENSOR_MAP_SWIZZLE_NONE && swizzle <= CU_TENSOR_MAP_SWIZZLE_128B,
            "there is no such swizzle, or it is Blackwell's");
    if (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE) {
      made.swizzle_bytes = static_cast<std::uint8_t>(16 << swizzle);
      require(made.row_bytes() <= made.swizzle_bytes, "the box's innermost side is wider than the swizzle");
      require_supported(made.row_bytes() == made.swizzle_bytes,
                        "a box that is narrower than its swizzle is not supported");
    }
    *map = {};
    write_tensor_map(made, map);
  });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned int version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result) {
  return api_call("cudaGetDriverEntryPointByVersion", [&](Runtime&) {
    struct Entry {
      const char* name;
      void* function;
      unsigned int since;
    };
    static const Entry entries[] = {
        {"cuTensorMapEncodeTiled", reinterpret_cast<void*>(&cuTensorMapEncodeTiled), 12000},
        {"cuStreamWriteValue32", reinterpret_cast<void*>(&cuStreamWriteValue32), 8000},
        {"cuStreamWaitValue32", reinterpret_cast<void*>(&cuStreamWaitValue32), 8000},
        {"cuGetErrorName", reinterpret_cast<void*>(&cuGetErrorName), 6000},
        {"cuGetErrorString", reinterpret_cast<void*>(&cuGetErrorString), 6000},
    };
    require(
        name != nullptr && *name != '\0' && function != nullptr && flags <= cudaEnablePerThreadDefaultStream,
        "a name and a place for the function are needed, and known flags");
    *function = nullptr;
    auto found = cudaDriverEntryPointSymbolNotFound;
    for (const Entry& entry : entries) {
      if (std::strcmp(entry.name, name) != 0) continue;
      found = version < entry.since ? cudaDriverEntryPointVersionNotSufficent : cudaDriverEntryPointSuccess;
      if (found == cudaDriverEntryPointSuccess) *function = entry.function;
    }
    if (result != nullptr) *result = found;
  });
}

cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, result);
}
