#include "problem/problem_reader.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/expression.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using Kind = TomlNode::Kind;

constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

template <typename Value>
using Words = std::vector<std::pair<std::string, Value>>;

const Words<kbeam_role> kRoles = {{"input", KBEAM_INPUT}, {"output", KBEAM_OUTPUT}};
const Words<kbeam_element_type> kTypes = {
    {"f32", KBEAM_F32}, {"f64", KBEAM_F64}, {"i32", KBEAM_I32}, {"i64", KBEAM_I64}};
const Words<Pool> kPools = {
    {"public", Pool::public_pool}, {"private", Pool::private_pool}, {"sealed", Pool::sealed_pool}};

// The value of one word of a closed list. A missing optional key gives nothing and is no mistake.
template <typename Value>
std::optional<Value> read_word(TableReader& reader, std::string_view key, Need need,
                               const Words<Value>& words, MistakeList& mistakes) {
  const auto found = reader.text(key, need);
  if (!found) return std::nullopt;
  std::vector<std::string> known;
  for (const auto& [word, value] : words) {
    if (word == found->text) return value;
    known.push_back(word);
  }
  mistakes.add(found->position, "unknown " + std::string(key) + " '" + found->text + "'" +
                                    suggestion(found->text, known));
  return std::nullopt;
}

template <typename Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(one.name);
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::vector<std::string> words_of(const std::vector<LocatedText>& located) {
  std::vector<std::string> words;
  for (const LocatedText& one : located) words.push_back(one.text);
  return words;
}

// Trusted people write problem files; this keeps a slip from turning into a different compiler.
bool is_build_flag(const std::string& flag) {
  constexpr std::string_view kRefused[] = {"-fplugin", "-Wl,",       "-Wa,",
                                           "-Wp,",     "-fsanitize", "-specs"};
  for (const std::string_view refused : kRefused)
    if (flag.starts_with(refused)) return false;
  if (flag.find_first_of(" \t\n") != std::string::npos) return false;
  return flag.size() > 2 && flag[0] == '-' &&
         std::string_view("fmODW").find(flag[1]) != std::string_view::npos;
}

bool is_library_name(const std::string& name) {
  return !name.empty() && name[0] != '-' &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+.-") ==
             std::string::npos;
}

}  // namespace

Problem ProblemReader::read(const TomlNode& root) {
  TableReader reader(root, "problem.toml", mistakes_);
  read_identity(reader);
  read_axes(reader);
  read_tensors(reader);
  for (NamedText& one : read_named_texts(reader, "grade"))
    problem_.grades.push_back({std::move(one.name), std::move(one.text)});
  for (NamedText& one : read_named_texts(reader, "family"))
    problem_.families.push_back({std::move(one.name), std::move(one.text)});
  read_cases(reader);
  for (LinkedSource& one : read_sources(reader, "baseline", Need::required))
    problem_.baselines.push_back({std::move(one.name), std::move(one.text), std::move(one.source),
                                  std::move(one.link), std::move(one.targets)});
  for (LinkedSource& one : read_sources(reader, "ceiling", Need::optional))
    problem_.ceilings.push_back({std::move(one.name), std::move(one.text), std::move(one.source),
                                 std::move(one.link), std::move(one.targets)});
  read_regimes(reader);
  read_build(reader);
  find_targets();
  reader.refuse_other_keys();
  return std::move(problem_);
}

void ProblemReader::read_identity(TableReader& root) {
  if (const auto name = root.identifier("name", Need::required)) {
    problem_.name = name->text;
    const std::string folder_name = folder_.filename().string();
    if (name->text != folder_name)
      mistakes_.add(name->position,
                    "name '" + name->text + "' must be that of the folder, '" + folder_name + "'");
  }
  if (const auto title = root.text("title", Need::required)) problem_.title = title->text;
  if (const auto summary = root.text("summary", Need::required)) problem_.summary = summary->text;
  if (!fs::is_regular_file(problem_.code))
    mistakes_.add_about_file(
        problem_.code, "the file is missing; it holds generator, checker and cost of the problem");
}

void ProblemReader::read_axes(TableReader& root) {
  const TomlNode* axes = root.node("axes", Kind::table, Need::required);
  axes_are_sound_ = axes != nullptr;
  if (axes == nullptr) return;
  if (axes->entries.empty()) mistakes_.add(axes->position, "[axes] declares no axis");
  for (const TomlEntry& entry : axes->entries) read_axis(entry);
  check_derived_axes();
}

