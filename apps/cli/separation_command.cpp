// kbeam separation: runs known_good/ and the cheats of known_wrong/ over every case of a problem
// and says how far each check holds them apart; stores that beside the problem, or compares with
// it.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "build/compiler.h"
#include "check/separation_figures.h"
#include "model/json_forms.h"
#include "problem/problem_file.h"
#include "problem/problem_library.h"
#include "session/figure_survey.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

struct KnownFile {
  KnownCandidate known;
  std::string source;
};

// Honest files and those of known_wrong/ that claim a check, by name.
Result<std::vector<KnownFile>> read_known_files(const fs::path& folder) {
  std::vector<KnownFile> files;
  for (const char* subfolder : {"known_good", "known_wrong"}) {
    if (!fs::is_directory(folder / subfolder)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / subfolder)) {
      if (entry.path().extension() != ".cpp") continue;
      KnownFile file;
      file.known.name = subfolder + ("/" + entry.path().stem().string());
      file.known.honest = std::string(subfolder) == "known_good";
      ASSIGN_OR_RETURN(file.source, read_file(entry.path()));
      if (!file.known.honest) {
        ASSIGN_OR_RETURN(file.known.claims, read_claims(file.source, file.known.name));
        if (file.known.claims.empty()) continue;
      }
      files.push_back(std::move(file));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const KnownFile& a, const KnownFile& b) { return a.known.name < b.known.name; });
  if (files.empty() || !files.front().known.honest)
    return Error{ErrorCode::bad_input, "measure the separation of " + folder.string(),
                 "known_good/ has no candidate", "docs/problem.md says what belongs there"};
  return files;
}

// The problem on the CPU, whatever its stored separation says: this command mends that.
Result<Problem> open_unproven_problem(const std::string& named, const Home& home) {
  ASSIGN_OR_RETURN(const fs::path folder, find_problem_folder(named, home.problems));
  ASSIGN_OR_RETURN(LoadedProblem loaded, load_problem(folder));
  std::erase_if(loaded.mistakes, [](const InputMistake& mistake) {
    return mistake.file.filename() == kSeparationFile;
  });
  if (!loaded.mistakes.empty())
    return Error{ErrorCode::bad_input, "read problem " + folder.string(),
                 render_mistakes(loaded.mistakes), "docs/problem.md explains every key"};
  return for_target(loaded.problem, "cpu");
}

// Builds one known file and collects what every check says of it.
class Surveyor {
 public:
  static Result<std::unique_ptr<Surveyor>> make(const Problem& problem, const Home& home,
                                                SurveyRequest request) {
    auto made = std::unique_ptr<Surveyor>(new Surveyor(problem, std::move(request)));
    ASSIGN_OR_RETURN(made->compiler_, Compiler::make({.contract_include = home.contract_include,
                                                      .cache = cache_folder()}));
    ASSIGN_OR_RETURN(const fs::path module, made->compiler_->build_problem(problem.code));
    ASSIGN_OR_RETURN(made->library_, ProblemLibrary::load(module));
    made->bank_ = std::make_unique<InputBank>(problem, made->library_->code());
    return made;
  }

  Result<void> survey(const KnownFile& file, std::vector<Sighting>& sightings) {
    const std::string name = file.known.name + ".cpp";
    ASSIGN_OR_RETURN(const Artifact artifact,
                     compiler_->build({file.source, name, {}, problem_.compile_flags, {}}));
    if (artifact.verdict != Verdict::accepted)
      return Error{ErrorCode::bad_input, "build " + name, artifact.reason + "\n" + artifact.log,
                   "mend it; `kbeam check` builds it alone"};
    Subject subject;
    subject.id = file.known.name;
    subject.rows = {Row{file.source, name, {}}};
    subject.modules = {artifact.module};
    ASSIGN_OR_RETURN(const std::vector<CheckReport> reports,
                     survey_figures(problem_, library_->code(), *bank_, subject, request_));
    for (const CheckReport& report : reports) {
      const Case* const the_case = problem_.find_case(report.case_name);
      for (const CheckFigure& figure : report.figures)
        sightings.push_back({&file.known, report.case_name, the_case->family, figure});
    }
    return {};
  }

