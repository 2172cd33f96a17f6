// What a question about a run names, and what it is about: words matched against the names that
// the run knows and a fixed list. Knows no grammar.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace kbeam {

// The names that a question can hold.
struct Vocabulary {
  std::vector<std::string> families;
  std::vector<std::string> cases;
  std::vector<std::string> candidates;
  std::vector<std::string> evaluations;
};

enum class Topic { champions, families, rejections, near_misses, steering, evaluations };

struct Question {
  std::vector<std::string> families;
  std::vector<std::string> cases;
  std::vector<std::string> candidates;
  std::vector<std::string> evaluations;
  std::vector<std::string> verdicts;
  std::set<Topic> about;
  std::string advice;  // "family 9: there are 4", "did you mean c64?"
};
Question read_question(const std::string& text, const Vocabulary& vocabulary);

// "family simd; rejections"; empty when nothing was recognised.
std::string describe(const Question& question);

}  // namespace kbeam
