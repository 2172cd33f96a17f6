// Where prompts go and replies come from: a server, or the record of an earlier run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "propose/model_api.h"
#include "propose/proposer.h"

namespace kbeam {

struct ModelRequest {
  std::string id;
  std::string model;
  Prompt prompt;
  int most_tokens_out = 0;
};

struct ModelReply {
  std::string request_id;
  std::optional<ReplyOutcome> failure;  // nothing: `text` is a whole reply
  bool is_final = false;                // a failure that no other request will cure: a bad key
  std::string detail;
  std::string text;  // keys redacted; of a failure what had come
  Usage usage;       // without money
  double latency_s = 0;
  int attempts = 1;
  std::vector<std::string> troubles;
};

class ModelEndpoint {
 public:
  virtual ~ModelEndpoint() = default;  // cancels what is under way
  virtual void send(ModelRequest request) = 0;
  virtual std::vector<ModelReply> take(const Moment& moment) = 0;
  // The model that answers this request whatever a bandit says: a record has only the one.
  virtual std::optional<std::string> fixed_model(const std::string& /*request_id*/) const {
    return std::nullopt;
  }
};

// Answers with what another run recorded, each reply no sooner than it came there: the same sources
// reach the loop after the same number of evaluations. Needs no network.
struct RecordedReply {
  std::string model;
  int at_evaluation = 0;
  int order = 0;  // in which the replies came
  ModelReply reply;
};

class RecordedEndpoint final : public ModelEndpoint {
 public:
  explicit RecordedEndpoint(std::map<std::string, RecordedReply> replies)
      : replies_(std::move(replies)) {}
  void send(ModelRequest request) override { waiting_.push_back(std::move(request.id)); }
  std::vector<ModelReply> take(const Moment& moment) override;
  std::optional<std::string> fixed_model(const std::string& request_id) const override;

 private:
  std::map<std::string, RecordedReply> replies_;  // by request
  std::vector<std::string> waiting_;
};

}  // namespace kbeam
