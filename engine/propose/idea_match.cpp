#include "propose/idea_match.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <set>

namespace kbeam {
namespace {

// Words that carry no idea.
constexpr std::array<std::string_view, 46> kFilling{
    "a",    "an",   "and",     "are",    "as",    "at",   "be",   "by",    "can", "each",
    "for",  "from", "has",     "have",   "in",    "into", "is",   "it",    "its", "more",
    "of",   "on",   "once",    "one",    "only",  "or",   "over", "per",   "so",  "than",
    "that", "the",  "them",    "then",   "this",  "to",   "use",  "using", "we",  "when",
    "with", "will", "instead", "should", "which", "while"};

std::string without_ending(std::string word) {
  for (const std::string_view ending : {"ing", "ed", "es", "s"})
    if (word.size() > ending.size() + 3 && word.ends_with(ending)) {
      word.resize(word.size() - ending.size());
      break;
    }
  if (word.size() > 4 && word.back() == 'e') word.pop_back();
  return word;
}

std::set<std::string> content_words(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && std::find(kFilling.begin(), kFilling.end(), word) == kFilling.end())
      words.insert(without_ending(word));
    word.clear();
  };
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || byte >= 0x80)
      word += static_cast<char>(std::tolower(byte));
    else
      end_word();
  }
  end_word();
  return words;
}

double overlap(const std::set<std::string>& a, const std::set<std::string>& b) {
  if (a.empty() || b.empty()) return 0;
  std::vector<std::string> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return static_cast<double>(both.size()) / static_cast<double>(a.size() + b.size() - both.size());
}

}  // namespace

double likeness(std::string_view a, std::string_view b) {
  return overlap(content_words(a), content_words(b));
}

const std::string* find_same_idea(const std::string& idea, const std::vector<std::string>& known) {
  const std::set<std::string> words = content_words(idea);
  for (const std::string& one : known)
    if (overlap(words, content_words(one)) >= kSameIdea) return &one;
  return nullptr;
}

}  // namespace kbeam
