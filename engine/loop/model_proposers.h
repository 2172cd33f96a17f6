// Language models as proposers, from what a run recorded of them: asked over the network, or
// answered by the record of another run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "propose/proposer.h"

namespace kbeam {

// An entry: {"kind": "llm", "name": "llm:URL", "llm": {...}}; of a replay "archive" too.
bool asks_model(const Json& entry);
// `seed` is that of the jitter between retries.
Result<std::unique_ptr<Proposer>> make_model_proposer(const Json& entry, NewsBell& bell,
                                                      std::uint64_t seed);

// The entry of replay:RUN: the models of that run, answered by its archive.
Result<Json> replay_entry(const std::filesystem::path& run_folder);

}  // namespace kbeam
