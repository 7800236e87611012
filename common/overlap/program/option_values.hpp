// What the values of options say: texts into numbers, types and variants, or a UsageError that names the
// option.
#pragma once

#include <charconv>
#include <string>
#include <system_error>
#include <vector>

#include "overlap/gpu/element_type.hpp"
#include "overlap/gpu/error.hpp"
#include "overlap/gpu/nccl_mode.hpp"
#include "overlap/program/chapter_info.hpp"

namespace overlap {

/// A whole decimal number from `low` to `high`. CLI11 could read it, but its sentences are made for
/// programmers.
template <typename T>
T number(const std::string& option, const std::string& text, T low, T high) {
  const char* end = text.data() + text.size();
  T value{};
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (rest != end || text.empty() || error == std::errc::invalid_argument) {
    throw UsageError(option + ": '" + text + "' is not a whole number");
  }
  if (error != std::errc{} || value < low || value > high) {
    throw UsageError(option + ": " + text + " is not between " + std::to_string(low) + " and " +
                     std::to_string(high));
  }
  return value;
}

/// One of `values`, by its name.
template <typename Value>
Value chosen(const std::string& option, const std::string& text, const std::vector<Value>& values) {
  std::string names;
  for (const Value value : values) {
    if (text == name_of(value)) return value;
    names += (names.empty() ? "" : ", ") + std::string(name_of(value));
  }
  throw UsageError(option + ": '" + text + "' is not known (known: " + names + ")");
}

/// "f16, bf16".
std::string joined(const std::vector<std::string>& words);
/// The words between commas.
std::vector<std::string> split(const std::string& text);

std::vector<std::string> type_names(const ChapterInfo& chapter);
ElementType chosen_type(const ChapterInfo& chapter, const std::string& text);
/// The chapter's variants that the text names, in the chapter's order.
std::vector<std::string> chosen_variants(const ChapterInfo& chapter, const std::string& text);
NcclMode chosen_nccl_mode(const std::string& text);
/// Takes the variants of all other modes out. Throws Skip if the chapter cannot have this one here.
void keep_nccl_mode(NcclMode mode, const ChapterInfo& chapter, std::vector<std::string>& variants);

/// Says in our words what CLI11 says: "--m: 1 required SIZE missing", "--m: At Most 1 required but received
/// 2", or "5 was given as a disallowed flag override on --check".
std::string mismatch_sentence(const std::string& text);

}  // namespace overlap
