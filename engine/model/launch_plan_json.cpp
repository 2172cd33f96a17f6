// Launch plans and device descriptions as JSON and back. The reader is made for text from a process
// that ran foreign code: every form and range is checked, and the first mistake is named by its
// path.
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/launch_plan.h"

namespace kbeam {
namespace {

template <typename T, typename Noun>
concept Is = std::same_as<std::remove_const_t<T>, Noun>;

constexpr std::array<std::string_view, 6> kNodeKinds{"kernel", "fill",        "copy",
                                                     "gemm",   "vendor_call", "conditional"};
constexpr std::array<std::string_view, 7> kBufferKinds{
    "input", "output", "scratch", "zeroed_scratch", "table", "control", "figures"};
constexpr std::array<std::string_view, 4> kArgumentKinds{"value", "address", "tensor_map",
                                                         "condition"};

const auto& words_of(NodeKind) {
  return kNodeKinds;
}
const auto& words_of(BufferKind) {
  return kBufferKinds;
}
const auto& words_of(kbeam_argument_kind) {
  return kArgumentKinds;
}

// The fields of every noun, listed once for the writer and the reader. The kind comes first: the
// fields that follow depend on it.
void walk(auto& visit, Is<BufferPlace> auto& place) {
  visit("buffer", place.buffer);
  visit.unless("offset_bytes", place.offset_bytes, std::int64_t{0});
}

void walk(auto& visit, Is<PlanBuffer> auto& buffer) {
  visit("kind", buffer.kind);
  visit("name", buffer.name);
  visit("bytes", buffer.bytes);
  if (buffer.kind == BufferKind::table) visit.hex("content", buffer.content);
}

void walk(auto& visit, Is<PlanArgument> auto& argument) {
  visit("kind", argument.kind);
  visit("size", argument.size);
  if (argument.kind == KBEAM_VALUE) visit.hex("value", argument.value);
  if (argument.kind == KBEAM_ADDRESS) visit("address", argument.address);
  if (argument.kind == KBEAM_TENSOR_MAP || argument.kind == KBEAM_CONDITION)
    visit("id", argument.id);
}

void walk(auto& visit, Is<PlanTensorMap> auto& map) {
  visit("base", map.base);
  visit("data_type", map.data_type);
  visit("rank", map.rank);
  visit("dim", map.dim);
  visit("stride_bytes", map.stride_bytes);
  visit("box", map.box);
  visit("element_stride", map.element_stride);
  visit("interleave", map.interleave);
  visit("swizzle", map.swizzle);
  visit("l2_promotion", map.l2_promotion);
  visit("fill", map.fill);
}

void walk(auto& visit, Is<PlanFigure> auto& figure) {
  visit("name", figure.name);
  visit("unit", figure.unit);
  visit("limit", figure.limit);
  visit("radix_names", figure.radix_names);
  visit("radices", figure.radices);
  visit.unless("not_finite", figure.not_finite, false);
}

void walk(auto& visit, Is<PlanNode::GemmCall> auto& gemm) {
  visit.unless("transpose_a", gemm.transpose_a, false);
  visit.unless("transpose_b", gemm.transpose_b, false);
  visit("m", gemm.m);
  visit("n", gemm.n);
  visit("k", gemm.k);
  visit("batch", gemm.batch);
  visit("type_a_b", gemm.type_a_b);
  visit("type_c", gemm.type_c);
  visit("compute", gemm.compute);
  visit("alpha", gemm.alpha);
  visit("beta", gemm.beta);
  visit("a", gemm.a);
  visit("b", gemm.b);
  visit("c", gemm.c);
  visit("lda", gemm.lda);
  visit("ldb", gemm.ldb);
  visit("ldc", gemm.ldc);
  visit("stride_a", gemm.stride_a);
  visit("stride_b", gemm.stride_b);
  visit("stride_c", gemm.stride_c);
}

void walk_kernel(auto& visit, Is<PlanNode> auto& node) {
  using Extent = std::array<std::uint32_t, 3>;
  visit("kernel", node.kernel);
  visit.unless("kernel_name", node.kernel_name, std::string());
  visit("grid", node.grid);
  visit("block", node.block);
  visit.unless("cluster", node.cluster, Extent{0, 0, 0});
  visit.unless("dynamic_shared_bytes", node.dynamic_shared_bytes, std::uint32_t{0});
  visit.unless("cooperative", node.cooperative, false);
  visit.unless("overlap_previous", node.overlap_previous, false);
  visit.unless("shared_carveout_percent", node.shared_carveout_percent, -1);
  visit("arguments", node.arguments);
}

void walk(auto& visit, Is<PlanNode> auto& node) {
  visit("kind", node.kind);
  visit.unless("body", node.body, -1);
  visit("after", node.after);
  switch (node.kind) {
    case NodeKind::kernel:
      return walk_kernel(visit, node);
    case NodeKind::copy:
      visit("from", node.from);
      [[fallthrough]];
    case NodeKind::fill:
      visit("to", node.to);
      visit("bytes", node.bytes);
      return visit.unless("byte_value", node.byte_value, std::uint8_t{0});
    case NodeKind::gemm:
      return visit("gemm", node.gemm);
    case NodeKind::vendor_call:
      visit("routine", node.routine);
      visit("pointers", node.pointers);
      return visit("numbers", node.numbers);
    case NodeKind::conditional:
      visit("condition", node.condition);
      return visit.unless("has_otherwise", node.has_otherwise, false);
  }
}

void walk(auto& visit, Is<LaunchPlan> auto& plan) {
  visit.unless("image_hash", plan.image_hash, std::string());
  visit.unless("device_hash", plan.device_hash, std::string());
  visit("buffers", plan.buffers);
  visit("tensor_maps", plan.tensor_maps);
  visit("conditions", plan.conditions);
  visit("figures", plan.figures);
  visit("nodes", plan.nodes);
  visit("notes", plan.notes);
}

void walk(auto& visit, Is<kbeam_device> auto& device) {
  visit("multiprocessors", device.multiprocessors);
  visit("architecture", device.architecture);
  visit("shared_bytes_per_block", device.shared_bytes_per_block);
  visit("shared_bytes_per_multiprocessor", device.shared_bytes_per_multiprocessor);
  visit("registers_per_multiprocessor", device.registers_per_multiprocessor);
  visit("threads_per_multiprocessor", device.threads_per_multiprocessor);
  visit("l2_bytes", device.l2_bytes);
  visit("resident_clusters_one_block", device.resident_clusters[0]);
  visit("resident_clusters_two_blocks", device.resident_clusters[1]);
}

using TextMap = std::map<std::string, std::string>;
template <typename T>
concept MapOfText = std::is_same_v<std::remove_const_t<T>, TextMap>;
template <typename T>
concept Sequence = requires(T& value) {
  std::begin(value);
  std::end(value);
}
&&!std::is_same_v<std::remove_const_t<T>, std::string> && !MapOfText<T>;
template <typename T>
concept Growing = Sequence<T> && requires(T& value) {
  value.emplace_back();
};

std::string to_hexadecimal(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return -1;
}

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    json_[name] = form(value);
  }
  template <typename T>
  void unless(const char* name, const T& value, const T& usual) {
    if (!(value == usual)) json_[name] = form(value);
  }
  void hex(const char* name, const std::string& bytes) { json_[name] = to_hexadecimal(bytes); }

