#include "propose/model_endpoint.h"

#include <algorithm>

namespace kbeam {

std::vector<ModelReply> RecordedEndpoint::take(const Moment& moment) {
  static const RecordedReply kUnknown{
      .reply = {.failure = ReplyOutcome::lost,
                .detail = "the record has no reply to this request"}};
  const auto recorded = [&](const std::string& id) -> const RecordedReply& {
    const auto found = replies_.find(id);
    return found == replies_.end() ? kUnknown : found->second;
  };
  std::stable_sort(waiting_.begin(), waiting_.end(), [&](const auto& a, const auto& b) {
    return recorded(a).order < recorded(b).order;
  });
  std::vector<ModelReply> replies;
  std::vector<std::string> not_yet;
  for (const std::string& id : waiting_) {
    const bool due = recorded(id).at_evaluation <= moment.evaluations;
    // A loop that has nothing else to do gets the next one at once.
    const bool hurry = moment.is_idle && replies.empty() && id == waiting_.front();
    if (!due && !hurry) {
      not_yet.push_back(id);
      continue;
    }
    replies.push_back(recorded(id).reply);
    replies.back().request_id = id;
  }
  waiting_ = std::move(not_yet);
  return replies;
}

std::optional<std::string> RecordedEndpoint::fixed_model(const std::string& request_id) const {
  const auto found = replies_.find(request_id);
  if (found == replies_.end()) return std::nullopt;
  return found->second.model;
}

}  // namespace kbeam
