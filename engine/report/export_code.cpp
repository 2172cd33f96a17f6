#include "report/export_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/check.h"

namespace kbeam {
namespace {

constexpr std::int64_t kMostQuickElements = 200'000;  // larger cases are checked by projection

std::string element_of(kbeam_element_type type) {
  switch (type) {
    case KBEAM_F32:
      return "float";
    case KBEAM_F64:
      return "double";
    case KBEAM_I32:
      return "int32_t";
    case KBEAM_I64:
      return "int64_t";
  }
  return "void";
}

std::string enumerator_of(kbeam_element_type type) {
  switch (type) {
    case KBEAM_F32:
      return "KBEAM_F32";
    case KBEAM_F64:
      return "KBEAM_F64";
    case KBEAM_I32:
      return "KBEAM_I32";
    case KBEAM_I64:
      return "KBEAM_I64";
  }
  return "KBEAM_F32";
}

template <typename Items, typename Text>
std::string join(const Items& items, const std::string& between, const Text& text) {
  std::string all;
  for (const auto& item : items) {
    const std::string one = text(item);
    if (!one.empty()) all += (all.empty() ? "" : between) + one;
  }
  return all;
}

std::string quoted(const std::string& text) {
  std::string literal = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') literal += '\\';
    literal += letter == '\n' ? ' ' : letter;
  }
  return literal + "\"";
}

// "std::min(m, n)" as the library's own min, which takes 64-bit integers of any number.
std::string local_expression(std::string text) {
  for (std::size_t at = text.find("std::"); at != std::string::npos; at = text.find("std::", at))
    text.erase(at, 5);
  return text;
}

// Memory order of a tensor as axis names, slowest first.
const std::vector<std::string>& order_of(const TensorSpec& tensor) {
  return tensor.memory_order.empty() ? tensor.shape : tensor.memory_order;
}

// "n * m" for the stride of `axis`: the product of the axes that vary faster.
std::string stride_of(const TensorSpec& tensor, const std::string& axis) {
  const std::vector<std::string>& order = order_of(tensor);
  const auto at = std::ranges::find(order, axis);
  CHECK(at != order.end(), "memory_order names every axis of the shape");
  const std::string product = join(std::vector<std::string>(at + 1, order.end()), " * ",
                                   [](const auto& name) { return name; });
  return product.empty() ? "1" : product;
}

std::string elements_of(const TensorSpec& tensor) {
  const std::string product = join(tensor.shape, " * ", [](const auto& name) { return name; });
  return product.empty() ? "1" : product;
}

std::string parameter_of(const TensorSpec& tensor) {
  return (tensor.role == KBEAM_INPUT ? "const " : "") + element_of(tensor.type) + "* " +
         tensor.name;
}

std::string describe_tensor(const TensorSpec& tensor) {
  return fmt::format("{} {}[{}] {}, in memory {}", tensor.role == KBEAM_INPUT ? "in" : "out",
                     tensor.name, join(tensor.shape, ", ", [](const auto& name) { return name; }),
                     element_of(tensor.type),
                     join(order_of(tensor), " > ", [](const auto& name) { return name; }));
}

bool is_free(const Axis& axis) {
  return axis.derived_from.empty();
}

std::string axis_lines(const Problem& problem) {
  std::string lines;
  for (const Axis& axis : problem.axes) {
    lines +=
        fmt::format("  const std::int64_t {0} = {1};\n", axis.name,
                    is_free(axis) ? "shape." + axis.name : local_expression(axis.derived_from));
    if (is_free(axis))
      lines += fmt::format("  if ({0} < {1} || {0} > {2}) return std::nullopt;\n", axis.name,
                           axis.least, axis.most);
    else
      lines += fmt::format("  if ({} < 1) return std::nullopt;\n", axis.name);
  }
  return lines;
}

std::string tensor_lines(const Problem& problem) {
  std::string lines;
  for (const TensorSpec& tensor : problem.tensors)
    lines += fmt::format(
        "  shape.tensors.push_back(plan_tensor({{{}, {}, {}, {}, {{{}}}, {{{}}}}}));\n",
        quoted(tensor.name), tensor.role == KBEAM_INPUT ? "KBEAM_INPUT" : "KBEAM_OUTPUT",
        enumerator_of(tensor.type), tensor.shape.size(),
        join(tensor.shape, ", ", [](const auto& axis) { return axis; }),
        join(tensor.shape, ", ", [&](const auto& axis) { return stride_of(tensor, axis); }));
  return lines;
}

void add_interface(Slots& slots, const std::string& library, const Problem& problem) {
  const auto names = [](const TensorSpec& tensor) { return tensor.name; };
  slots["parameters"] = join(problem.tensors, ", ", parameter_of);
  slots["arguments"] = join(problem.tensors, ", ", names);
  slots["tensor_pointers"] = join(problem.tensors, ", ", [](const TensorSpec& tensor) {
    return tensor.role == KBEAM_INPUT
               ? fmt::format("const_cast<{}*>({})", element_of(tensor.type), tensor.name)
               : tensor.name;
  });
  slots["signature_note"] = join(problem.tensors, "; ", describe_tensor) + ".";
  slots["shape_fields"] = join(problem.axes, "", [](const Axis& axis) {
    return is_free(axis)
               ? fmt::format("  int64_t {}; /* {} to {} */\n", axis.name, axis.least, axis.most)
               : std::string();
  });
  slots["shapes"] =
      join(problem.axes, ", ",
           [](const Axis& axis) {
             return is_free(axis)
                        ? fmt::format("{} from {} to {}", axis.name, axis.least, axis.most)
                        : fmt::format("{} = {}", axis.name, axis.derived_from);
           }) +
      ".";
  slots["element_declarations"] = join(problem.tensors, "", [&](const TensorSpec& tensor) {
    return fmt::format("int64_t {0}_elements_{1}(const {0}_shape* shape); /* 0: bad shape */\n",
                       library, tensor.name);
  });
  const std::string locals = join(problem.axes, "", [](const Axis& axis) {
    return fmt::format("  [[maybe_unused]] const std::int64_t {0} = axes.{0};\n", axis.name);
  });
  slots["element_definitions"] = join(problem.tensors, "", [&](const TensorSpec& tensor) {
    return fmt::format(
        "extern \"C\" int64_t {0}_elements_{1}(const {0}_shape* shape) {{\n"
        "  const std::optional<Axes> known = shape == nullptr ? std::nullopt : complete(*shape);\n"
        "  if (!known) return 0;\n  const Axes& axes = *known;\n{2}  return {3};\n}}\n\n",
        library, tensor.name, locals, elements_of(tensor));
  });
  slots["axis_members"] = join(problem.axes, "", [](const Axis& axis) {
    return fmt::format("  std::int64_t {};\n", axis.name);
  });
  slots["axis_lines"] = axis_lines(problem);
  slots["axis_locals"] = locals;
  slots["axis_list"] = join(problem.axes, ", ", [](const Axis& axis) { return axis.name; });
  slots["axis_pairs"] = join(problem.axes, ", ", [](const Axis& axis) {
    return fmt::format("{{{}, {}}}", quoted(axis.name), axis.name);
  });
  slots["tensor_lines"] = tensor_lines(problem);
}

void add_rows(Slots& slots, const Candidate& candidate, const ExportedRows& rows) {
  slots["row_declarations"] = join(rows.entries, "", [](const ExportedRow& entry) {
    return fmt::format("extern \"C\" void {}(const kbeam_host*);\n", entry.entry);
  });
  std::string table;
  for (std::size_t i = 0; i < candidate.rows.size(); ++i) {
    const Row& row = candidate.rows[i];
    const ExportedRow& entry = rows.entries[rows.entry_of_row[i]];
    table += fmt::format(
        "    {{&{}, {}, {},\n     {}}},\n", entry.entry, row.axis_least,
        row.axis_most == INT64_MAX ? "INT64_MAX" : std::to_string(row.axis_most),
        quoted(entry.file + (row.knobs.empty() ? "" : " " + describe_knobs(row.knobs))));
  }
  slots["row_table"] = table;
}

std::string axis_map(const AxisValues& axes) {
  return join(axes, ", ", [](const auto& axis) {
    return fmt::format("{{{}, {}}}", quoted(axis.first), axis.second);
  });
}

void add_test(Slots& slots, const Problem& problem) {
  slots["cases"] = join(problem.cases, "", [&](const Case& one) {
    if (one.pool != Pool::public_pool) return std::string();
    std::int64_t elements = 0;
    for (const TensorShape& shape : tensor_shapes(problem, one.axes)) elements += shape.elements();
    return fmt::format("    {{{}, {}, {}, {{{}}}}},\n", quoted(one.name), quoted(one.family),
                       elements > kMostQuickElements, axis_map(one.axes));
  });
  int inputs = 0, outputs = 0;
  std::string arguments;
  slots["make_tensors"] = join(problem.tensors, "", [&](const TensorSpec& tensor) {
    const auto axis = [](const std::string& name) { return "axis(" + quoted(name) + ")"; };
    const auto stride = [&](const std::string& name) {
      const std::vector<std::string>& order = order_of(tensor);
      const std::string product = join(
          std::vector<std::string>(std::ranges::find(order, name) + 1, order.end()), " * ", axis);
      return product.empty() ? std::string("1") : product;
    };
    const bool is_input = tensor.role == KBEAM_INPUT;
    arguments += fmt::format("{}static_cast<{}*>({}[{}].view.data)", arguments.empty() ? "" : ", ",
                             element_of(tensor.type), is_input ? "inputs" : "outputs",
                             is_input ? inputs++ : outputs++);
    return fmt::format("  {}.push_back(make_tensor({}, {}, {{{}}}, {{{}}}));\n",
                       is_input ? "inputs" : "outputs", quoted(tensor.name),
                       enumerator_of(tensor.type), join(tensor.shape, ", ", axis),
                       join(tensor.shape, ", ", stride));
  });
  slots["test_arguments"] = arguments;
  slots["shape_of_case"] =
      "{" +
      join(problem.axes, ", ",
           [](const Axis& axis) {
             return is_free(axis) ? "axis(" + quoted(axis.name) + ")" : std::string();
           }) +
      "}";
}

// The smallest timed case serves as the example.
void add_examples(Slots& slots, const std::string& library, const Problem& problem) {
  const Case* chosen = nullptr;
  std::int64_t least = INT64_MAX;
  for (const Case& one : problem.cases) {
    if (one.pool != Pool::public_pool || (!one.timed && chosen != nullptr)) continue;
    std::int64_t elements = 0;
    for (const TensorShape& shape : tensor_shapes(problem, one.axes)) elements += shape.elements();
    if (elements >= least && !(one.timed && !chosen->timed)) continue;
    chosen = &one;
    least = elements;
  }
  CHECK(chosen != nullptr, "a problem has a public case");
  slots["example_shape"] =
      "{" +
      join(problem.axes, ", ",
           [&](const Axis& axis) {
             return is_free(axis) ? std::to_string(chosen->axes.at(axis.name)) : std::string();
           }) +
      "}";
  const auto count = [&](const TensorSpec& tensor) {
    return fmt::format("static_cast<std::size_t>({}_elements_{}(&shape))", library, tensor.name);
  };
  slots["example_tensors"] = join(problem.tensors, "", [&](const TensorSpec& tensor) {
    std::string lines = fmt::format("  std::vector<{}> {}({});\n", element_of(tensor.type),
                                    tensor.name, count(tensor));
    if (tensor.role == KBEAM_INPUT)
      lines += fmt::format("  for (auto& value : {}) value = static_cast<{}>(normal(random));\n",
                           tensor.name, element_of(tensor.type));
    return lines;
  });
  slots["example_arguments"] =
      join(problem.tensors, ", ", [](const TensorSpec& tensor) { return tensor.name + ".data()"; });
  slots["c_tensors"] = join(problem.tensors, "", [&](const TensorSpec& tensor) {
    return fmt::format(
               "  {0}* {1} = calloc((size_t){2}_elements_{1}(&shape), sizeof *{1});\n"
               "  if ({1} == NULL) return 1;\n",
               element_of(tensor.type), tensor.name, library) +
           (tensor.role == KBEAM_INPUT
                ? fmt::format("  for (int64_t i = 0; i < {0}_elements_{1}(&shape); ++i) {1}[i] = "
                              "({2})(i % 7 + 1);\n",
                              library, tensor.name, element_of(tensor.type))
                : std::string());
  });
  slots["c_arguments"] = slots["arguments"];
  slots["c_free"] = join(problem.tensors, "", [](const TensorSpec& tensor) {
    return fmt::format("  free({});\n", tensor.name);
  });
  for (const TensorSpec& tensor : problem.tensors)
    if (tensor.role == KBEAM_OUTPUT && !slots.contains("first_output"))
      slots["first_output"] = tensor.name;
}

}  // namespace