  template <typename T>
  static Json form(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return words_of(value)[static_cast<std::size_t>(value)];
    } else if constexpr (Sequence<const T>) {
      Json array = Json::array();
      for (const auto& element : value) array.push_back(form(element));
      return array;
    } else if constexpr (MapOfText<T>) {
      Json object = Json::object();
      for (const auto& [key, text] : value) object[key] = text;
      return object;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else {
      Writer writer;
      walk(writer, value);
      return std::move(writer.json_);
    }
  }

 private:
  Json json_ = Json::object();
};

class Reader {
 public:
  const std::optional<std::string>& complaint() const { return complaint_; }

  template <typename T>
  void operator()(const char* name, T& target) {
    const auto found = object_->find(name);
    if (found == object_->end()) return complain(path_ + name, "is missing");
    read(*found, path_ + name, target);
  }
  template <typename T>
  void unless(const char* name, T& target, const T& usual) {
    const auto found = object_->find(name);
    if (found == object_->end())
      target = usual;
    else
      read(*found, path_ + name, target);
  }
  void hex(const char* name, std::string& bytes) {
    std::string text;
    (*this)(name, text);
    bytes.clear();
    bytes.reserve(text.size() / 2);
    bool good = text.size() % 2 == 0;
    for (std::size_t i = 0; i + 1 < text.size() && good; i += 2) {
      const int high = digit_of(text[i]), low = digit_of(text[i + 1]);
      good = high >= 0 && low >= 0;
      bytes += static_cast<char>(high * 16 + low);
    }
    if (!good) complain(path_ + name, "is not in hexadecimal");
  }

