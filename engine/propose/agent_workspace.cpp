#include "propose/agent_workspace.h"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

std::string ending_of(const std::string& target) {
  return target == "cuda" ? ".cu" : ".cpp";
}

// A command of the table in AGENTS.md.
std::string command(const WorkspaceRequest& request, const ProposalContext& context,
                    const std::string& words) {
  const bool about_problem = words.starts_with("check") || words.starts_with("bench");
  return "kbeam " + words +
         (request.kind == WorkspaceKind::by_hand && about_problem ? " --problem " + context.problem
                                                                  : std::string());
}

std::string role_text(Role role) {
  switch (role) {
    case Role::exploit:
      return "Improve the best: begin from a source in `sources/` and make it faster.";
    case Role::near_miss:
      return "Mend what almost worked: `attempts_log.md` lists near misses with their reasons.";
    case Role::structural:
      return "Try another structure than those in `ideas.md`: a different algorithm, layout or "
             "division of work. It may be slow at first.";
  }
  return {};
}

std::string commands_text(const WorkspaceRequest& request, const ProposalContext& context) {
  const std::string file = "candidate" + ending_of(context.target);
  const std::vector<std::pair<std::string, std::string>> rows{
      {"check " + file, "right on every case? A failure names case, place, value and limit"},
      {"bench " + file, "and faster than the baseline? Takes longer; costs more of your rate"},
      {"profile " + file, "what the compiler made of it"},
      {"submit " + file + " --idea 'ONE SENTENCE' --family NAME",
       "hand it to the campaign, which judges it and tunes its knobs"},
      {"ask 'who are the champions?'", "facts from the campaign's archive"}};
  std::string text = "| command | does |\n|---|---|\n";
  for (const auto& [words, does] : rows)
    text += fmt::format("| `{}` | {} |\n", command(request, context, words), does);
  return text;
}

std::string attempt_line(const AttemptBrief& attempt) {
  std::string text =
      fmt::format("- {} [{}]: {}", attempt.family, attempt.knobs, to_string(attempt.verdict));
  for (const auto& [case_name, speedup] : attempt.speedup)
    text += fmt::format(", {} {:.2f}x", case_name, speedup);
  return text + (attempt.reason.empty() ? "" : ": " + attempt.reason) + "\n";
}

std::string attempts_text(const ProposalContext& context) {
  std::string text =
      fmt::format("# Attempts\n\n{} evaluations so far. Speeds are against the baseline.\n",
                  context.evaluations);
  text += "\n## Families\n\n";
  for (const FamilyState& family : context.families)
    text += fmt::format("- {}: {}, {} evaluated, {} accepted, best {:.2f}x{}\n", family.name,
                        family.retired ? "given up" : to_string(family.role), family.evaluations,
                        family.accepted, family.best_speedup,
                        family.retired_why.empty() ? "" : "; " + family.retired_why);
  text += "\n## Near misses\n\n";
  for (const AttemptBrief& attempt : context.near_misses) text += attempt_line(attempt);
  text += "\n## Dead ends\n\nNot to be tried again as they are.\n\n";
  for (const AttemptBrief& attempt : context.dead_ends) text += attempt_line(attempt);
  return text;
}

std::string ideas_text(const ProposalContext& context) {
  std::string text = "# Ideas that the campaign knows\n\nPropose none of them again.\n\n";
  for (const std::string& idea : context.known_ideas) text += "- " + idea + "\n";
  return text;
}

std::string profile_text(const ProposalContext& context) {
  return "# What holds the champions back\n\n" +
         (context.profile.empty() ? "Nothing is known yet." : context.profile) + "\n";
}

// A name without folders, and none that begins with a dot.
std::string plain_name(const std::string& name) {
  std::string plain = fs::path(name).filename().string();
  plain.erase(0, std::min(plain.find_first_not_of('.'), plain.size()));
  return plain.empty() ? "source" : plain;
}

class Writer {
 public:
  explicit Writer(const WorkspaceRequest& request) : request_(request) {}

