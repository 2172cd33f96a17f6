// What `--proposer llm:URL` takes: models with prices, pace, sizes, limits; as typed, as recorded
// in a run, and back. Holds where a key is, never the key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "propose/http_post.h"
#include "propose/model_api.h"
#include "propose/pacing.h"

namespace kbeam {

struct ModelPrice {
  std::string model;
  double in = 0;  // for a million tokens
  double out = 0;
  double money(std::int64_t tokens_in, std::int64_t tokens_out) const {
    return (in * static_cast<double>(tokens_in) + out * static_cast<double>(tokens_out)) * 1e-6;
  }
};

struct LlmOptions {
  std::string url;  // as typed
  ModelApi api = ModelApi::openai;
  std::vector<ModelPrice> models;
  std::string key_source;   // env:NAME, file:PATH; empty: no key
  std::string authorities;  // a PEM file; empty: those that this machine trusts
  int ideas = 3;            // of one ask
  int variants = 2;         // of one idea
  int repairs = 2;          // of one source
  int connections = 2;
  int requests_a_minute = 60;
  int reply_tokens = 16'000;
  int patience = 8;  // asks in a row that bring no new idea: then it is done
  HttpLimits limits;
  BackOffRule back_off;
};

struct LlmArguments {  // of the command line
  std::string url;
  std::string api;                    // empty: by the address
  std::vector<std::string> models;    // NAME or NAME=IN/OUT
  std::string key;                    // env:NAME, file:PATH
  std::string authorities;            // a PEM file
  std::vector<std::string> settings;  // NAME=VALUE
};
// Every mistake at once.
Result<LlmOptions> parse_llm_options(const LlmArguments& arguments);
// The options of the command line that say the same, beside llm:URL: name and value.
std::vector<std::pair<std::string, std::string>> command_words(const LlmOptions& options);
Json to_json(const LlmOptions& options);
Result<LlmOptions> llm_options_from_json(const Json& json);

}  // namespace kbeam