ExportedRows name_rows(const std::string& library, const Candidate& candidate) {
  ExportedRows named;
  std::map<std::string, std::string> name_of_text;
  std::map<std::string, std::size_t> known;
  for (const Row& row : candidate.rows) {
    std::string& name = name_of_text[row.source];
    if (name.empty()) {
      std::string wanted;
      for (const char letter : row.source_name)
        wanted +=
            std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.'
                ? letter
                : '_';
      if (wanted.empty() || wanted.front() == '.') wanted = "candidate.cpp";
      name = wanted;
      for (int i = 2; named.files.contains(name); ++i) name = fmt::format("{}_{}", i, wanted);
      named.files[name] = row.source;
    }
    const auto [at, is_new] =
        known.emplace(name + " " + describe_knobs(row.knobs), named.entries.size());
    if (is_new)
      named.entries.push_back(
          {fmt::format("{}_row_{}", library, named.entries.size()), name, &row});
    named.entry_of_row.push_back(at->second);
  }
  return named;
}

Slots cmake_slots(const std::string& library, const Problem& problem, const ExportedRows& rows) {
  Slots slots{{"name", library}};
  slots["flags"] =
      join(problem.compile_flags, "", [](const std::string& flag) { return " " + flag; });
  slots["rows"] = join(rows.entries, "", [](const ExportedRow& entry) {
    return fmt::format("add_row({} src/kernels/{}", entry.entry, entry.file) +
           join(entry.row->knobs, "",
                [](const auto& knob) {
                  return fmt::format("\n        \"KBEAM_SET_{}=~,{}\"", knob.first, knob.second);
                }) +
           ")\n";
  });
  return slots;
}

Slots code_slots(const std::string& library, const Problem& problem, const Candidate& candidate,
                 const ExportedRows& rows, const std::string& grade) {
  Slots slots{{"name", library}, {"grade", grade}};
  std::string& upper = slots["NAME"];
  for (const char letter : library)
    upper += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  slots["title"] = problem.title.empty() ? problem.name : problem.title;
  slots["regime_axis"] =
      problem.regime_axis.empty() ? problem.axes.front().name : problem.regime_axis;
  add_interface(slots, library, problem);
  add_rows(slots, candidate, rows);
  add_test(slots, problem);
  add_examples(slots, library, problem);
  return slots;
}

}  // namespace kbeam
