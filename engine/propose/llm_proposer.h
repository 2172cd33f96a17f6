// Proposer `llm`: ideas in words first, then each idea as code in several variants, and bounded
// rounds of mending what did not compile or was not right. Decides whom to ask what; the endpoint
// does the talking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "propose/llm_options.h"
#include "propose/model_endpoint.h"
#include "propose/proposer.h"

namespace kbeam {

struct LlmSetup {
  LlmOptions options;
  std::string name;  // "llm:http://localhost:8080/v1"
  const Clock* clock = nullptr;
  bool rests = true;  // after failures; a record has waited already
};
std::unique_ptr<Proposer> make_llm_proposer(LlmSetup setup,
                                            std::unique_ptr<ModelEndpoint> endpoint);

// What one round will take: ideas, all their sources, half of them mended once. Of several models
// the dearest.
struct RoundEstimate {
  std::int64_t tokens = 0;
  double money = 0;
};
RoundEstimate estimate_round(const LlmOptions& options, std::size_t statement_bytes);

}  // namespace kbeam
