// kbeam bundle: task folders that can be carried to a machine with a GPU. Builds and plans here;
// runs nothing. What comes back is collect_command.cpp's.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/bundles.h"
#include "apps/cli/commands.h"
#include "apps/cli/refusals.h"
#include "apps/cli/runs.h"
#include "archive/archive.h"
#include "base/foreign_json.h"
#include "base/private_folder.h"
#include "base/spelling.h"
#include "model/json_forms.h"
#include "session/sanitizer_gate.h"
#include "session/task_assembly.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

// What building and planning for one problem needs; no judge, so no GPU and no worker.
struct Workshop {
  Home home;
  Problem problem;
  std::string grade;
  SystemClock clock;
  std::unique_ptr<ActivityMeter> meter;
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<ProblemLibrary> library;
  std::unique_ptr<BuildQueue> builds;
  TaskRequest request;    // all but the subjects
  bool all_cases = true;  // none was named
};

Error unknown_word(const std::string& option, const std::string& word,
                   const std::vector<std::string>& known) {
  const auto close = closest_word(word, known);
  return {ErrorCode::bad_input, "read " + option, "'" + word + "' is not known",
          close ? "did you mean " + *close + "?"
                : fmt::format("choose one of {}", fmt::join(known, ", "))};
}

Result<void> choose_kind(const Options& options, TaskRequest& request) {
  const std::string word = options.get("--kind");
  std::vector<std::string> known;
  for (const TaskKind kind :
       {TaskKind::check, TaskKind::compare, TaskKind::plain, TaskKind::time_only}) {
    if (word == to_string(kind)) {
      request.kind = kind;
      return {};
    }
    known.emplace_back(to_string(kind));
  }
  return unknown_word("--kind", word, known);
}

Result<void> choose_rule(const Options& options, TaskRequest& request) {
  const std::string word = options.get("--rule");
  if (word == "screen") {
    request.rule = device_rules().screen;
    request.stage = Stage::screen;
  } else if (word == "confirm") {
    request.rule = device_rules().confirm;
    request.stage = Stage::confirm;
  } else if (word == "promote") {
    request.rule = device_rules().promote;
    request.stage = Stage::promote;
  } else {
    return unknown_word("--rule", word, {"screen", "confirm", "promote"});
  }
  if (options.has("--pairs")) {
    ASSIGN_OR_RETURN(const int pairs, parse_count(options.get("--pairs"), "--pairs"));
    request.rule = {.name = "trace",
                    .pairs_per_process = pairs,
                    .processes = request.rule.processes,
                    .fresh_base = true};
  }
  return {};
}

// The cases that are timed are those of the problem, the others are checked first; --case picks
// among both.
Result<void> choose_cases(const Problem& problem, const std::vector<std::string>& named,
                          TaskRequest& request) {
  std::vector<Case> chosen = named.empty() ? problem.cases : std::vector<Case>();
  std::vector<std::string> known;
  for (const Case& the_case : problem.cases) known.push_back(the_case.name);
  for (const std::string& name : named) {
    const Case* const found = problem.find_case(name);
    if (found == nullptr) return unknown_word("--case", name, known);
    chosen.push_back(*found);
  }
  const bool times = request.kind == TaskKind::compare || request.kind == TaskKind::time_only;
  for (const Case& the_case : chosen) {
    if (times && the_case.timed)
      request.timed_cases.push_back(the_case);
    else if (request.kind != TaskKind::time_only)
      request.check_cases.push_back(the_case);
  }
  if (times && request.timed_cases.empty())
    return Error{ErrorCode::bad_input, "choose cases to time", "none of them is a timed case",
                 "name one that is, or use --kind check"};
  return {};
}

