// Names and meanings of an API's codes, out of the lists in the public headers (VGPU_ERRORS and its like).
#pragma once

#include <algorithm>
#include <span>

namespace vgpu {

struct CodeText {
  int code;
  const char* name;
  const char* text;  // what the code means, in a few words
};

/// Makes a list's entry one of an array of CodeText.
#define VGPU_CODE_TEXT(code, value, text) {code, #code, text},

/// The entry of `code`, or `unknown`, whose own code does not count.
inline const CodeText& find_code(std::span<const CodeText> codes, int code, const CodeText& unknown) {
  const auto found =
      std::find_if(codes.begin(), codes.end(), [code](const CodeText& entry) { return entry.code == code; });
  return found == codes.end() ? unknown : *found;
}

}  // namespace vgpu