 private:
  Surveyor(const Problem& problem, SurveyRequest request)
      : problem_(problem), request_(std::move(request)) {}

  const Problem& problem_;
  SurveyRequest request_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<ProblemLibrary> library_;
  std::unique_ptr<InputBank> bank_;
};

struct Measured {
  Problem problem;
  Separation separation;
  std::vector<std::string> refusals;
  std::vector<std::string> drift;
  bool stored = false;  // whether there was anything to compare with
};

std::string file_text(const Separation& separation) {
  // A row a line, so that a change of one figure is a change of one line.
  Json head = to_json(separation);
  std::string text = "{\n";
  for (const char* key : {"problem", "grade"})
    text += fmt::format("  \"{}\": {},\n", key, json_text(head[key]));
  text += "  \"rows\": [\n";
  for (std::size_t i = 0; i < separation.rows.size(); ++i)
    text += "    " + json_text(head["rows"][i]) + (i + 1 < separation.rows.size() ? ",\n" : "\n");
  return text + "  ]\n}\n";
}

double rounded(double value) {
  return std::isfinite(value) ? std::stod(fmt::format("{:.4g}", value)) : value;
}

Result<Measured> measure(const Options& options) {
  Measured measured;
  ASSIGN_OR_RETURN(const Home home, find_home());
  ASSIGN_OR_RETURN(measured.problem, open_unproven_problem(options.get("PROBLEM"), home));
  const Problem& problem = measured.problem;
  ASSIGN_OR_RETURN(const std::vector<KnownFile> files, read_known_files(problem.folder));
  SurveyRequest request;
  request.seat.runner = home.runner;
  request.seat.cpus = {share_cpus().candidates.front()};
  request.seat.call_timeout_s = 60;  // known candidates are plain, not fast
  ASSIGN_OR_RETURN(request.grade, choose_grade(problem, options.get("--grade")));
  ASSIGN_OR_RETURN(request.draws, parse_count(options.get("--draws"), "--draws", 1000));
  measured.separation = {problem.name, request.grade, {}};
  ASSIGN_OR_RETURN(const std::unique_ptr<Surveyor> surveyor,
                   Surveyor::make(problem, home, request));
  std::vector<Sighting> sightings;
  std::vector<KnownCandidate> candidates;
  for (const KnownFile& file : files) {
    if (!options.json()) fmt::print(stderr, "== {}\n", file.known.name);
    RETURN_IF_ERROR(surveyor->survey(file, sightings));
    candidates.push_back(file.known);
  }
  measured.separation.rows = separate(sightings, problem.cases);
  measured.refusals = find_refusals(measured.separation.rows, candidates, sightings);
  for (SeparationRow& row : measured.separation.rows) {
    row.honest = rounded(row.honest);
    row.limit = rounded(row.limit);
    row.cheat = rounded(row.cheat);
  }
  return measured;
}

Result<Separation> read_stored(const Problem& problem) {
  const fs::path file = problem.folder / kSeparationFile;
  ASSIGN_OR_RETURN(const std::string text, read_file(file));
  return separation_from_text(text, file.string());
}

// What an earlier --write left: for printing without measuring.
Result<Measured> recall(const Options& options) {
  Measured recalled;
  ASSIGN_OR_RETURN(const Home home, find_home());
  ASSIGN_OR_RETURN(recalled.problem, open_unproven_problem(options.get("PROBLEM"), home));
  ASSIGN_OR_RETURN(recalled.separation, read_stored(recalled.problem));
  for (const SeparationRow& row : recalled.separation.rows)
    if (std::string words = refusal(row); !words.empty())
      recalled.refusals.push_back(std::move(words));
  return recalled;
}