void ProblemReader::read_axis(const TomlEntry& entry) {
  const auto refuse = [&](TomlPosition where, std::string sentence) {
    mistakes_.add(where, std::move(sentence));
    axes_are_sound_ = false;
  };
  constexpr std::string_view kReserved[] = {"min", "max", "true", "false"};
  if (!is_identifier(entry.key) ||
      std::count(std::begin(kReserved), std::end(kReserved), entry.key) > 0)
    refuse(entry.position,
           "axis '" + entry.key +
               "' must be letters, digits and underscores, and none of min, max, true, false");
  if (entry.value.kind != Kind::table)
    return refuse(entry.value.position,
                  "axis '" + entry.key +
                      "' must be { least = 1, most = 64 } or { derived_from = \"min(m, n)\" }");
  TableReader reader(entry.value, "axis '" + entry.key + "'", mistakes_);
  Axis axis{.name = entry.key};
  if (entry.value.find("derived_from") != nullptr) {
    const auto expression = reader.text("derived_from", Need::required);
    if (expression) {
      axis.derived_from = expression->text;
      derived_axes_[axis.name] = expression->position;
    } else {
      axes_are_sound_ = false;
    }
  } else {
    const TomlNode* least = reader.node("least", Kind::integer, Need::required);
    const TomlNode* most = reader.node("most", Kind::integer, Need::required);
    axis.least = least == nullptr ? 1 : least->integer;
    axis.most = most == nullptr ? INT64_MAX : most->integer;
    if (axis.least < 0) refuse(least->position, "'least' must be at least 0");
    if (axis.least == 0) zero_axes_[axis.name] = least->position;
    if (axis.most < axis.least)
      refuse(most->position, "'most' is below 'least' (" + std::to_string(axis.least) + ")");
  }
  reader.refuse_other_keys();
  problem_.axes.push_back(std::move(axis));
}

// A derived axis uses free axes only, so that the order of declaration does not matter.
void ProblemReader::check_derived_axes() {
  AxisValues largest;
  std::vector<std::string> free_names;
  for (const Axis& axis : problem_.axes) {
    if (!axis.derived_from.empty()) continue;
    largest[axis.name] = std::min<std::int64_t>(axis.most, 1 << 20);
    free_names.push_back(axis.name);
  }
  for (const Axis& axis : problem_.axes) {
    const auto declared = derived_axes_.find(axis.name);
    if (declared == derived_axes_.end()) continue;
    std::string sentence;
    for (const std::string& name : names_in_expression(axis.derived_from))
      if (!largest.contains(name) && sentence.empty())
        sentence = "axis '" + axis.name + "' is derived from '" + name +
                   "', which is no free axis" + suggestion(name, free_names);
    if (sentence.empty())
      if (const auto value = evaluate_expression(axis.derived_from, largest); !value.ok())
        sentence = "axis '" + axis.name + "': " + value.error().happened;
    if (sentence.empty()) continue;
    mistakes_.add(declared->second, sentence);
    derived_axes_.erase(declared);
  }
}

void ProblemReader::read_tensors(TableReader& root) {
  const auto tables = root.tables("tensor", Need::required);
  for (const TomlNode* table : tables) read_tensor(*table);
  if (tables.empty() || tables.size() != problem_.tensors.size()) return;
  for (const auto& [word, role] : kRoles) {
    const auto has_role = [role = role](const TensorSpec& tensor) { return tensor.role == role; };
    if (std::none_of(problem_.tensors.begin(), problem_.tensors.end(), has_role))
      mistakes_.add(tables.front()->position, "no [[tensor]] has role '" + word + "'");
  }
}

void ProblemReader::read_tensor(const TomlNode& table) {
  TableReader reader(table, "[[tensor]]", mistakes_);
  TensorSpec tensor;
  const auto name = reader.identifier("name", Need::required);
  const auto role = read_word(reader, "role", Need::required, kRoles, mistakes_);
  const auto type = read_word(reader, "type", Need::required, kTypes, mistakes_);
  tensor.shape = read_shape(reader);
  tensor.memory_order = read_memory_order(reader, tensor.shape);
  reader.refuse_other_keys();
  const bool is_named = name && is_new(tensor_names_, *name, "tensor");
  if (!is_named || !role || !type || tensor.shape.empty()) return;
  tensor.name = name->text;
  tensor.role = *role;
  tensor.type = *type;
  problem_.tensors.push_back(std::move(tensor));
}

