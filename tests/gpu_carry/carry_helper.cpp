// Stands in for a machine with a GPU in the end-to-end tests of bundle and collect: writes task
// folders, runs to collect into, and results as kbeam-worker seals them. Judges nothing.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "archive/archive.h"
#include "base/files.h"
#include "execute/evaluation_task.h"
#include "execute/task_fixture.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

// A task whose plans name a kernel that is nowhere: nobody runs it.
Result<void> make_task(const fs::path& folder, const std::string& id) {
  fs::create_directories(fs::absolute(folder).parent_path());
  ASSIGN_OR_RETURN(const fs::path parts,
                   make_temporary_folder(fs::temp_directory_path(), "carry-"));
  TaskForTests made = task_for_tests(parts);
  made.task.id = id;
  made.task.seal_key = "key of " + id;
  const Result<void> written = write_task_folder(made.task, made.files, folder);
  fs::remove_all(parts);
  return written;
}

Result<void> make_run(const fs::path& run, const fs::path& source, const fs::path& problem) {
  fs::create_directories(run);
  CampaignConfig config;
  config.run_id = run.filename().string();
  config.problem_name = problem.filename().string();
  config.problem_folder = problem;
  config.target = "cuda";
  ASSIGN_OR_RETURN(const auto archive, Archive::create(run / "archive.sqlite", config, {}));
  Candidate candidate;
  candidate.family = "by hand";
  candidate.origin = "manual";
  ASSIGN_OR_RETURN(const std::string text, read_file(source));
  candidate.rows.push_back({text, source.filename().string(), {}});
  candidate.id = candidate_id(candidate);
  return archive->append_candidate(candidate);
}

// As `kbeam bundle` notes what it wrote from a run.
Result<void> note(const fs::path& run, const fs::path& folder) {
  ASSIGN_OR_RETURN(const LoadedTask task, read_task_folder(folder));
  fs::create_directories(run / "bundles");
  return write_file(run / "bundles" / (task.task.id + ".sha256"), task.task_hash + "\n");
}

Result<void> fake_result(const fs::path& folder, const std::string& how) {
  ASSIGN_OR_RETURN(const LoadedTask task, read_task_folder(folder));
  TaskResult result = result_for_tests(task);
  if (task.task.kind != TaskKind::compare) result.evaluation.measurements.clear();
  if (task.task.kind != TaskKind::time_only) {
    result.case_ns.clear();
    result.case_samples_ns.clear();
  }
  if (how == "void") result.device_trouble = "a probe gave a wrong answer";
  if (how == "engine_failed") {
    result.evaluation.verdict = Verdict::engine_failed;
    result.evaluation.reason = "the reference crashed";
  }
  if (how == "other_candidate") result.evaluation.candidate_id = "somebody else";
  // Sealed with the right key, and still nothing that a worker says.
  if (!result.evaluation.measurements.empty()) {
    Measurement& measurement = result.evaluation.measurements.front();
    if (how == "negative_time") measurement.samples.candidate_ns[3] = -1;
    if (how == "fewer_references") measurement.samples.reference_ns.pop_back();
    if (how == "negative_noise") measurement.noise_floor = -1;
  }
  return write_result(task.task, result, folder);
}

Result<void> run(const std::vector<std::string>& words) {
  if (words.size() == 3 && words[0] == "make-task") return make_task(words[1], words[2]);
  if (words.size() == 4 && words[0] == "make-run") return make_run(words[1], words[2], words[3]);
  if (words.size() == 3 && words[0] == "note") return note(words[1], words[2]);
  if (words.size() == 2 && words[0] == "fake-result") return fake_result(words[1], "");
  if (words.size() == 3 && words[0] == "fake-result") return fake_result(words[1], words[2]);
  return Error{ErrorCode::bad_input, "read the command line", "it is none of ours", ""};
}

}  // namespace
}  // namespace kbeam

int main(int argc, char** argv) {
  const auto done = kbeam::run({argv + 1, argv + argc});
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().text().c_str());
  return done.ok() ? 0 : 1;
}
