// Variables of the device, by name; notes of the rewriter.
#include "vgpu/symbols.h"

#include <cstdio>
#include <set>
#include <string>

#include "engine/host/api_call.hpp"

namespace vgpu {

cudaError_t find_symbol(const char* call, void** address, const void* variable, std::size_t bytes) {
  return api_call(call, [&](Runtime& runtime) {
    const std::ptrdiff_t place = Symbols::place_of(variable);
    if (place < 0)
      throw ApiError(cudaErrorInvalidSymbol, "the symbol is no variable of the device that changes");
    if (bytes > 0)
      throw ApiError(cudaErrorInvalidValue, "the symbol has fewer than " + std::to_string(bytes) + " bytes");
    *address = runtime.symbols().of(runtime.host().device()) + place;
  });
}

bool program_note(const char* sentence) {
  static std::set<std::string> told;
  if (told.insert(sentence).second) std::fprintf(stderr, "virtual GPUs: note: %s\n", sentence);
  return true;
}

}  // namespace vgpu