std::vector<std::string> ProblemReader::read_shape(TableReader& reader) {
  const TomlNode* array = reader.node("shape", Kind::array, Need::required);
  if (array == nullptr) return {};
  if (array->items.empty() || array->items.size() > KBEAM_MAX_RANK) {
    mistakes_.add(array->position,
                  "'shape' must list 1 to " + std::to_string(KBEAM_MAX_RANK) + " axes");
    return {};
  }
  std::vector<std::string> shape;
  for (const LocatedText& axis : reader.texts("shape", Need::required)) {
    if (find_axis(axis.text) == nullptr && !problem_.axes.empty())
      mistakes_.add(axis.position,
                    "unknown axis '" + axis.text + "'" + suggestion(axis.text, axis_names()));
    if (const auto zero = zero_axes_.extract(axis.text))
      mistakes_.add(zero.mapped(), "'least' must be at least 1 for an axis that shapes a tensor");
    if (std::count(shape.begin(), shape.end(), axis.text) > 0)
      mistakes_.add(axis.position, "'shape' lists axis '" + axis.text +
                                       "' twice; declare a second axis with derived_from = \"" +
                                       axis.text + "\"");
    shape.push_back(axis.text);
  }
  return shape;
}

std::vector<std::string> ProblemReader::read_memory_order(TableReader& reader,
                                                          const std::vector<std::string>& shape) {
  const TomlNode* array = reader.node("memory_order", Kind::array, Need::optional);
  if (array == nullptr) return shape;
  const std::vector<std::string> order = words_of(reader.texts("memory_order", Need::optional));
  if (!shape.empty() &&
      !std::is_permutation(order.begin(), order.end(), shape.begin(), shape.end())) {
    mistakes_.add(array->position, "'memory_order' must list the axes of 'shape' (" +
                                       joined(shape) + "), each once, slowest first");
    return shape;
  }
  return order;
}

std::vector<ProblemReader::NamedText> ProblemReader::read_named_texts(TableReader& root,
                                                                      std::string_view key) {
  std::vector<NamedText> result;
  std::map<std::string, TomlPosition> seen;
  for (const TomlNode* table : root.tables(key, Need::required)) {
    TableReader reader(*table, "[[" + std::string(key) + "]]", mistakes_);
    const auto name = reader.identifier("name", Need::required);
    const auto text = reader.text("text", Need::required);
    reader.refuse_other_keys();
    // A name without its text still counts, so that cases that use it are not blamed.
    if (name && is_new(seen, *name, key)) result.push_back({name->text, text ? text->text : ""});
  }
  return result;
}

void ProblemReader::read_cases(TableReader& root) {
  const auto tables = root.tables("case", Need::required);
  for (const TomlNode* table : tables) read_case(*table);
  const auto counts = [](const Case& one) { return one.timed && one.pool == Pool::public_pool; };
  if (tables.empty() || tables.size() != problem_.cases.size()) return;
  if (std::none_of(problem_.cases.begin(), problem_.cases.end(), counts))
    mistakes_.add(tables.front()->position,
                  "no public [[case]] is timed; add timed = true to those that score");
  // A candidate that fails both kinds is told of the public failure, from which it can learn.
  std::stable_partition(problem_.cases.begin(), problem_.cases.end(),
                        [](const Case& one) { return one.pool == Pool::public_pool; });
}

void ProblemReader::read_case(const TomlNode& table) {
  TableReader reader(table, "[[case]]", mistakes_);
  Case the_case;
  const auto name = reader.identifier("name", Need::required);
  const TomlNode* axes = reader.node("axes", Kind::table, Need::required);
  const auto family = reader.text("family", Need::required);
  const auto pool = read_word(reader, "pool", Need::optional, kPools, mistakes_);
  const TomlNode* timed = reader.node("timed", Kind::boolean, Need::optional);
  the_case.targets = read_targets(reader);
  reader.refuse_other_keys();
  if (family) {
    const std::vector<std::string> families = names_of(problem_.families);
    if (std::count(families.begin(), families.end(), family->text) == 0)
      mistakes_.add(family->position,
                    "unknown family '" + family->text + "'" + suggestion(family->text, families));
    the_case.family = family->text;
  }
  if (name && is_new(case_names_, *name, "case")) the_case.name = name->text;
  the_case.pool = pool.value_or(Pool::public_pool);
  the_case.timed = timed != nullptr && timed->truth;
  if (axes != nullptr && axes_are_sound_ && read_case_axes(*axes, the_case) &&
      derive_axes(axes->position, the_case))
    check_size(axes->position, the_case);
  problem_.cases.push_back(std::move(the_case));
}

