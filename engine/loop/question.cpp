#include "loop/question.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/spelling.h"
#include "model/verdict.h"

namespace kbeam {
namespace {

constexpr std::size_t kLeastIdLetters = 6;

const std::map<std::string, Topic>& topic_words() {
  static const std::map<std::string, Topic> words{
      {"champion", Topic::champions},      {"champions", Topic::champions},
      {"best", Topic::champions},          {"fastest", Topic::champions},
      {"leads", Topic::champions},         {"leading", Topic::champions},
      {"leader", Topic::champions},        {"winner", Topic::champions},
      {"winning", Topic::champions},       {"won", Topic::champions},
      {"family", Topic::families},         {"families", Topic::families},
      {"beam", Topic::families},           {"retired", Topic::families},
      {"rejected", Topic::rejections},     {"failed", Topic::rejections},
      {"failures", Topic::rejections},     {"fails", Topic::rejections},
      {"errors", Topic::rejections},       {"wrong", Topic::rejections},
      {"almost", Topic::near_misses},      {"near", Topic::near_misses},
      {"close", Topic::near_misses},       {"closest", Topic::near_misses},
      {"misses", Topic::near_misses},      {"miss", Topic::near_misses},
      {"confirmed", Topic::near_misses},   {"said", Topic::steering},
      {"told", Topic::steering},           {"steered", Topic::steering},
      {"steering", Topic::steering},       {"paused", Topic::steering},
      {"evaluations", Topic::evaluations}, {"evaluation", Topic::evaluations},
      {"attempts", Topic::evaluations},    {"latest", Topic::evaluations},
      {"last", Topic::evaluations},        {"tried", Topic::evaluations}};
  return words;
}

std::string_view word_of(Topic topic) {
  switch (topic) {
    case Topic::champions:
      return "champions";
    case Topic::families:
      return "families";
    case Topic::rejections:
      return "rejections";
    case Topic::near_misses:
      return "near misses";
    case Topic::steering:
      return "steering";
    case Topic::evaluations:
      return "evaluations";
  }
  return "";
}

// Lower case words; an underscore separates, so that "rows in registers" names rows_in_registers.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char letter : text + " ") {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0 || byte >= 0x80) {
      word += static_cast<char>(std::tolower(byte));
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

bool holds(const std::vector<std::string>& words, const std::string& name) {
  const std::vector<std::string> wanted = words_of(name);
  return !wanted.empty() &&
         std::search(words.begin(), words.end(), wanted.begin(), wanted.end()) != words.end();
}

// The names that the words hold. A name inside a longer one that is held too was not meant.
std::vector<std::string> named(const std::vector<std::string>& words,
                               const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (holds(words, name)) found.push_back(name);
  std::vector<std::string> longest;
  for (const std::string& name : found)
    if (std::none_of(found.begin(), found.end(), [&](const std::string& other) {
          return other != name && holds(words_of(other), name);
        }))
      longest.push_back(name);
  return longest;
}

// A candidate is named by the beginning of its id.
std::vector<std::string> named_ids(const std::vector<std::string>& words,
                                   const std::vector<std::string>& ids) {
  std::vector<std::string> found;
  for (const std::string& id : ids)
    if (std::any_of(words.begin(), words.end(),
                    [&](const std::string& word) {
                      return word.size() >= kLeastIdLetters && id.starts_with(word);
                    }) &&
        std::find(found.begin(), found.end(), id) == found.end())
      found.push_back(id);
  return found;
}

bool is_number(const std::string& word) {
  return !word.empty() && word.size() <= 4 &&
         std::all_of(word.begin(), word.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "family 3": the third that came.
void read_family_number(const std::vector<std::string>& words, const Vocabulary& vocabulary,
                        Question& question) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "family" || !is_number(words[i + 1])) continue;
    const auto number = static_cast<std::size_t>(std::stoi(words[i + 1]));
    const std::size_t count = vocabulary.families.size();
    if (number < 1 || number > count)
      question.advice = fmt::format("There is no family {}: this run has {}.", number, count);
    else if (std::find(question.families.begin(), question.families.end(),
                       vocabulary.families[number - 1]) == question.families.end())
      question.families.push_back(vocabulary.families[number - 1]);
  }
}

std::string suggest(const std::vector<std::string>& words, const Vocabulary& vocabulary) {
  std::vector<std::string> names = vocabulary.families;
  names.insert(names.end(), vocabulary.cases.begin(), vocabulary.cases.end());
  for (const std::string& word : words)
    if (word.size() >= 3)
      if (const auto close = closest_word(word, names)) return "Did you mean " + *close + "?";
  return {};
}

void add_list(std::string& text, const char* kind, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kind, name);
}

}  // namespace

Question read_question(const std::string& text, const Vocabulary& vocabulary) {
  const std::vector<std::string> words = words_of(text);
  Question question;
  question.families = named(words, vocabulary.families);
  read_family_number(words, vocabulary, question);
  question.cases = named(words, vocabulary.cases);
  question.candidates = named_ids(words, vocabulary.candidates);
  question.evaluations = named(words, vocabulary.evaluations);
  std::vector<std::string> verdicts;
  for (const Verdict verdict : all_verdicts()) verdicts.emplace_back(to_string(verdict));
  question.verdicts = named(words, verdicts);
  // An unknown number is a question that has no answer, whatever else is in it.
  if (!question.advice.empty()) return question;
  for (const std::string& word : words)
    if (const auto topic = topic_words().find(word); topic != topic_words().end())
      question.about.insert(topic->second);
  if (describe(question).empty()) question.advice = suggest(words, vocabulary);
  return question;
}

std::string describe(const Question& question) {
  std::string text;
  add_list(text, "family", question.families);
  add_list(text, "case", question.cases);
  add_list(text, "candidate", question.candidates);
  add_list(text, "evaluation", question.evaluations);
  add_list(text, "verdict", question.verdicts);
  if (!text.empty()) return text;
  for (const Topic topic : question.about)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", word_of(topic));
  return text;
}

}  // namespace kbeam
