// Language models as proposers, from what a run recorded of them: asked over the network, or
// answered by the record of another run; agents by such a record alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "archive/archive.h"
#include "base/json.h"
#include "base/result.h"
#include "propose/llm_options.h"
#include "propose/model_endpoint.h"
#include "propose/proposer.h"

namespace kbeam {

// An entry: {"kind": "llm", "name": "llm:URL", "llm": {...}}; of a replay "archive" too.
bool asks_model(const Json& entry);
// `seed` is that of the jitter between retries.
Result<std::unique_ptr<Proposer>> make_model_proposer(const Json& entry, NewsBell& bell,
                                                      std::uint64_t seed);

// The server that the options name, with its key and its authorities read.
Result<std::unique_ptr<ModelEndpoint>> make_model_endpoint(const LlmOptions& options,
                                                           NewsBell& bell, std::uint64_t seed);

// The first language model that a run's proposers ask over the network; nothing: none.
Result<std::optional<LlmOptions>> model_of_run(const Archive& archive);

// The entries of replay:RUN: the models and agents of that run, answered by its archive.
Result<Json> replay_entries(const std::filesystem::path& run_folder);

// An agent's entry among them: {"kind": "replay_agent", "name": "agent:NAME", "archive": FILE}.
bool replays_agent(const Json& entry);
Result<std::unique_ptr<Proposer>> make_replayed_agent(const Json& entry);

}  // namespace kbeam