bool ProblemReader::read_case_axes(const TomlNode& table, Case& the_case) {
  bool sound = true;
  const auto refuse = [&](TomlPosition where, std::string sentence) {
    mistakes_.add(where, std::move(sentence));
    sound = false;
  };
  std::vector<std::string> free_names;
  for (const Axis& axis : problem_.axes) {
    if (!axis.derived_from.empty()) continue;
    free_names.push_back(axis.name);
    if (table.find(axis.name) == nullptr)
      refuse(table.position, "'axes' lacks axis '" + axis.name + "'");
  }
  for (const TomlEntry& entry : table.entries) {
    const Axis* axis = find_axis(entry.key);
    if (axis == nullptr)
      refuse(entry.position,
             "unknown axis '" + entry.key + "'" + suggestion(entry.key, free_names));
    else if (!axis->derived_from.empty())
      refuse(entry.position,
             "axis '" + entry.key + "' is derived from " + axis->derived_from + "; leave it out");
    else if (entry.value.kind != Kind::integer)
      refuse(entry.value.position, "axis '" + entry.key + "' must be an integer, not " +
                                       std::string(describe(entry.value.kind)));
    else if (entry.value.integer < axis->least || entry.value.integer > axis->most)
      refuse(entry.value.position,
             "axis '" + entry.key + "' is " + std::to_string(entry.value.integer) + ", outside " +
                 std::to_string(axis->least) + " to " + std::to_string(axis->most));
    else
      the_case.axes[entry.key] = entry.value.integer;
  }
  return sound;
}

bool ProblemReader::derive_axes(TomlPosition where, Case& the_case) {
  bool sound = true;
  const AxisValues given = the_case.axes;
  for (const Axis& axis : problem_.axes) {
    if (!derived_axes_.contains(axis.name)) continue;
    const auto value = evaluate_expression(axis.derived_from, given);
    if (value.ok() && *value >= 1) {
      the_case.axes[axis.name] = *value;
      continue;
    }
    sound = false;
    const std::string what =
        value.ok() ? "it is " + std::to_string(*value) + ", below 1" : value.error().happened;
    mistakes_.add(where,
                  "axis '" + axis.name + "' = " + axis.derived_from + " of this case: " + what);
  }
  return sound;
}

void ProblemReader::check_size(TomlPosition where, const Case& the_case) {
  for (const TensorSpec& tensor : problem_.tensors) {
    std::int64_t elements = 1;
    for (const std::string& name : tensor.shape) {
      const auto value = the_case.axes.find(name);
      if (value == the_case.axes.end()) return;  // an unknown axis, reported where the shape is
      if (__builtin_mul_overflow(elements, value->second, &elements) || elements > kMostElements) {
        mistakes_.add(where, "tensor '" + tensor.name + "' of this case has more than " +
                                 std::to_string(kMostElements) + " elements");
        return;
      }
    }
  }
}

std::vector<ProblemReader::LinkedSource> ProblemReader::read_sources(TableReader& root,
                                                                     std::string_view key,
                                                                     Need need) {
  std::vector<LinkedSource> result;
  std::map<std::string, std::map<std::string, TomlPosition>> seen;  // by target
  for (const TomlNode* table : root.tables(key, need)) {
    TableReader reader(*table, "[[" + std::string(key) + "]]", mistakes_);
    const auto name = reader.identifier("name", Need::required);
    const auto text = reader.text("text", Need::required);
    LinkedSource source{.source = read_source_path(reader)};
    for (const LocatedText& library : reader.texts("link", Need::optional)) {
      if (!is_library_name(library.text))
        mistakes_.add(library.position, "'link' holds library names such as \"openblas\"; found '" +
                                            library.text + "'");
      source.link.push_back(library.text);
    }
    source.targets = read_source_targets(reader, source.source);
    reader.refuse_other_keys();
    if (!name || !is_new(seen[source.targets.front()], *name, key)) continue;
    source.name = name->text;
    source.text = text ? text->text : "";
    result.push_back(std::move(source));
  }
  return result;
}

