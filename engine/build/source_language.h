// What a source is written in: its name's ending says so.
#pragma once

#include <string_view>

namespace kbeam {

enum class SourceLanguage { cpp, cuda };

inline SourceLanguage language_of(std::string_view source_name) {
  return source_name.ends_with(".cu") ? SourceLanguage::cuda : SourceLanguage::cpp;
}

}  // namespace kbeam
