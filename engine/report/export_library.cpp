// A candidate as a folder: its files, the contract that they include, and what was measured of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/files.h"
#include "model/json_forms.h"
#include "report/export.h"
#include "report/export_code.h"
#include "report/export_text.h"
#include "report/facts.h"
#include "report/text.h"

namespace kbeam {
namespace fs = std::filesystem;
namespace {

using Files = std::map<std::string, std::string>;  // path in the folder -> content

bool is_cuda(const Candidate& candidate) {
  return std::ranges::any_of(candidate.rows,
                             [](const Row& row) { return row.source_name.ends_with(".cu"); });
}

// One line a measurement that says something of this candidate: what shipped kernels are held to.
struct Proof {
  std::string markdown;
  Json json = Json::array();
  bool promoted = false;
};

Proof gather_proof(const ReportInput& run, const Candidate& candidate) {
  Proof proof;
  const ReportFacts facts = gather_facts(run);
  for (const AttemptFacts& attempt : facts.attempts) {
    const Evaluation& evaluation = *attempt.evaluation;
    if (evaluation.candidate_id != candidate.id) continue;
    const bool claim =
        evaluation.stage == Stage::promote && evaluation.verdict == Verdict::accepted;
    proof.promoted = proof.promoted || claim;
    for (const Measurement& measurement : evaluation.measurements) {
      const auto known = attempt.per_case.find(measurement.case_name);
      const bool over_baseline = known != attempt.per_case.end();
      const PairedSummary& summary = over_baseline ? known->second : measurement.summary;
      const std::string against = over_baseline ? facts.baseline : measurement.reference;
      proof.markdown += fmt::format(
          "| {} | {} | {} | {} | {} | {} | {} | {} |\n", markdown_code(measurement.case_name),
          format_ratio(summary.speedup),
          std::isfinite(summary.high) ? format_interval(summary.low, summary.high) : "a first look",
          escape_markdown(against), format_time_ns(summary.candidate_ns), measurement.threads,
          to_string(evaluation.stage), markdown_code(evaluation.id));
      Json line = to_json(measurement);
      line.erase("samples");
      line["evaluation_id"] = evaluation.id;
      line["stage"] = std::string(to_string(evaluation.stage));
      line["speedup_over_baseline"] = over_baseline ? Json(summary.speedup) : Json();
      proof.json.push_back(std::move(line));
    }
  }
  return proof;
}

std::string readme(const ExportRequest& request, const Proof& proof, const std::string& library) {
  const ReportInput& run = request.run;
  const Candidate& candidate = request.candidate;
  std::string text = "# " + library + "\n\n" + escape_markdown(run.problem.title) + "\n\n";
  text += fmt::format("Exported by kernelbeam {} from run {}: candidate {}, family {}, by {}.\n\n",
                      escape_markdown(run.environment.tool_version),
                      markdown_code(run.config.run_id), markdown_code(candidate.id),
                      markdown_code(candidate.family), markdown_code(candidate.origin));
  if (request.as == ExportAs::library)
    text += fmt::format(
        "    cmake -B build && cmake --build build && ctest --test-dir build\n"
        "    build/{0}_example\n\nC and C++ interface: `include/{0}.h`. The test runs the "
        "problem's own "
        "inputs and checks on its public\ncases. `src/kernels` holds the judged files as they were "
        "judged.\n\n",
        library);
  else if (is_cuda(candidate))
    text +=
        "`src/kernels` holds the judged `.cu` files. `contract/include` is what they include. "
        "A `.cu` says in `KBEAM_PLAN` what is\nlaunched for a shape; launching it is left to "
        "you: no launcher is in this folder. `kbeam plan FILE --problem NAME --json` prints\n"
        "that plan for every case, and each file compiles with\n\n"
        "    nvcc -std=c++20 -arch=sm_90a -I contract/include -cudart none -Xcompiler -fPIC "
        "-shared -o kernels.so src/kernels/FILE.cu\n\nwith `-DKBEAM_SET_NAME=~,VALUE` for each "
        "knob in `candidate.json`.\n\n";
  else
    text +=
        "    cmake -B build && cmake --build build\n\ncompiles `src/kernels`, the judged files "
        "as they were judged, with their knob values, and no more.\n\n";
  text += "## Rows\n\n| " + (run.problem.regime_axis.empty() ? "shapes" : run.problem.regime_axis) +
          " | file | knobs |\n|---|---|---|\n";
  for (const Row& row : candidate.rows)
    text +=
        fmt::format("| {} {} | {} | {} |\n", row.axis_least,
                    row.axis_most == INT64_MAX ? "and above" : fmt::format("to {}", row.axis_most),
                    markdown_code(row.source_name),
                    row.knobs.empty() ? "defaults" : markdown_code(describe_knobs(row.knobs)));
  text += "\n## Proof\n\n";
  text += proof.promoted
              ? "Measured in a promotion: fresh inputs, interleaved pairs, every timed output "
                "checked.\n\n"
              : "**Not promoted**: what follows are screens and confirmations of a campaign, "
                "which rank; they are no claim.\n\n";
  text +=
      "| case | speed-up | interval | over | time | threads | stage | evaluation |\n"
      "|---|---:|---|---|---:|---:|---|---|\n" +
      proof.markdown;
  text += "\n- machine: " + escape_markdown(run.environment.cpu) + ", " +
          escape_markdown(run.environment.kernel) +
          "\n- compiler: " + escape_markdown(run.environment.compiler) + "\n- instruction sets: ";
  for (const std::string& set : run.environment.instruction_sets)
    text += escape_markdown(set) + " ";
  const ReportFacts facts = gather_facts(run);
  text += "\n- date: " + facts.started + "\n- grade: " + markdown_code(facts.grade) + " " +
          escape_markdown(facts.grade_text) +
          "\n- problem: " + markdown_code(run.config.problem_hash) +
          "\n\nThe kernels were tuned on this machine; elsewhere they are as right and may be "
          "slower.\n";
  return text;
}

// Every header of the contract that a file of this target includes.
Result<void> add_contract(Files& files, const ExportRequest& request) {
  std::vector<std::string> headers{"candidate.h", "knob.h",        "plan.h",
                                   "plan_abi.h",  "byte_counts.h", "simd.h"};
  if (is_cuda(request.candidate))
    headers = {"candidate.h",  "knob.h",     "launch_plan.h",
               "launch_abi.h", "plan_abi.h", "byte_counts.h"};
  if (request.as == ExportAs::library)
    headers.insert(headers.end(), {"cpu_plan.h", "problem.h", "random.h"});
  for (const std::string& header : headers) {
    ASSIGN_OR_RETURN(files["contract/include/kbeam/" + header],
                     read_file(request.contract_include / "kbeam" / header));
  }
  if (request.as == ExportAs::source) return {};
  files["contract/src/cpu_plan.cpp"] = kContractCpuPlan;
  files["contract/src/worker_team.cpp"] = kContractWorkerTeam;
  files["contract/src/spin.h"] = kContractSpin;
  return {};
}

// The problem's code, so that the test judges as kernelbeam does.
Result<void> add_problem(Files& files, const Problem& problem) {
  ASSIGN_OR_RETURN(files["test/problem/problem.cpp"], read_file(problem.code));
  std::error_code trouble;
  for (const auto& entry : fs::directory_iterator(problem.folder, trouble)) {
    if (entry.path().extension() != ".h") continue;
    ASSIGN_OR_RETURN(const std::string text, read_file(entry.path()));
    if (text.find("#include \"model/") != std::string::npos) continue;  // a bench of the engine's
    files["test/problem/" + entry.path().filename().string()] = text;
  }
  return {};
}

std::string summary_comment(const std::string& summary) {
  std::string lines = " * ";
  for (const char letter : summary)
    lines += letter == '\n' ? std::string("\n * ") : std::string(1, letter);
  while (lines.ends_with("\n * ")) lines.erase(lines.size() - 4);
  return lines;
}

std::string determinism_of(const ReportInput& run, const std::string& candidate_id) {
  for (const Evaluation& evaluation : run.evaluations)
    if (evaluation.candidate_id == candidate_id && evaluation.gates)
      for (const GateResult& gate : *evaluation.gates)
        if (gate.name == "repeatable") return gate.sentence + ".";
  return "not judged.";
}

Result<Files> gather_files(const ExportRequest& request) {
  const Problem& problem = request.run.problem;
  const std::string& library = problem.name;
  const ExportedRows rows = name_rows(library, request.candidate);
  Files files;
  RETURN_IF_ERROR(add_contract(files, request));
  for (const auto& [name, text] : rows.files) files["src/kernels/" + name] = text;
  const Proof proof = gather_proof(request.run, request.candidate);
  files["README.md"] = readme(request, proof, library);
  files["proof.json"] = proof.json.dump(2) + "\n";
  files["LICENSE"] = kLicence;
  Json candidate = to_json(request.candidate);
  for (std::size_t i = 0; i < candidate["rows"].size(); ++i)
    candidate["rows"][i]["source"] = "src/kernels/" + rows.entries[rows.entry_of_row[i]].file;
  files["candidate.json"] = candidate.dump(2) + "\n";
  if (is_cuda(request.candidate)) return files;

  Slots cmake = cmake_slots(library, problem, rows);
  cmake["library"] = request.as == ExportAs::library
                         ? fill_slots(kExportLibraryCMake, cmake)
                         : "add_custom_target(kernels ALL DEPENDS ${row_objects})";
  files["CMakeLists.txt"] = fill_slots(kExportCMake, cmake);
  if (request.as == ExportAs::source) return files;

  RETURN_IF_ERROR(add_problem(files, problem));
  const ReportFacts facts = gather_facts(request.run);
  Slots slots = code_slots(library, problem, request.candidate, rows, facts.grade);
  slots["summary"] = summary_comment(problem.summary);
  slots["determinism"] = determinism_of(request.run, request.candidate.id);
  files["include/" + library + ".h"] = fill_slots(kExportHeader, slots);
  files["src/" + library + ".cpp"] = fill_slots(kExportLibrary, slots);
  files["test/" + library + "_test.cpp"] = fill_slots(kExportTest, slots);
  files["example/" + library + "_example.cpp"] = fill_slots(kExportExample, slots);
  files["example/" + library + "_c_example.c"] = fill_slots(kExportCExample, slots);
  return files;
}

}  // namespace

Result<void> export_candidate(const ExportRequest& request, const fs::path& folder) {
  const std::string what = "export candidate " + request.candidate.id + " to " + folder.string();
  if (request.candidate.rows.empty())
    return Error{ErrorCode::bad_input, what, "it has no code", "choose another candidate"};
  if (request.as == ExportAs::library && is_cuda(request.candidate))
    return Error{
        ErrorCode::bad_input, what,
        "a .cu candidate describes its launches as a plan, and the launcher that runs plans is "
        "no library yet",
        "export it --as source: the .cu files, the contract that they include, and the proof"};
  std::error_code trouble;
  if (fs::exists(folder, trouble))
    return Error{ErrorCode::bad_input, what, "that folder is already there",
                 "name another one with --to, or remove it"};
  ASSIGN_OR_RETURN(const Files files, gather_files(request));
  const fs::path parent = fs::absolute(folder).parent_path();
  fs::create_directories(parent, trouble);
  ASSIGN_OR_RETURN(const fs::path made, make_temporary_folder(parent, ".exporting-"));
  Result<void> written;
  for (const auto& [name, text] : files) {
    fs::create_directories((made / name).parent_path(), trouble);
    written = write_file(made / name, text);
    if (!written.ok()) break;
  }
  if (written.ok()) fs::rename(made, folder, trouble);
  if (written.ok() && !trouble) return {};
  std::error_code ignored;
  fs::remove_all(made, ignored);
  if (!written.ok()) return written.error();
  return Error{ErrorCode::io, what, trouble.message(), "check free space and permissions"};
}

}  // namespace kbeam
