// Task folders: written whole, read back by hash; and the sealed result in them.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/entropy.h"
#include "base/files.h"
#include "base/hash.h"
#include "execute/carried_file.h"
#include "execute/evaluation_task.h"
#include "execute/sealed_text.h"
#include "model/json_forms.h"

namespace kbeam {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kProblemFile = "problem/problem.so";

Seal task_seal() {
  return {"kbeam task 1", ""};
}
Seal result_seal(const EvaluationTask& task) {
  return {"kbeam result 1", task.seal_key};
}

std::string plan_file(const std::string& hash) {
  return "plans/" + hash + ".json";
}
std::string image_file(const std::string& hash) {
  return "images/" + hash + ".fatbin";
}

// Hashes are names of files here: nothing else may be one.
bool is_hash(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::set<std::string> plans_of(const EvaluationTask& task) {
  std::set<std::string> hashes;
  const auto add = [&](const std::string& hash) {
    if (!hash.empty()) hashes.insert(hash);
  };
  for (const auto& [name, hash] : task.candidate.plan_of_case) add(hash);
  if (task.reference)
    for (const auto& [name, hash] : task.reference->plan_of_case) add(hash);
  for (const TaskCase& task_case : task.cases) {
    add(task_case.generate_plan);
    add(task_case.quick_check_plan);
    add(task_case.full_check_plan);
  }
  return hashes;
}

// Plans that the task names and images that the plans name.
std::vector<std::string> find_missing(const EvaluationTask& task,
                                      const std::map<std::string, LaunchPlan>& plans,
                                      const std::map<std::string, fs::path>& images) {
  std::vector<std::string> missing;
  for (const std::string& hash : plans_of(task)) {
    const auto plan = plans.find(hash);
    if (plan == plans.end())
      missing.push_back("plan " + hash + " is missing");
    else if (!plan->second.image_hash.empty() && !images.contains(plan->second.image_hash))
      missing.push_back(
          fmt::format("image {} of plan {} is missing", plan->second.image_hash, hash));
  }
  return missing;
}

Result<void> must_be_sound(const EvaluationTask& task, std::vector<std::string> missing,
                           const std::string& attempted) {
  std::vector<std::string> mistakes = find_task_mistakes(task);
  mistakes.insert(mistakes.end(), missing.begin(), missing.end());
  if (mistakes.empty()) return {};
  return Error{ErrorCode::bad_input, attempted, fmt::format("{}", fmt::join(mistakes, "; ")),
               "assemble the task again"};
}

// Writes the files of a task below `folder` and says their hashes.
Result<Json> write_parts(const TaskFiles& files, const fs::path& folder) {
  Json hashes = Json::object();
  const auto put = [&](const std::string& name, const std::string& content) -> Result<void> {
    std::error_code trouble;
    fs::create_directories((folder / name).parent_path(), trouble);
    hashes[name] = sha256_hex(content);
    return write_file(folder / name, content);
  };
  for (const auto& [hash, plan] : files.plans)
    RETURN_IF_ERROR(put(plan_file(hash), json_text(to_json(plan))));
  for (const auto& [hash, path] : files.images) {
    ASSIGN_OR_RETURN(const std::string content, read_file(path));
    RETURN_IF_ERROR(put(image_file(hash), content));
  }
  if (!files.problem_module.empty()) {
    ASSIGN_OR_RETURN(const std::string content, read_file(files.problem_module));
    RETURN_IF_ERROR(put(std::string(kProblemFile), content));
  }
  return hashes;
}

Error changed(const fs::path& file, const std::string& what) {
  return {ErrorCode::corrupt, "read " + file.string(), what, "copy the task folder again"};
}

// "plans/HASH.json" -> HASH when `name` is of that form.
std::optional<std::string> hash_in(const std::string& name, std::string_view before,
                                   std::string_view after) {
  if (!name.starts_with(before) || !name.ends_with(after)) return std::nullopt;
  if (name.size() <= before.size() + after.size()) return std::nullopt;
  std::string hash = name.substr(before.size(), name.size() - before.size() - after.size());
  return is_hash(hash) ? std::optional(std::move(hash)) : std::nullopt;
}

// Takes one file of the folder in, after its bytes have been compared with `expected`.
Result<void> take_part(LoadedTask& loaded, const fs::path& folder, const std::string& name,
                       const std::string& expected) {
  const fs::path path = folder / name;
  const auto plan_hash = hash_in(name, "plans/", ".json");
  const auto image_hash = hash_in(name, "images/", ".fatbin");
  if (!plan_hash && !image_hash && name != kProblemFile)
    return changed(folder / kTaskFile, "it names the file '" + name + "', which no task has");
  Result<std::string> content = read_carried_file(folder, name);
  if (!content.ok()) return content.error();
  if (sha256_hex(*content) != expected)
    return changed(path, "it was changed or cut short: its hash is not the one in task.json");
  if (plan_hash) {
    ASSIGN_OR_RETURN(const Json json, parse_json(*content, path.string()));
    ASSIGN_OR_RETURN(LaunchPlan plan, launch_plan_from_json(json));
    if (launch_plan_hash(plan) != *plan_hash)
      return changed(path, "the plan in it is another one than its name says");
    loaded.plans.emplace(*plan_hash, std::move(plan));
  } else if (image_hash) {
    loaded.images.emplace(*image_hash, path);
  } else {
    loaded.problem_module = path;
  }
  return {};
}

}  // namespace

Result<void> write_task_folder(const EvaluationTask& task, const TaskFiles& files,
                               const fs::path& folder) {
  const std::string attempted = "write task folder " + folder.string();
  if (fs::exists(folder))
    return Error{ErrorCode::bad_input, attempted, "it is there already",
                 "name another folder, or remove it"};
  for (const auto& [hash, plan] : files.plans)
    if (launch_plan_hash(plan) != hash)
      return Error{ErrorCode::internal, attempted, "plan " + hash + " has another hash",
                   "this is a mistake in kbeam"};
  RETURN_IF_ERROR(must_be_sound(task, find_missing(task, files.plans, files.images), attempted));
  const fs::path parent = fs::absolute(folder).parent_path();
  ASSIGN_OR_RETURN(const fs::path part, make_temporary_folder(parent, ".part-"));
  const auto write_all = [&]() -> Result<void> {
    ASSIGN_OR_RETURN(Json hashes, write_parts(files, part));
    const Json body{{"task", to_json(task)}, {"files", std::move(hashes)}};
    RETURN_IF_ERROR(write_file(part / kTaskFile, seal_text(task_seal(), json_text(body))));
    std::error_code trouble;
    fs::rename(part, folder, trouble);
    if (trouble)
      return Error{ErrorCode::io, attempted, "rename: " + trouble.message(),
                   "name a folder on the same disk that does not exist"};
    return {};
  };
  const Result<void> written = write_all();
  std::error_code trouble;
  if (!written.ok()) fs::remove_all(part, trouble);
  return written;
}

Result<LoadedTask> read_task_folder(const fs::path& folder) {
  const fs::path file = folder / kTaskFile;
  ASSIGN_OR_RETURN(const std::string text, read_carried_file(folder, kTaskFile));
  ASSIGN_OR_RETURN(const SealedText sealed, take_apart(task_seal(), text, file.string()));
  RETURN_IF_ERROR(verify_seal(task_seal(), sealed, file.string()));
  ASSIGN_OR_RETURN(const Json body, parse_json(sealed.body, file.string()));
  if (!body.is_object() || !body.contains("task") || !body.contains("files") ||
      !body["files"].is_object())
    return changed(file, "it has no 'task' or no 'files'");
  LoadedTask loaded;
  loaded.task_hash = sealed.seal;
  ASSIGN_OR_RETURN(loaded.task, evaluation_task_from_json(body["task"]));
  for (const auto& [name, hash] : body["files"].items()) {
    if (!hash.is_string()) return changed(file, "field 'files." + name + "' should be a hash");
    RETURN_IF_ERROR(take_part(loaded, folder, name, hash.get<std::string>()));
  }
  RETURN_IF_ERROR(must_be_sound(loaded.task, find_missing(loaded.task, loaded.plans, loaded.images),
                                "read task folder " + folder.string()));
  return loaded;
}

Result<void> write_result(const EvaluationTask& task, const TaskResult& result,
                          const fs::path& folder) {
  return write_file(folder / kResultFile, seal_text(result_seal(task), json_text(to_json(result))));
}

Result<TaskResult> read_result(const LoadedTask& task, const fs::path& folder) {
  const fs::path file = folder / kResultFile;
  ASSIGN_OR_RETURN(const std::string text, read_carried_file(folder, kResultFile));
  const Seal seal = result_seal(task.task);
  ASSIGN_OR_RETURN(const SealedText sealed, take_apart(seal, text, file.string()));
  const Result<void> genuine = verify_seal(seal, sealed, file.string());
  // A result of another task has that task's seal: say what it is, not only that the seal is wrong.
  const Result<Json> json = parse_json(sealed.body, file.string());
  if (json.ok() && json->contains("task_id") && (*json)["task_id"].is_string()) {
    const std::string of_task = (*json)["task_id"].get<std::string>();
    if (of_task != task.task.id)
      return Error{
          ErrorCode::corrupt, "read " + file.string(),
          fmt::format("it is foreign: a result of task '{}', not of '{}'", of_task, task.task.id),
          "put every result into the folder of its own task"};
  }
  RETURN_IF_ERROR(genuine);
  if (!json.ok()) return json.error();
  ASSIGN_OR_RETURN(TaskResult result, task_result_from_json(*json));
  if (result.task_hash != task.task_hash)
    return Error{ErrorCode::corrupt, "read " + file.string(),
                 "it is foreign: the task of this id was another one when it ran",
                 "run the task again"};
  if (const std::vector<std::string> mistakes = find_result_mistakes(task.task, result);
      !mistakes.empty())
    return Error{ErrorCode::corrupt, "read " + file.string(),
                 fmt::format("it cannot stand: {}", fmt::join(mistakes, "; ")),
                 "remove result.json and run the task again"};
  return result;
}

}  // namespace kbeam
