#include "build/source_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <vector>

#include "build/cpp_tokens.h"

namespace kbeam {
namespace {

using Kind = CppToken::Kind;

// Headers of the language and of the instruction sets. Left out: files, threads, processes, time,
// streams.
constexpr std::array<std::string_view, 47> kStandardHeaders = {
    "algorithm",  "array",       "bit",
    "bitset",     "cassert",     "cfloat",
    "climits",    "cmath",       "compare",
    "complex",    "concepts",    "cstddef",
    "cstdint",    "cstdlib",     "cstring",
    "deque",      "execution",   "float.h",
    "functional", "immintrin.h", "initializer_list",
    "iterator",   "limits",      "limits.h",
    "map",        "math.h",      "memory",
    "new",        "numbers",     "numeric",
    "optional",   "random",      "ranges",
    "ratio",      "set",         "span",
    "stddef.h",   "stdint.h",    "stdlib.h",
    "string",     "string.h",    "string_view",
    "tuple",      "type_traits", "utility",
    "variant",    "vector"};

constexpr std::array<std::string_view, 10> kArchitectureHeaders = {
    "arm_neon.h",  "arm_sve.h",   "x86intrin.h", "xmmintrin.h", "emmintrin.h",
    "pmmintrin.h", "tmmintrin.h", "smmintrin.h", "nmmintrin.h", "avxintrin.h"};

// Of a .cu, beside those above. What lies in a folder is admitted as a whole: these hold no call
// that the rules on the object would let pass.
constexpr std::array<std::string_view, 12> kCudaHeaders = {
    "cuda.h",         "cuda_bf16.h",
    "cuda_fp16.h",    "cuda_fp4.h",
    "cuda_fp6.h",     "cuda_fp8.h",
    "cuda_runtime.h", "cooperative_groups.h",
    "cuComplex.h",    "cuda_device_runtime_api.h",
    "mma.h",          "vector_types.h"};
constexpr std::array<std::string_view, 5> kCudaFolders = {"cooperative_groups/", "cuda/",
                                                          "cub/block/", "cub/thread/", "cub/warp/"};

constexpr std::array<std::string_view, 12> kPragmas = {"once",
                                                       "STDC",
                                                       "omp",
                                                       "clang",
                                                       "unroll",
                                                       "GCC unroll",
                                                       "GCC ivdep",
                                                       "GCC diagnostic",
                                                       "GCC optimize",
                                                       "GCC target",
                                                       "GCC push_options",
                                                       "GCC pop_options"};

constexpr std::array<std::string_view, 3> kTimeWords = {"__DATE__", "__TIME__", "__TIMESTAMP__"};

// What differs between the judge's build and others: the name of the file, and who watches.
constexpr std::array<std::string_view, 17> kPlaceWords = {"__FILE__",
                                                          "__FILE_NAME__",
                                                          "__BASE_FILE__",
                                                          "__INCLUDE_LEVEL__",
                                                          "__LINE__",
                                                          "__builtin_LINE",
                                                          "__builtin_FILE",
                                                          "__builtin_FILE_NAME",
                                                          "__builtin_source_location",
                                                          "source_location",
                                                          "__SANITIZE_ADDRESS__",
                                                          "__SANITIZE_THREAD__",
                                                          "__SANITIZE_HWADDRESS__",
                                                          "__SANITIZE_UNDEFINED__",
                                                          "__has_feature",
                                                          "__has_extension",
                                                          "KBEAM_ENTRY"};

// A string as the compiler reads it, as far as the text of a pragma needs it.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

template <typename List>
bool contains(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_cuda_header(std::string_view name) {
  return contains(kCudaHeaders, name) ||
         std::any_of(kCudaFolders.begin(), kCudaFolders.end(),
                     [&](std::string_view folder) { return name.starts_with(folder); });
}

bool is_admitted_header(std::string_view name, SourceOrigin origin, SourceLanguage language) {
  if (name.find("..") != std::string_view::npos || name.starts_with('/')) return false;
  if (origin == SourceOrigin::baseline || name.starts_with("kbeam/")) return true;
  if (language == SourceLanguage::cuda && is_cuda_header(name)) return true;
  return contains(kStandardHeaders, name) || contains(kArchitectureHeaders, name);
}

bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_admitted_pragma(std::string_view text, SourceLanguage language) {
  if (language == SourceLanguage::cuda &&
      (text.starts_with("nv_diag_") || text.starts_with("nv_diagnostic ")))
    return true;
  return std::any_of(kPragmas.begin(), kPragmas.end(), [&](std::string_view pragma) {
    return text == pragma || (text.starts_with(pragma) && !is_word(text[pragma.size()]));
  });
}

class Examiner {
 public:
  Examiner(const std::vector<CppToken>& tokens, SourceOrigin origin, SourceLanguage language)
      : tokens_(tokens), origin_(origin), language_(language) {}

  std::optional<SourceRefusal> run() {
    for (std::size_t i = 0; i < tokens_.size() && !refusal_; ++i) examine(i);
    return refusal_;
  }

 private:
  const CppToken* at(std::size_t i) const { return i < tokens_.size() ? &tokens_[i] : nullptr; }

  void refuse(SourceRule rule, const CppToken& token, std::string sentence) {
    refusal_ = SourceRefusal{rule, token.line, std::move(sentence)};
  }

  void examine(std::size_t i) {
    const CppToken& token = tokens_[i];
    if (token.kind == Kind::directive) return examine_directive(i);
    if (token.kind == Kind::string) return examine_strings(i);
    if (token.kind == Kind::punctuation) return examine_punctuation(i);
    if (token.kind != Kind::identifier) return;
    if (token.text == "__has_include" || token.text == "__has_include_next" ||
        token.text == "__has_embed")
      return examine_question(i);
    if (token.text == "_Pragma") return examine_pragma_operator(i);
    if (contains(kTimeWords, token.text))
      return refuse(SourceRule::build_time, token,
                    "a build may not depend on the time: remove " + token.text);
    if (contains(kPlaceWords, token.text))
      refuse(
          SourceRule::build_place, token,
          "what is judged must be what ships, wherever and under whose eyes it is built: remove " +
              token.text);
  }

  // `##` makes names that no rule sees.
  void examine_punctuation(std::size_t i) {
    if (origin_ == SourceOrigin::baseline) return;
    const auto follows = [&](std::size_t k, std::string_view text) {
      const CppToken* const token = at(k);
      return token != nullptr && token->is(text) && (k == i || !token->space_before);
    };
    const bool pastes = follows(i, "#") && follows(i + 1, "#");
    const bool pastes_in_disguise =
        follows(i, "%") && follows(i + 1, ":") && follows(i + 2, "%") && follows(i + 3, ":");
    if (pastes || pastes_in_disguise)
      refuse(SourceRule::token_paste, tokens_[i],
             "## is not allowed: it makes names that the source does not show");
  }

  void examine_directive(std::size_t i) {
    const CppToken& directive = tokens_[i];
    if (directive.text == "embed")
      return refuse(SourceRule::embedded_file, directive,
                    "#embed is not allowed: a candidate is one text");
    if (directive.text == "import" || directive.text.starts_with("include"))
      return examine_header(i, directive);
    // # 7 "name"
    const bool is_marker =
        !directive.text.empty() && directive.text.front() >= '0' && directive.text.front() <= '9';
    if (directive.text == "line" || is_marker)
      return refuse(SourceRule::line_marker, directive,
                    "#line is not allowed: it would hide code from the rules and the warnings");
    if (directive.text != "pragma") return;
    std::string text;
    for (std::size_t k = i + 1; at(k) != nullptr && tokens_[k].kind != Kind::directive_end; ++k)
      text += (text.empty() ? "" : " ") + tokens_[k].text;
    examine_pragma(directive, text);
  }

  void examine_header(std::size_t i, const CppToken& directive) {
    const CppToken* name = at(i + 1);
    if (directive.text != "include")
      return refuse(SourceRule::header, directive,
                    "#" + directive.text + " is not allowed; use #include");
    if (name == nullptr || name->kind != Kind::string)
      return refuse(SourceRule::computed_include, directive,
                    "an include must name its header: #include <cmath>");
    examine_header_name(*name);
  }

  void examine_header_name(const CppToken& name) {
    if (name.text.starts_with('<') && is_admitted_header(name.content, origin_, language_)) return;
    refuse(SourceRule::header, name,
           "include of " + name.text +
               " is not allowed: a candidate includes only <kbeam/...> and the standard headers of "
               "computation" +
               (language_ == SourceLanguage::cuda ? " and of device code" : ""));
  }

  void examine_question(std::size_t i) {
    const CppToken* parenthesis = at(i + 1);
    const CppToken* name = at(i + 2);
    if (parenthesis == nullptr || !parenthesis->is("(")) return;  // as in #ifdef __has_include
    if (name == nullptr || name->kind != Kind::string)
      return refuse(SourceRule::computed_include, tokens_[i],
                    tokens_[i].text + " must name its header");
    examine_header_name(*name);
  }

  void examine_pragma_operator(std::size_t i) {
    const CppToken* text = at(i + 2);
    if (text == nullptr || text->kind != Kind::string)
      return refuse(SourceRule::pragma, tokens_[i],
                    "_Pragma must hold its text: _Pragma(\"GCC ivdep\")");
    examine_pragma(tokens_[i], without_escapes(text->content));
  }

  void examine_pragma(const CppToken& where, const std::string& text) {
    if (is_admitted_pragma(text, language_)) return;
    refuse(SourceRule::pragma, where, "#pragma " + text + " is not allowed");
  }

  // The assembler reads files too. Neighbouring strings are one string to the compiler.
  void examine_strings(std::size_t i) {
    if (i > 0 && tokens_[i - 1].kind == Kind::string) return;
    std::string text;
    for (std::size_t k = i; at(k) != nullptr && tokens_[k].kind == Kind::string; ++k)
      text += tokens_[k].content;
    for (const char* directive : {".incbin", ".include"})
      if (text.find(directive) != std::string::npos)
        refuse(SourceRule::embedded_file, tokens_[i],
               std::string(directive) + " is not allowed: a candidate is one text");
  }

  const std::vector<CppToken>& tokens_;
  SourceOrigin origin_;
  SourceLanguage language_;
  std::optional<SourceRefusal> refusal_;
};

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// `# 12 "name"` or `# 12`: what follows stands in line 12 of that file, or of the file before.
struct LineMarker {
  int line = 0;
  std::optional<std::string_view> file;
};

std::optional<LineMarker> read_marker(std::string_view line) {
  if (!line.starts_with("# ")) return std::nullopt;
  line.remove_prefix(2);
  LineMarker marker;
  const auto [rest, trouble] = std::from_chars(line.data(), line.data() + line.size(), marker.line);
  if (trouble != std::errc()) return std::nullopt;
  const std::size_t open = line.find('"');
  if (open != std::string_view::npos)
    marker.file = line.substr(open + 1, line.rfind('"') - open - 1);
  return marker;
}

}  // namespace

std::string_view to_string(SourceRule rule) {
  switch (rule) {
    case SourceRule::header:
      return "header";
    case SourceRule::computed_include:
      return "computed_include";
    case SourceRule::embedded_file:
      return "embedded_file";
    case SourceRule::pragma:
      return "pragma";
    case SourceRule::build_time:
      return "build_time";
    case SourceRule::build_place:
      return "build_place";
    case SourceRule::token_paste:
      return "token_paste";
    case SourceRule::line_marker:
      return "line_marker";
    case SourceRule::host_assembly:
      return "host_assembly";
  }
  return "unknown";
}

std::optional<SourceRefusal> find_refusal(std::string_view source, SourceOrigin origin,
                                          SourceLanguage language) {
  const std::vector<CppToken> tokens = cpp_tokens(source);
  return Examiner(tokens, origin, language).run();
}

std::optional<SourceRefusal> find_host_assembly(std::string_view host_half,
                                                std::string_view source_name) {
  std::string_view file;
  int line_number = 0;
  int switched_off = 0;  // depth of #if 0
  while (!host_half.empty()) {
    const std::string_view line = take_line(host_half);
    if (const auto marker = read_marker(line)) {
      line_number = marker->line;
      if (marker->file) file = *marker->file;
      continue;
    }
    if (line.starts_with("#if 0") || (switched_off > 0 && line.starts_with("#if")))
      ++switched_off;
    else if (switched_off > 0 && line.starts_with("#endif"))
      --switched_off;
    else if (switched_off == 0 && file == source_name)
      for (const CppToken& token : cpp_tokens(line))
        if (token.kind == Kind::identifier &&
            (token.text == "asm" || token.text == "__asm" || token.text == "__asm__"))
          return SourceRefusal{SourceRule::host_assembly, line_number,
                               "assembly in host code is not allowed: PTX belongs to kernels"};
  }
  return std::nullopt;
}

}  // namespace kbeam
