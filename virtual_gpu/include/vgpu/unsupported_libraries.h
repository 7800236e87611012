// Libraries that virtual GPUs do not support. Their headers may be included; every use is refused by name.
#pragma once

#include "../cuda_runtime_api.h"

namespace vgpu {
template <class...>
inline constexpr bool kNever = false;
}  // namespace vgpu

// VGPU_EACH(macro, a, b, x, y, ...): macro(a, b, x) macro(a, b, y) ...
#define VGPU_EXPAND(...) VGPU_EXPAND3(VGPU_EXPAND3(VGPU_EXPAND3(VGPU_EXPAND3(__VA_ARGS__))))
#define VGPU_EXPAND3(...) VGPU_EXPAND2(VGPU_EXPAND2(VGPU_EXPAND2(VGPU_EXPAND2(__VA_ARGS__))))
#define VGPU_EXPAND2(...) VGPU_EXPAND1(VGPU_EXPAND1(VGPU_EXPAND1(VGPU_EXPAND1(__VA_ARGS__))))
#define VGPU_EXPAND1(...) __VA_ARGS__
#define VGPU_NEXT(macro, a, b, name, ...) \
  macro(a, b, name) __VA_OPT__(VGPU_AGAIN VGPU_NOTHING()()(macro, a, b, __VA_ARGS__))
#define VGPU_AGAIN() VGPU_NEXT
#define VGPU_NOTHING()
#define VGPU_EACH(macro, a, b, ...) VGPU_EXPAND(VGPU_NEXT(macro, a, b, __VA_ARGS__))

#define VGPU_NO_FUNCTION(result, sentence, name) \
  template <class... Arguments>                  \
  __attribute__((error(sentence))) result name(Arguments&&...);
#define VGPU_NO_CLASS(keyword, sentence, name)         \
  template <class T, class... More>                    \
  keyword name {                                       \
    static_assert(vgpu::kNever<T, More...>, sentence); \
  };
#define VGPU_NO_FUNCTIONS(result, sentence, ...) VGPU_EACH(VGPU_NO_FUNCTION, result, sentence, __VA_ARGS__)
#define VGPU_NO_CLASSES(sentence, ...) VGPU_EACH(VGPU_NO_CLASS, struct, sentence, __VA_ARGS__)