// A source must lie in the folder: the problem's hash covers the folder's files only.
fs::path ProblemReader::read_source_path(TableReader& reader) {
  const auto source = reader.text("source", Need::required);
  if (!source) return {};
  const fs::path relative = fs::path(source->text).lexically_normal();
  if (relative.is_absolute() || relative.begin()->string() == "..")
    mistakes_.add(source->position, "'source' must be a path inside the problem's folder");
  else if (!fs::is_regular_file(folder_ / relative))
    mistakes_.add(source->position, "no file " + (folder_ / relative).string());
  return folder_ / relative;
}

Targets ProblemReader::read_targets(TableReader& reader) {
  const TomlNode* array = reader.node("targets", Kind::array, Need::optional);
  if (array == nullptr) return {};
  if (array->items.empty())
    mistakes_.add(array->position, "'targets' is empty; leave it out for every target");
  const std::vector<std::string> known(std::begin(kTargets), std::end(kTargets));
  Targets targets;
  for (const LocatedText& target : reader.texts("targets", Need::optional)) {
    if (std::count(known.begin(), known.end(), target.text) == 0)
      mistakes_.add(target.position,
                    "unknown target '" + target.text + "'" + suggestion(target.text, known));
    else if (std::count(targets.begin(), targets.end(), target.text) > 0)
      mistakes_.add(target.position, "'targets' lists '" + target.text + "' twice");
    targets.push_back(target.text);
  }
  return targets;
}

// One source, one target: the language decides.
Targets ProblemReader::read_source_targets(TableReader& reader, const fs::path& source) {
  const Targets fitting = {source.extension() == ".cu" ? "cuda" : "cpu"};
  const Targets given = read_targets(reader);
  if (const TomlNode* array = reader.node("targets", Kind::array, Need::optional);
      array != nullptr && !source.empty() && !given.empty() && given != fitting)
    mistakes_.add(array->position, "a " + source.extension().string() + " file is for target '" +
                                       fitting.front() + "' only; leave 'targets' out");
  return fitting;
}

void ProblemReader::find_targets() {
  const auto holds_cuda = [](const auto& sources) {
    return std::any_of(sources.begin(), sources.end(),
                       [](const auto& one) { return serves(one.targets, "cuda"); });
  };
  const bool cuda = !problem_.cuda_code.empty() || holds_cuda(problem_.baselines);
  for (const std::string_view target : kTargets) {
    const bool timed =
        std::any_of(problem_.cases.begin(), problem_.cases.end(), [target](const Case& one) {
          return one.timed && one.pool == Pool::public_pool && serves(one.targets, target);
        });
    if (timed && (target != "cuda" || cuda)) problem_.targets.emplace_back(target);
  }
}

void ProblemReader::read_regimes(TableReader& root) {
  const TomlNode* table = root.node("regimes", Kind::table, Need::required);
  if (table == nullptr) return;
  TableReader reader(*table, "[regimes]", mistakes_);
  if (const auto axis = reader.text("axis", Need::required)) {
    if (find_axis(axis->text) == nullptr && !problem_.axes.empty())
      mistakes_.add(axis->position,
                    "unknown axis '" + axis->text + "'" + suggestion(axis->text, axis_names()));
    problem_.regime_axis = axis->text;
  }
  reader.refuse_other_keys();
}

void ProblemReader::read_build(TableReader& root) {
  const TomlNode* table = root.node("build", Kind::table, Need::optional);
  if (table == nullptr) return;
  TableReader reader(*table, "[build]", mistakes_);
  for (const LocatedText& flag : reader.texts("flags", Need::optional)) {
    if (!is_build_flag(flag.text))
      mistakes_.add(
          flag.position,
          "'" + flag.text +
              "' is not allowed; a flag begins with -f, -m, -O, -D or -W, holds no space, "
              "and is no plugin, linker, assembler or sanitizer flag");
    problem_.compile_flags.push_back(flag.text);
  }
  reader.refuse_other_keys();
}

bool ProblemReader::is_new(std::map<std::string, TomlPosition>& seen, const LocatedText& name,
                           std::string_view kind) {
  const auto [first, inserted] = seen.emplace(name.text, name.position);
  if (!inserted)
    mistakes_.add(name.position, "the " + std::string(kind) + " '" + name.text +
                                     "' is declared on line " + std::to_string(first->second.line) +
                                     " already");
  return inserted;
}

const Axis* ProblemReader::find_axis(const std::string& name) const {
  for (const Axis& axis : problem_.axes)
    if (axis.name == name) return &axis;
  return nullptr;
}

std::vector<std::string> ProblemReader::axis_names() const {
  return names_of(problem_.axes);
}

}  // namespace kbeam
