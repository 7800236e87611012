#include "overlap/program/option_values.hpp"

#include <algorithm>

namespace overlap {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, comma - begin));
    if (comma == text.size()) return words;
    begin = comma + 1;
  }
}

std::vector<std::string> type_names(const ChapterInfo& chapter) {
  std::vector<std::string> names;
  for (const ElementType type : chapter.element_types()) names.emplace_back(name_of(type));
  return names;
}

ElementType chosen_type(const ChapterInfo& chapter, const std::string& text) {
  for (const ElementType type : chapter.element_types()) {
    if (text == name_of(type)) return type;
  }
  throw UsageError("--type: '" + text +
                   "' is not a type of this chapter (known: " + joined(type_names(chapter)) + ")");
}

std::vector<std::string> chosen_variants(const ChapterInfo& chapter, const std::string& text) {
  const std::vector<std::string> names = split(text);
  const auto contains = [](const std::vector<std::string>& all, const std::string& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  for (const std::string& name : names) {
    if (!contains(chapter.variants, name)) {
      throw UsageError("--only: '" + name + "' is not a variant of this chapter (known: " +
                       (chapter.variants.empty() ? "none" : joined(chapter.variants)) + ")");
    }
  }
  std::vector<std::string> chosen;
  for (const std::string& variant : chapter.variants) {
    if (contains(names, variant)) chosen.push_back(variant);
  }
  return chosen;
}

NcclMode chosen_nccl_mode(const std::string& text) {
  std::string names;
  for (const NcclMode mode : all_nccl_modes()) {
    if (text == name_of(mode)) return mode;
    names += (names.empty() ? "" : ", ") + std::string(name_of(mode));
  }
  throw UsageError("--nccl: '" + text + "' is not a mode of NCCL (known: " + names + ")");
}

void keep_nccl_mode(NcclMode mode, const ChapterInfo& chapter, std::vector<std::string>& variants) {
  const std::vector<std::string>& known = chapter.variants;
  if (std::find(known.begin(), known.end(), variant_of(mode)) == known.end())
    throw Skip("--nccl: " + why_not(mode));
  for (const NcclMode other : all_nccl_modes()) {
    if (other != mode) std::erase(variants, variant_of(other));
  }
  if (variants.empty())
    throw UsageError(std::string("--only: none of these variants runs with --nccl ") + name_of(mode));
}

std::string mismatch_sentence(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return "--" + text.substr(0, text.find(' ')) + ": takes no value";
  const bool several = text.find("received") != std::string::npos;
  return text.substr(0, colon) + (several ? ": given more than once" : ": a value is missing");
}

}  // namespace overlap