  Result<void> file(const fs::path& name, const std::string& text) const {
    const fs::path path = request_.folder / name;
    std::error_code trouble;
    if (request_.kind == WorkspaceKind::by_hand && fs::exists(path, trouble)) return {};
    fs::create_directories(path.parent_path(), trouble);
    return write_file(path, text);
  }

  Result<void> contract() const {
    std::error_code trouble;
    const fs::path target = request_.folder / "contract" / "kbeam";
    fs::create_directories(target, trouble);
    fs::copy(request_.contract_include / "kbeam", target,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing, trouble);
    if (!trouble) return {};
    return Error{ErrorCode::io, "copy the contract's headers to " + target.string(),
                 trouble.message(), "check free space and permissions"};
  }

 private:
  const WorkspaceRequest& request_;
};

// What the first candidate begins as: the best that is known.
std::string first_candidate(const ProposalContext& context) {
  if (!context.sources.empty()) return context.sources.front().source;
  return "#include <kbeam/candidate.h>\n\nKBEAM_PLAN(plan, args) {\n"
         "  plan.not_supported(\"nothing is written yet\");\n}\n";
}

}  // namespace

std::string agent_instructions(const WorkspaceRequest& request, const ProposalContext& context) {
  std::string text = fmt::format(
      "# Make `{}` faster\n\n"
      "You write compute kernels for kernelbeam. `problem_statement.md` says what is computed and "
      "how it is judged; every output is checked in FP64, and speed is measured by others than "
      "you.\n\n"
      "1. Read `problem_statement.md`, `attempts_log.md`, `ideas.md` and `profile/README.md`.\n"
      "2. Change `candidate{}`. It includes `kbeam/candidate.h` and standard headers only; "
      "`contract/kbeam/` has the headers to read.\n"
      "3. Check it until it is right, bench it, and submit it with the idea behind it.\n"
      "4. Go on with the next idea, or end.\n\n",
      context.problem, ending_of(context.target));
  text += commands_text(request, context);
  text +=
      "\nRules: a candidate declares its knobs (`KBEAM_KNOB`) and describes its work "
      "(`KBEAM_PLAN`). It starts no threads, opens no files, allocates nothing that outlives a "
      "call, and depends on nothing from an earlier call. Private cases answer pass or fail "
      "alone.\n";
  if (request.kind == WorkspaceKind::room)
    text += "\n## This session\n\n" + role_text(request.role) +
            "\nOnly what is submitted counts: this folder is gone when the session ends. "
            "Commands are limited in their rate; a refusal says how long to wait.\n";
  if (!context.steering.empty()) {
    text += "\n## What the people who run this campaign said, oldest first\n\n";
    for (const std::string& said : context.steering) text += "- " + said + "\n";
  }
  return text;
}

Result<void> write_workspace(const WorkspaceRequest& request, const ProposalContext& context) {
  std::error_code trouble;
  fs::create_directories(request.folder, trouble);
  const Writer write(request);
  RETURN_IF_ERROR(write.file("problem_statement.md", context.statement));
  RETURN_IF_ERROR(write.file("AGENTS.md", agent_instructions(request, context)));
  RETURN_IF_ERROR(write.file("attempts_log.md",
                             request.attempts.empty() ? attempts_text(context) : request.attempts));
  RETURN_IF_ERROR(write.file("ideas.md", ideas_text(context)));
  RETURN_IF_ERROR(write.file("profile/README.md", profile_text(context)));
  RETURN_IF_ERROR(write.file("candidate" + ending_of(context.target), first_candidate(context)));
  std::string index = "# Sources to begin from\n\n";
  for (const SourceBrief& source : context.sources) {
    const std::string name = plain_name(source.source_name);
    index += fmt::format("- `{}` [{}]: {}\n", name, source.knobs, source.title);
    RETURN_IF_ERROR(write.file(fs::path("sources") / name, source.source));
  }
  RETURN_IF_ERROR(write.file("sources/README.md", index));
  return write.contract();
}

}  // namespace kbeam