Result<std::unique_ptr<Workshop>> open_workshop(const std::string& problem,
                                                const Options& options) {
  auto shop = std::make_unique<Workshop>();
  ASSIGN_OR_RETURN(shop->home, find_home());
  ASSIGN_OR_RETURN(shop->problem, open_problem(problem, shop->home, "cuda"));
  ASSIGN_OR_RETURN(shop->grade, choose_grade(shop->problem, options.get("--grade")));
  TaskRequest& request = shop->request;
  RETURN_IF_ERROR(choose_kind(options, request));
  RETURN_IF_ERROR(choose_rule(options, request));
  RETURN_IF_ERROR(choose_cases(shop->problem, options.all("--case"), request));
  shop->all_cases = options.all("--case").empty();
  request.planner.planner = shop->home.planner;
  ASSIGN_OR_RETURN(request.planner.device_description,
                   find_device_description(shop->home, options.get("--gpu")));
  ASSIGN_OR_RETURN(shop->compiler, Compiler::make({.contract_include = shop->home.contract_include,
                                                   .cache = cache_folder(),
                                                   // The machine that it is carried to is another.
                                                   .march = "x86-64-v3"}));
  ASSIGN_OR_RETURN(request.problem_module, shop->compiler->build_problem(shop->problem.code));
  if (!shop->problem.cuda_code.empty()) {
    ASSIGN_OR_RETURN(request.problem_cuda_module,
                     shop->compiler->build_problem(shop->problem.cuda_code));
  }
  ASSIGN_OR_RETURN(shop->library, ProblemLibrary::load(request.problem_module));
  request.problem = &shop->problem;
  request.code = &shop->library->code();
  request.grade = shop->grade;
  shop->meter = std::make_unique<ActivityMeter>(shop->clock);
  shop->builds =
      std::make_unique<BuildQueue>(*shop->compiler, shop->problem.compile_flags, *shop->meter);
  return shop;
}

Result<CudaSubject> build_subject(Workshop& shop, const Candidate& candidate,
                                  const std::string& id) {
  const BuiltCandidate built = shop.builds->build_now(candidate);
  if (built.engine_error) return *built.engine_error;
  if (const Artifact* const failed = built.failed())
    return refused_build(id, failed->verdict, failed->reason, failed->log);
  const Subject subject = shop.builds->subject_of(candidate, id);
  return CudaSubject{.id = subject.id,
                     .rows = subject.rows,
                     .modules = subject.modules,
                     .kernels = subject.kernels,
                     .may_use_libraries = subject.may_use_libraries};
}

// What the candidate is compared with: a file, or a baseline of the problem.
Result<void> add_reference(Workshop& shop, const Options& options) {
  if (shop.request.kind != TaskKind::compare) return {};
  const std::string file = options.get("--reference");
  if (!file.empty()) {
    ASSIGN_OR_RETURN(const Candidate candidate, BenchTools().read_candidate(file, {}));
    ASSIGN_OR_RETURN(shop.request.reference, build_subject(shop, candidate, candidate.id));
    return {};
  }
  std::vector<std::string> known;
  for (const BaselineSpec& spec : shop.problem.baselines) known.push_back(spec.name);
  const std::string named = options.get("--baseline");
  const auto found = std::ranges::find_if(shop.problem.baselines, [&](const BaselineSpec& spec) {
    return named.empty() || spec.name == named;
  });
  if (found == shop.problem.baselines.end())
    return known.empty() ? Error{ErrorCode::bad_input, "compare with a baseline",
                                 "the problem has none for cuda", "name a --reference"}
                         : unknown_word("--baseline", named, known);
  ASSIGN_OR_RETURN(const Candidate baseline,
                   BenchTools().read_candidate(found->source.string(), {}));
  ASSIGN_OR_RETURN(CudaSubject subject, build_subject(shop, baseline, found->name));
  subject.may_use_libraries = true;
  shop.request.reference = std::move(subject);
  return {};
}

// What the bundle is of.
struct Source {
  std::string problem;
  fs::path run;  // empty: a file
  std::vector<Candidate> candidates;
};

Result<Source> source_from_run(const Options& options) {
  Source source;
  ASSIGN_OR_RETURN(source.run, find_run(options));
  ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(source.run / "archive.sqlite"));
  const CampaignConfig config = archive->config();
  if (config.target != "cuda")
    return Error{ErrorCode::bad_input, "bundle run " + config.run_id,
                 "its candidates are for " + config.target, "only CUDA work is carried"};
  ASSIGN_OR_RETURN(const Home home, find_home());
  ASSIGN_OR_RETURN(const Problem problem, problem_of_run(config, options, home));
  source.problem = problem.folder.string();
  std::vector<std::string> wanted = options.all("--candidate");
  ASSIGN_OR_RETURN(std::vector<Candidate> candidates, archive->candidates());
  if (wanted.empty()) {
    // The champions, or where there are none yet, everything.
    ASSIGN_OR_RETURN(const std::vector<Event> events, archive->events());
    for (const Event& event : events)
      if (event.kind == "champion")
        wanted.push_back(parse_foreign_json(event.body).value("candidate_id", ""));
  }
  for (const std::string& id : options.all("--candidate"))
    if (std::ranges::find(candidates, id, &Candidate::id) == candidates.end())
      return Error{ErrorCode::not_found, "bundle candidate " + id,
                   "run " + config.run_id + " has no such candidate", "`kbeam report` lists them"};
  for (Candidate& candidate : candidates)
    if (wanted.empty() || std::ranges::find(wanted, candidate.id) != wanted.end())
      source.candidates.push_back(std::move(candidate));
  if (source.candidates.empty())
    return Error{ErrorCode::not_found, "bundle run " + config.run_id, "it has no candidate yet",
                 "let it run first"};
  return source;
}

