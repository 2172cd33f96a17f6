#include "archive/stored_forms.h"

#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

constexpr std::string_view kSamplesMark = "kbpairs1";

void put(std::string& bytes, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

// Takes numbers off the front; `whole` turns false for good when there are not enough bytes.
struct Taker {
  std::string_view rest;
  bool whole = true;

  std::uint64_t take(int width) {
    if (rest.size() < static_cast<std::size_t>(width)) whole = false;
    if (!whole) return 0;
    std::uint64_t value = 0;
    for (int i = 0; i < width; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(rest[static_cast<std::size_t>(i)])}
               << (8 * i);
    rest.remove_prefix(static_cast<std::size_t>(width));
    return value;
  }
  // A length that the bytes left cannot hold is damage, and must not allocate.
  std::size_t length(int width) {
    const std::uint64_t count = take(8);
    if (count > rest.size() / static_cast<std::size_t>(width)) whole = false;
    return whole ? static_cast<std::size_t>(count) : 0;
  }
};

// Moves the text of `field` out of `object` and leaves its hash as `field`_hash in the same place.
Blob move_out(Json& object, const std::string& field, std::string bytes) {
  Blob blob = make_blob(std::move(bytes));
  Json lean = Json::object();
  for (auto& [name, value] : object.items()) {
    if (name == field)
      lean[field + "_hash"] = blob.hash;
    else
      lean[name] = std::move(value);
  }
  object = std::move(lean);
  return blob;
}

Result<std::string> fetch_named(const Json& object, const std::string& name,
                                const FetchBlob& fetch) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string())
    return Error{ErrorCode::corrupt, "read a record of the archive",
                 "field '" + name + "' is missing",
                 "the record was damaged or written by another version of kbeam"};
  return fetch(found->get<std::string>());
}

// The field of an event of this kind that is stored by content; empty: none.
std::string text_field(const std::string& kind) {
  if (kind == "model_request") return "prompt";
  if (kind == "model_reply") return "text";
  if (kind == "delivery") return "source";
  return {};
}

}  // namespace

Blob make_blob(std::string bytes) {
  std::string hash = sha256_hex(bytes);
  return {std::move(hash), std::move(bytes)};
}

Stored store_candidate(const Candidate& candidate) {
  Stored stored{to_json(candidate), {}};
  for (std::size_t i = 0; i < candidate.rows.size(); ++i)
    stored.blobs.push_back(move_out(stored.body["rows"][i], "source", candidate.rows[i].source));
  return stored;
}

Stored store_artifact(const std::string& candidate_id, const Artifact& artifact) {
  Stored stored{Json{{"candidate_id", candidate_id}}, {}};
  Json form = to_json(artifact);
  stored.blobs.push_back(move_out(form, "log", artifact.log));
  stored.body.update(form);
  return stored;
}

Stored store_evaluation(const Evaluation& evaluation) {
  Stored stored{to_json(evaluation), {}};
  for (std::size_t i = 0; i < evaluation.measurements.size(); ++i)
    stored.blobs.push_back(move_out(stored.body["measurements"][i], "samples",
                                    encode_samples(evaluation.measurements[i].samples)));
  return stored;
}

Stored store_event(const std::string& kind, Json body) {
  Stored stored{std::move(body), {}};
  const std::string field = text_field(kind);
  if (field.empty() || !stored.body.contains(field)) return stored;
  std::string text = stored.body[field].get<std::string>();
  stored.blobs.push_back(move_out(stored.body, field, std::move(text)));
  return stored;
}

Result<Candidate> restore_candidate(Json body, const FetchBlob& fetch) {
  if (body.contains("rows") && body["rows"].is_array())
    for (Json& row : body["rows"]) {
      ASSIGN_OR_RETURN(std::string source, fetch_named(row, "source_hash", fetch));
      row["source"] = std::move(source);
    }
  return candidate_from_json(body);
}

Result<Evaluation> restore_evaluation(Json body, const FetchBlob& fetch) {
  std::vector<PairedSamples> samples;
  if (body.contains("measurements") && body["measurements"].is_array())
    for (Json& measurement : body["measurements"]) {
      ASSIGN_OR_RETURN(const std::string bytes, fetch_named(measurement, "samples_hash", fetch));
      ASSIGN_OR_RETURN(samples.emplace_back(), decode_samples(bytes));
      measurement["samples"] = to_json(PairedSamples{});
    }
  ASSIGN_OR_RETURN(Evaluation evaluation, evaluation_from_json(body));
  for (std::size_t i = 0; i < evaluation.measurements.size(); ++i)
    evaluation.measurements[i].samples = std::move(samples[i]);
  return evaluation;
}

std::vector<std::string> source_hashes(const Json& candidate_body) {
  std::vector<std::string> hashes;
  for (const Json& row : candidate_body.value("rows", Json::array()))
    hashes.push_back(row.value("source_hash", std::string()));
  return hashes;
}

std::vector<std::string> named_blobs(const std::string& kind, const Json& body) {
  if (kind == "candidate") return source_hashes(body);
  if (kind == "artifact") return {body.value("log_hash", std::string())};
  if (const std::string field = text_field(kind); !field.empty())
    return {body.value(field + "_hash", std::string())};
  std::vector<std::string> hashes;
  if (kind == "evaluation")
    for (const Json& measurement : body.value("measurements", Json::array()))
      hashes.push_back(measurement.value("samples_hash", std::string()));
  return hashes;
}

std::string encode_samples(const PairedSamples& samples) {
  std::string bytes(kSamplesMark);
  const auto put_reals = [&](const std::vector<double>& values) {
    put(bytes, values.size(), 8);
    for (const double value : values) put(bytes, std::bit_cast<std::uint64_t>(value), 8);
  };
  put_reals(samples.candidate_ns);
  put_reals(samples.reference_ns);
  put(bytes, samples.candidate_first.size(), 8);
  for (const std::uint8_t flag : samples.candidate_first) put(bytes, flag, 1);
  put(bytes, samples.process.size(), 8);
  for (const int process : samples.process) put(bytes, static_cast<std::uint32_t>(process), 4);
  return bytes;
}

Result<PairedSamples> decode_samples(std::string_view bytes) {
  Taker taker{bytes};
  PairedSamples samples;
  if (bytes.starts_with(kSamplesMark))
    taker.rest.remove_prefix(kSamplesMark.size());
  else
    taker.whole = false;
  const auto take_reals = [&](std::vector<double>& values) {
    values.resize(taker.length(8));
    for (double& value : values) value = std::bit_cast<double>(taker.take(8));
  };
  take_reals(samples.candidate_ns);
  take_reals(samples.reference_ns);
  samples.candidate_first.resize(taker.length(1));
  for (std::uint8_t& flag : samples.candidate_first)
    flag = static_cast<std::uint8_t>(taker.take(1));
  samples.process.resize(taker.length(4));
  for (int& process : samples.process) process = static_cast<std::int32_t>(taker.take(4));
  if (!taker.whole || !taker.rest.empty())
    return Error{ErrorCode::corrupt, "read raw samples",
                 "the bytes do not have the form of samples",
                 "the archive was damaged or written by another version of kbeam"};
  return samples;
}

}  // namespace kbeam