  template <typename T>
  void read(const Json& json, const std::string& path, T& target) {
    if (complaint_) return;
    if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) return complain(path, "is not a string");
      target = json.get<std::string>();
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) return complain(path, "is not true or false");
      target = json.get<bool>();
    } else if constexpr (std::is_same_v<T, double>) {
      if (!json.is_number()) return complain(path, "is not a number");
      target = json.get<double>();
    } else if constexpr (std::is_integral_v<T>) {
      read_integer(json, path, target);
    } else if constexpr (std::is_enum_v<T>) {
      read_word(json, path, target);
    } else if constexpr (Sequence<T>) {
      read_sequence(json, path, target);
    } else if constexpr (MapOfText<T>) {
      if (!json.is_object()) return complain(path, "is not an object");
      target.clear();
      for (const auto& [key, value] : json.items()) read(value, path + "." + key, target[key]);
    } else {
      read_object(json, path, target);
    }
  }

 private:
  void complain(const std::string& path, const char* what) {
    if (!complaint_) complaint_ = (path.empty() ? "the whole" : path) + " " + what;
  }

  template <typename T>
  void read_integer(const Json& json, const std::string& path, T& target) {
    if (!json.is_number_integer()) return complain(path, "is not a whole number");
    const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                                : std::in_range<T>(json.get<std::int64_t>());
    if (!fits) return complain(path, "is out of range");
    target = json.get<T>();
  }

  template <typename T>
  void read_word(const Json& json, const std::string& path, T& target) {
    if (json.is_string())
      for (std::size_t i = 0; i < words_of(target).size(); ++i)
        if (json.get_ref<const std::string&>() == words_of(target)[i]) {
          target = static_cast<T>(i);
          return;
        }
    complain(path, "is none of the words that it may be");
  }

  template <typename T>
  void read_sequence(const Json& json, const std::string& path, T& target) {
    if (!json.is_array()) return complain(path, "is not an array");
    if constexpr (Growing<T>) {
      target.clear();
      target.resize(json.size());
    } else if (json.size() != std::size(target)) {
      return complain(path, "has another length than it must");
    }
    std::size_t index = 0;
    for (auto& element : target) {
      read(json[index], path + "[" + std::to_string(index) + "]", element);
      if (complaint_) return;
      ++index;
    }
  }

  template <typename T>
  void read_object(const Json& json, const std::string& path, T& target) {
    if (!json.is_object()) return complain(path, "is not an object");
    const Json* const outer = std::exchange(object_, &json);
    std::string outer_path = std::exchange(path_, path.empty() ? "" : path + ".");
    walk(*this, target);
    object_ = outer;
    path_ = std::move(outer_path);
  }

  const Json* object_ = nullptr;
  std::string path_;
  std::optional<std::string> complaint_;
};

template <typename T>
Result<T> read_noun(const Json& json, const char* noun, const char* advice) {
  T target{};
  Reader reader;
  reader.read(json, "", target);
  if (reader.complaint())
    return Error{ErrorCode::corrupt, std::string("read ") + noun + " from JSON",
                 *reader.complaint(), advice};
  return target;
}

}  // namespace

std::string_view to_string(NodeKind kind) {
  return kNodeKinds[static_cast<std::size_t>(kind)];
}
std::string_view to_string(BufferKind kind) {
  return kBufferKinds[static_cast<std::size_t>(kind)];
}

Json to_json(const LaunchPlan& plan) {
  return Writer::form(plan);
}
Json to_json(const kbeam_device& device) {
  return Writer::form(device);
}

Result<LaunchPlan> launch_plan_from_json(const Json& json) {
  return read_noun<LaunchPlan>(json, "a launch plan",
                               "the plan was damaged or written by another version of kbeam");
}
Result<kbeam_device> device_from_json(const Json& json) {
  return read_noun<kbeam_device>(json, "a device description",
                                 "compare it with contract/devices/h200.json");
}

}  // namespace kbeam
