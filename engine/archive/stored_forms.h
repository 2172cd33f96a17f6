// How nouns lie in an archive: an event body that names large content by hash, and the content
// itself. Reading goes the other way, with a function that fetches content.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/candidate.h"
#include "model/evaluation.h"

namespace kbeam {

struct Blob {
  std::string hash;
  std::string bytes;
};
Blob make_blob(std::string bytes);

// One event to be: its body, and the content that the body names.
struct Stored {
  Json body;
  std::vector<Blob> blobs;
};

using FetchBlob = std::function<Result<std::string>(const std::string& hash)>;

// Sources, compiler logs and samples move out of the JSON form; "source" becomes "source_hash", and
// so on.
Stored store_candidate(const Candidate& candidate);
Stored store_artifact(const std::string& candidate_id, const Artifact& artifact);
Stored store_evaluation(const Evaluation& evaluation);
// Of any other kind: what was said to a model and what it said move out, the rest stays.
Stored store_event(const std::string& kind, Json body);

Result<Candidate> restore_candidate(Json body, const FetchBlob& fetch);
Result<Evaluation> restore_evaluation(Json body, const FetchBlob& fetch);
std::vector<std::string> source_hashes(const Json& candidate_body);

// The hashes of all content that an event of this kind names.
std::vector<std::string> named_blobs(const std::string& kind, const Json& body);

// Four arrays, each behind its length: little-endian doubles, doubles, bytes, 32-bit integers.
std::string encode_samples(const PairedSamples& samples);
Result<PairedSamples> decode_samples(std::string_view bytes);

}  // namespace kbeam
