#include "measure/pair_trace.h"

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/foreign_json.h"

namespace kbeam {
namespace {

constexpr std::string_view kFormat = "kbeam pair trace 1";

// Seven bits a byte, least significant first; the highest bit says that more follow.
void put_number(std::string& bytes, std::uint64_t number) {
  for (; number >= 128; number >>= 7)
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(number | 128)));
  bytes.push_back(static_cast<char>(number));
}

std::optional<std::uint64_t> take_number(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= static_cast<std::uint64_t>(byte & 127) << shift;
    if (byte < 128) return number;
  }
  return std::nullopt;
}

std::uint64_t whole(double time_ns) {
  return static_cast<std::uint64_t>(std::llround(time_ns));
}

// How many pairs each process in turn has.
std::vector<int> process_sizes(const std::vector<int>& process) {
  std::vector<int> sizes;
  for (std::size_t i = 0; i < process.size(); ++i) {
    if (i == 0 || process[i] != process[i - 1]) sizes.push_back(0);
    ++sizes.back();
  }
  return sizes;
}

}  // namespace

std::string encode_trace(const PairTrace& trace) {
  const PairedSamples& samples = trace.samples;
  const Json header{{"format", kFormat},        {"condition", trace.condition},
                    {"problem", trace.problem}, {"case", trace.case_name},
                    {"facts", trace.facts},     {"pairs", samples.candidate_ns.size()}};
  std::string bytes = header.dump() + "\n";
  const std::vector<int> sizes = process_sizes(samples.process);
  put_number(bytes, sizes.size());
  for (const int size : sizes) put_number(bytes, static_cast<std::uint64_t>(size));
  for (std::size_t i = 0; i < samples.candidate_ns.size(); ++i) {
    put_number(bytes, whole(samples.candidate_ns[i]) << 1 | samples.candidate_first[i]);
    put_number(bytes, whole(samples.reference_ns[i]));
  }
  return bytes;
}

Result<PairTrace> decode_trace(std::string_view bytes, const std::string& name) {
  const auto damaged = [&name](const std::string& what) {
    return Error{ErrorCode::corrupt, "read the trace " + name, what,
                 "record it again with kbeam trace"};
  };
  const std::size_t end = bytes.find('\n');
  const Json header = parse_foreign_json(bytes.substr(0, end));
  if (end == std::string_view::npos || !header.is_object() || header.value("format", "") != kFormat)
    return damaged("it does not begin as a trace does");
  PairTrace trace;
  std::size_t pairs = 0;
  try {
    header.at("condition").get_to(trace.condition);
    header.at("problem").get_to(trace.problem);
    header.at("case").get_to(trace.case_name);
    header.at("facts").get_to(trace.facts);
    header.at("pairs").get_to(pairs);
  } catch (const Json::exception& trouble) {
    return damaged(trouble.what());
  }
  bytes.remove_prefix(end + 1);
  const std::optional<std::uint64_t> processes = take_number(bytes);
  if (!processes || *processes > pairs) return damaged("it breaks off in its list of processes");
  std::vector<int>& process = trace.samples.process;
  for (std::uint64_t i = 0; i < *processes; ++i) {
    const std::optional<std::uint64_t> size = take_number(bytes);
    if (!size || *size > pairs - process.size())
      return damaged("it breaks off in its list of processes");
    process.insert(process.end(), *size, static_cast<int>(i));
  }
  for (std::size_t i = 0; i < process.size(); ++i) {
    const std::optional<std::uint64_t> candidate = take_number(bytes);
    const std::optional<std::uint64_t> reference = take_number(bytes);
    if (!candidate || !reference)
      return damaged("it breaks off after " + std::to_string(i) + " pairs");
    trace.samples.candidate_ns.push_back(static_cast<double>(*candidate >> 1));
    trace.samples.candidate_first.push_back(*candidate & 1);
    trace.samples.reference_ns.push_back(static_cast<double>(*reference));
  }
  if (process.size() != pairs || !bytes.empty())
    return damaged("its pairs are not as many as it says");
  return trace;
}

}  // namespace kbeam