Result<Source> source_of(const Options& options) {
  if (!options.has("--file")) return source_from_run(options);
  if (!options.has("--problem"))
    return Error{ErrorCode::bad_input, "bundle a file", "--problem is missing",
                 "name the problem that it solves"};
  Source source{.problem = options.get("--problem"), .run = {}, .candidates = {}};
  for (const std::string& file : options.all("--file")) {
    ASSIGN_OR_RETURN(Candidate candidate, BenchTools().read_candidate(file, options.all("--knob")));
    source.candidates.push_back(std::move(candidate));
  }
  return source;
}

// One candidate's folder, or why there is none.
Result<Json> bundle_one(Workshop& shop, const Candidate& candidate, const Source& source,
                        const fs::path& out) {
  ASSIGN_OR_RETURN(shop.request.candidate, build_subject(shop, candidate, candidate.id));
  if (shop.request.kind == TaskKind::time_only) shop.request.candidate.may_use_libraries = true;
  ASSIGN_OR_RETURN(const PrivateFolder images, PrivateFolder::make("kbeam-images-"));
  ASSIGN_OR_RETURN(AssembledTask assembled, assemble_task(shop.request, images.path()));
  if (assembled.refused)
    return Json{{"candidate_id", candidate.id},
                {"refused", std::string(to_string(assembled.refused->verdict))},
                {"reason", assembled.refused->reason}};
  // What is watched by a tool is slow: the cases that the sanitizer gate would take.
  if (shop.request.kind == TaskKind::plain && shop.all_cases)
    assembled.task.check_cases = choose_sanitizer_cases(assembled.task, assembled.files);
  const fs::path folder = out / assembled.task.id;
  RETURN_IF_ERROR(write_task_folder(assembled.task, assembled.files, folder));
  if (!source.run.empty()) {
    const Result<void> noted = note_bundle(source.run, folder);
    std::error_code ignored;
    if (!noted.ok()) {
      fs::remove_all(folder, ignored);  // its result could never be collected
      return noted.error();
    }
  }
  return Json{{"candidate_id", candidate.id},
              {"task_id", assembled.task.id},
              {"folder", folder.string()},
              {"bytes", folder_bytes(folder)}};
}

Result<Json> bundle(const Options& options) {
  ASSIGN_OR_RETURN(const Source source, source_of(options));
  ASSIGN_OR_RETURN(const auto shop, open_workshop(source.problem, options));
  RETURN_IF_ERROR(add_reference(*shop, options));
  Json list = Json::array();
  for (const Candidate& candidate : source.candidates) {
    ASSIGN_OR_RETURN(Json one, bundle_one(*shop, candidate, source, options.get("--out")));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

int bundle_command(const Options& options) {
  const Result<Json> bundled = bundle(options);
  if (!bundled.ok()) return report_error(bundled.error(), options);
  bool all_carried = true;
  for (const Json& one : *bundled) {
    all_carried = all_carried && !one.contains("refused");
    if (options.json()) continue;
    if (one.contains("refused"))
      fmt::print("{}: {}: {}\n", one["candidate_id"].get<std::string>(),
                 one["refused"].get<std::string>(), one["reason"].get<std::string>());
    else
      fmt::print("{}  {} ({:.1f} MB)\n", one["folder"].get<std::string>(),
                 one["candidate_id"].get<std::string>(), one["bytes"].get<double>() / 1e6);
  }
  if (options.json())
    fmt::print("{}\n", json_text(*bundled));
  else if (all_carried)
    fmt::print(
        "carry it to a machine with a GPU, run `kbeam-worker {0}/*` there, bring it back, "
        "then: kbeam collect {0}{1}\n",
        options.get("--out"), options.has("--file") ? "" : " --run " + options.get("RUN"));
  return all_carried ? kDone : kNo;
}

}  // namespace kbeam::cli
