#include "propose/proposer.h"

#include <array>
#include <chrono>
#include <utility>

namespace kbeam {
namespace {

constexpr std::array<std::pair<ReplyOutcome, std::string_view>, 18> kWords{{
    {ReplyOutcome::delivered, "delivered"},
    {ReplyOutcome::no_code_block, "no_code_block"},
    {ReplyOutcome::several_files, "several_files"},
    {ReplyOutcome::not_json, "not_json"},
    {ReplyOutcome::no_ideas, "no_ideas"},
    {ReplyOutcome::duplicate, "duplicate"},
    {ReplyOutcome::truncated, "truncated"},
    {ReplyOutcome::refused, "refused"},
    {ReplyOutcome::wrong_contract, "wrong_contract"},
    {ReplyOutcome::overstepped, "overstepped"},
    {ReplyOutcome::garbled, "garbled"},
    {ReplyOutcome::oversize, "oversize"},
    {ReplyOutcome::timed_out, "timed_out"},
    {ReplyOutcome::http_error, "http_error"},
    {ReplyOutcome::unreachable, "unreachable"},
    {ReplyOutcome::not_allowed, "not_allowed"},
    {ReplyOutcome::cancelled, "cancelled"},
    {ReplyOutcome::lost, "lost"},
}};

}  // namespace

std::string_view to_string(ReplyOutcome outcome) {
  for (const auto& [value, word] : kWords)
    if (value == outcome) return word;
  return "unknown";
}

std::optional<ReplyOutcome> parse_reply_outcome(std::string_view word) {
  for (const auto& [value, known] : kWords)
    if (known == word) return value;
  return std::nullopt;
}

void NewsBell::ring() {
  {
    const std::lock_guard guard(mutex_);
    pending_ = true;
  }
  rung_.notify_all();
}

void NewsBell::wait(double most_s) {
  std::unique_lock lock(mutex_);
  rung_.wait_for(lock, std::chrono::duration<double>(most_s), [this] { return pending_; });
  pending_ = false;
}

}  // namespace kbeam
