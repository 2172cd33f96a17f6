#include "propose/reply_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/foreign_json.h"

namespace kbeam {
namespace {

constexpr std::size_t kMostJsonBytes = 256 * 1024;
constexpr int kDeepestJson = 16;
constexpr std::size_t kMostName = 40;
constexpr std::size_t kMostSentence = 1200;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return text;
}

struct Blocks {
  std::vector<std::string> texts;
  bool unclosed = false;
};

// Fenced code blocks. A fence is closed by one of at least its length.
Blocks find_blocks(std::string_view reply) {
  Blocks blocks;
  std::size_t fence = 0;  // backticks of the open one
  std::string block;
  while (!reply.empty()) {
    const std::size_t end = reply.find('\n');
    std::string_view line = reply.substr(0, end);
    reply.remove_prefix(end == std::string_view::npos ? reply.size() : end + 1);
    const std::string_view plain = trimmed(line);
    const std::size_t ticks = std::min(plain.find_first_not_of('`'), plain.size());
    if (fence == 0) {
      if (ticks >= 3) fence = ticks;
    } else if (ticks >= fence && ticks == plain.size()) {
      blocks.texts.push_back(std::move(block));
      block.clear();
      fence = 0;
    } else {
      block += line;
      block += '\n';
    }
  }
  blocks.unclosed = fence != 0;
  return blocks;
}

// Refusals are worded in few ways; whoever refuses in others has just sent no code.
bool sounds_like_refusal(std::string_view reply) {
  std::string start(trimmed(reply).substr(0, 200));
  std::transform(start.begin(), start.end(), start.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static constexpr std::array<std::string_view, 8> kSigns{
      "i can't help",   "i cannot help",   "i can't assist", "i cannot assist",
      "i'm sorry, but", "i am sorry, but", "i'm unable to",  "i won't be able to"};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](std::string_view sign) { return start.find(sign) != std::string::npos; });
}

// The balanced object or array that begins at `start`, by brackets outside of strings. Nothing when
// it does not end or goes too deep.
std::optional<std::string_view> balanced_from(std::string_view text, std::size_t start) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = start; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepestJson) return std::nullopt;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return text.substr(start, i - start + 1);
    }
  }
  return std::nullopt;
}

// The list of ideas in `text`; null: there is none. Brackets in the words before it are passed
// over.
Json parse_list(std::string_view text) {
  constexpr int kMostTries = 50;
  std::size_t at = text.find_first_of("{[");
  for (int tries = 0; at != std::string_view::npos && tries < kMostTries; ++tries) {
    if (const auto json = balanced_from(text, at)) {
      Json parsed = parse_foreign_json(*json);
      if (parsed.is_object() && parsed.contains("ideas")) parsed = Json(parsed["ideas"]);
      if (parsed.is_object() && parsed.contains("hypothesis")) parsed = Json::array({parsed});
      if (parsed.is_array()) return parsed;
    }
    at = text.find_first_of("{[", at + 1);
  }
  return Json();
}

Json parse_ideas(std::string_view reply) {
  for (const std::string& block : find_blocks(reply).texts)
    if (Json list = parse_list(block); !list.is_null()) return list;
  return parse_list(reply);
}

std::string sentence(const Json& idea, const char* name) {
  const auto found = idea.find(name);
  if (found == idea.end() || !found->is_string()) return {};
  std::string text;
  for (const char c : found->get<std::string>().substr(0, kMostSentence))
    text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  // A character of several bytes that the limit cut in two goes whole.
  std::size_t end = text.size();
  if (end == kMostSentence) {
    while (end > 0 && (static_cast<unsigned char>(text[end - 1]) & 0xC0) == 0x80) --end;
    if (end > 0 && static_cast<unsigned char>(text[end - 1]) >= 0xC0) --end;
  }
  return std::string(trimmed(text.substr(0, end)));
}

}  // namespace

std::string plain_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 && byte < 0x80)
      name += static_cast<char>(std::tolower(byte));
    else if (!name.empty() && name.back() != '_')
      name += '_';
    if (name.size() >= kMostName) break;
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name.empty() ? "unnamed" : name;
}

IdeasReply read_ideas(std::string_view reply, int most) {
  IdeasReply read;
  if (reply.size() > kMostJsonBytes) {
    read.detail = fmt::format("{} bytes where a few sentences were asked for", reply.size());
    return read;
  }
  const Json ideas = parse_ideas(reply);
  if (ideas.is_null()) {
    if (sounds_like_refusal(reply)) read.outcome = ReplyOutcome::refused;
    return read;
  }
  std::vector<std::string> ignored;
  for (const Json& idea : ideas) {
    if (!idea.is_object()) continue;
    for (const auto& [name, value] : idea.items())
      if (static constexpr std::array<std::string_view, 6> kKnown{
              "family", "category", "hypothesis", "expected_gain", "expected", "risk"};
          std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end() && ignored.size() < 5)
        ignored.push_back(plain_name(name));
    WordedIdea worded{.family = plain_name(sentence(idea, "family")),
                      .category = sentence(idea, "category").substr(0, kMostName),
                      .hypothesis = sentence(idea, "hypothesis"),
                      .expected = sentence(idea, "expected_gain"),
                      .risk = sentence(idea, "risk")};
    if (worded.expected.empty()) worded.expected = sentence(idea, "expected");
    if (worded.category.empty()) worded.category = "other";
    if (worded.hypothesis.empty() || static_cast<int>(read.ideas.size()) >= most) continue;
    if (worded.family == "unnamed") worded.family = plain_name(worded.hypothesis);
    read.ideas.push_back(std::move(worded));
  }
  for (const std::string& name : ignored)
    read.detail += (read.detail.empty() ? "left out: " : ", ") + name;
  read.outcome = !read.ideas.empty() ? ReplyOutcome::delivered
                 : ignored.empty()   ? ReplyOutcome::no_ideas
                                     : ReplyOutcome::overstepped;
  return read;
}

CodeReply read_code(std::string_view reply) {
  CodeReply read;
  Blocks blocks = find_blocks(reply);
  if (reply.find('\0') != std::string_view::npos) {
    read.outcome = ReplyOutcome::garbled;
    read.detail = "it holds a zero byte";
    return read;
  }
  std::vector<std::string> sources;
  for (std::string& text : blocks.texts)
    if (text.find("KBEAM_PLAN") != std::string::npos) sources.push_back(std::move(text));
  if (sources.size() > 1) {
    read.outcome = ReplyOutcome::several_files;
    read.detail =
        fmt::format("{} blocks with a KBEAM_PLAN; a candidate is one file", sources.size());
  } else if (sources.size() == 1 &&
             sources.front().find("kbeam/candidate.h") != std::string::npos) {
    read.outcome = ReplyOutcome::delivered;
    read.source = std::move(sources.front());
  } else if (sources.size() == 1) {
    read.outcome = ReplyOutcome::wrong_contract;
    read.detail = "it does not include <kbeam/candidate.h>";
  } else if (blocks.unclosed) {
    read.outcome = ReplyOutcome::truncated;
    read.detail = "its code block does not end";
  } else if (!blocks.texts.empty()) {
    read.outcome = ReplyOutcome::wrong_contract;
    read.detail = "no code block has a KBEAM_PLAN";
  } else if (sounds_like_refusal(reply)) {
    read.outcome = ReplyOutcome::refused;
  }
  return read;
}

}  // namespace kbeam