// Writes the table, or compares it with what is stored.
Result<void> settle(const Options& options, Measured& measured) {
  const fs::path file = measured.problem.folder / kSeparationFile;
  if (options.has("--write"))
    return measured.refusals.empty() ? write_file(file, file_text(measured.separation))
                                     : Result<void>();
  measured.stored = fs::exists(file);
  if (!measured.stored) return {};
  ASSIGN_OR_RETURN(const Separation stored, read_stored(measured.problem));
  measured.drift = find_drift(stored.rows, measured.separation.rows);
  return {};
}

void print_row(const std::string& name, const std::string& cases, const SeparationRow& row) {
  if (!row.has_cheat() && row.limit == 0) return;  // exact, and for everybody
  if (!row.has_cheat()) {
    fmt::print("| {} | {} | {:.3g} | {:.4g} | - | - | |\n", name, cases, row.honest, row.limit);
    return;
  }
  const std::string ratio = std::isinf(row.ratio()) ? "exact" : fmt::format("{:.0f}", row.ratio());
  fmt::print("| {} | {} | {:.3g} | {:.4g} | {:.4g} | {} | {} |\n", name, cases, row.honest,
             row.limit, row.cheat, ratio, row.cheat_by.substr(row.cheat_by.find('/') + 1));
}

// Markdown, so that the output can stand in docs/ as it is.
void print_table(const Options& options, const Measured& measured) {
  const std::vector<SeparationRow>& rows = measured.separation.rows;
  std::string check;
  const auto start_check = [&](const SeparationRow& row) {
    if (row.check == check) return;
    check = row.check;
    fmt::print("\n`{}` of {}, in {}\n\n", check, measured.problem.name, row.unit);
    fmt::print("| cases | number | honest | limit | cheat | cheat / honest | by |\n");
    fmt::print("|---|---|---|---|---|---|---|\n");
  };
  if (options.has("--cases")) {
    for (const SeparationRow& row : rows) {
      start_check(row);
      print_row(row.case_name, "1", row);
    }
    return;
  }
  for (const SeparationClass& one : worst_of_classes(rows, measured.problem.cases)) {
    start_check(one.worst);
    print_row(one.name, std::to_string(one.cases), one.worst);
  }
}

void print_verdict(const Options& options, const Measured& measured) {
  for (const std::string& words : measured.refusals) fmt::print(stderr, "refused: {}\n", words);
  for (const std::string& words : measured.drift) fmt::print(stderr, "drifted: {}\n", words);
  const std::string file = (measured.problem.folder / kSeparationFile).string();
  if (!measured.refusals.empty())
    fmt::print(stderr, "nothing is stored: mend the check, the case or the claim\n");
  else if (options.has("--write"))
    fmt::print(stderr, "wrote {}\n", file);
  else if (!measured.stored)
    fmt::print(stderr, "nothing is stored yet: --write makes {}\n", file);
  else if (measured.drift.empty())
    fmt::print(stderr, "agrees with {}\n", file);
}

}  // namespace

int separation_command(const Options& options) {
  const bool recalls = options.has("--stored");
  Result<Measured> measured = recalls ? recall(options) : measure(options);
  if (!measured.ok()) return report_error(measured.error(), options);
  if (!recalls)
    if (const Result<void> settled = settle(options, *measured); !settled.ok())
      return report_error(settled.error(), options);
  const bool good = measured->refusals.empty() && measured->drift.empty();
  if (options.json()) {
    Json json = to_json(measured->separation);
    json["refusals"] = measured->refusals;
    json["drift"] = measured->drift;
    fmt::print("{}\n", json_text(json));
  } else {
    print_table(options, *measured);
    if (!recalls || !good) print_verdict(options, *measured);
  }
  return good ? kDone : kNo;
}

}  // namespace kbeam::cli
