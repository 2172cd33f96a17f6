#include "loop/answers.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/spelling.h"
#include "loop/question.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

constexpr std::size_t kMostRows = 20;
constexpr std::size_t kMostIds = 4;
constexpr std::size_t kMostText = 160;

using Line = std::vector<std::string>;

std::string shorten(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.size() <= kMostText ? text : text.substr(0, kMostText - 3) + "...";
}

std::string times(double speedup) {
  return fmt::format("{:.2f}x", speedup);
}

// Against the baseline, where that is known.
double against_baseline(const Measurement& measurement) {
  const double reference = measurement.reference_speedup;
  return measurement.summary.speedup * (std::isnan(reference) ? 1 : reference);
}

std::string speeds(const Evaluation& evaluation) {
  std::string text;
  for (const Measurement& measurement : evaluation.measurements)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", measurement.case_name,
                        times(against_baseline(measurement)));
  return text;
}

FactTable last_rows(FactTable table) {
  if (table.rows.size() <= kMostRows) return table;
  const std::size_t left_out = table.rows.size() - kMostRows;
  table.rows.erase(table.rows.begin(), table.rows.begin() + static_cast<std::ptrdiff_t>(left_out));
  table.note = fmt::format("{} earlier ones are not shown", left_out);
  return table;
}

const Champion* champion_of(const RunFacts& facts, const std::string& case_name) {
  const Champion* latest = nullptr;
  for (const RunFacts::Crowning& crowning : facts.crownings)
    if (crowning.champion.case_name == case_name) latest = &crowning.champion;
  return latest;
}

// ---- families

struct FamilyFacts {
  int evaluations = 0;
  int accepted = 0;
  double best = 0;
  std::string best_where;
  std::string state = "searched";
  std::string why;
  std::map<std::string, std::vector<std::string>> by_verdict;  // evaluation ids
};

FamilyFacts facts_of(const RunFacts& facts, const std::string& family) {
  FamilyFacts found;
  for (const AttemptRow& row : facts.attempts) {
    const Evaluation& evaluation = row.evaluation;
    if (row.candidate.family != family || evaluation.stage != Stage::screen) continue;
    ++found.evaluations;
    found.accepted += evaluation.verdict == Verdict::accepted ? 1 : 0;
    found.by_verdict[std::string(to_string(evaluation.verdict))].push_back(evaluation.id);
    for (const Measurement& measurement : evaluation.measurements) {
      if (against_baseline(measurement) <= found.best) continue;
      found.best = against_baseline(measurement);
      found.best_where = fmt::format("{} in {}", measurement.case_name, evaluation.id);
    }
  }
  for (const Decision& decision : facts.decisions) {
    if (decision.subject != family) continue;
    for (const auto& [beginning, state] :
         std::map<std::string, std::string>{{"retired family ", "retired"},
                                            {"dropped family ", "dropped"},
                                            {"protected family ", "protected"},
                                            {"brought back family ", "searched"}}) {
      if (!decision.what.starts_with(beginning)) continue;
      found.state = state;
      found.why = decision.why;
    }
  }
  return found;
}

Line family_row(const RunFacts& facts, std::size_t index) {
  const std::string& name = facts.families[index];
  const FamilyFacts family = facts_of(facts, name);
  return {std::to_string(index + 1),
          name,
          family.state,
          std::to_string(family.evaluations),
          std::to_string(family.accepted),
          family.best > 0 ? times(family.best) + " on " + family.best_where : "none",
          shorten(family.why)};
}

FactTable family_table(const RunFacts& facts, const std::vector<std::string>& names) {
  FactTable table{.title = "families",
                  .columns = {"no", "family", "state", "screened", "accepted", "best", "why"},
                  .rows = {},
                  .note = {}};
  for (std::size_t i = 0; i < facts.families.size(); ++i)
    if (names.empty() || std::find(names.begin(), names.end(), facts.families[i]) != names.end())
      table.rows.push_back(family_row(facts, i));
  return table;
}

FactTable verdicts_table(const RunFacts& facts, const std::string& family) {
  FactTable table{.title = "verdicts of family " + family,
                  .columns = {"verdict", "count", "evaluations"},
                  .rows = {},
                  .note = {}};
  for (const auto& [verdict, ids] : facts_of(facts, family).by_verdict) {
    const std::size_t shown = std::min(ids.size(), kMostIds);
    const std::vector<std::string> last(ids.end() - static_cast<std::ptrdiff_t>(shown), ids.end());
    table.rows.push_back(
        {verdict, std::to_string(ids.size()),
         (shown < ids.size() ? "..., " : "") + fmt::format("{}", fmt::join(last, ", "))});
  }
  return table;
}

FactTable decisions_table(const RunFacts& facts, const std::string& subject) {
  FactTable table{
      .title = "decisions on " + subject, .columns = {"decision", "why"}, .rows = {}, .note = {}};
  for (const Decision& decision : facts.decisions)
    if (decision.subject == subject) table.rows.push_back({decision.what, shorten(decision.why)});
  return last_rows(std::move(table));
}

// ---- evaluations

bool concerns(const AttemptRow& row, const Question& question) {
  const auto any_of = [](const std::vector<std::string>& names, const std::string& name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  return any_of(question.families, row.candidate.family) &&
         any_of(question.candidates, row.evaluation.candidate_id) &&
         any_of(question.evaluations, row.evaluation.id) &&
         any_of(question.verdicts, std::string(to_string(row.evaluation.verdict)));
}

Line evaluation_row(const AttemptRow& row) {
  const Evaluation& evaluation = row.evaluation;
  std::string knobs =
      row.candidate.rows.empty() ? std::string() : describe_knobs(row.candidate.rows.front().knobs);
  return {evaluation.id,
          evaluation.candidate_id,
          row.candidate.family,
          std::string(to_string(evaluation.stage)),
          std::string(to_string(evaluation.verdict)),
          shorten(evaluation.verdict == Verdict::accepted ? speeds(evaluation) : evaluation.reason),
          shorten(std::move(knobs))};
}

FactTable evaluations_table(const RunFacts& facts, const Question& question, std::string title,
                            const std::function<bool(const AttemptRow&)>& wanted) {
  FactTable table{.title = std::move(title),
                  .columns = {"evaluation", "candidate", "family", "stage", "verdict",
                              "speed or reason", "knobs"},
                  .rows = {},
                  .note = {}};
  for (const AttemptRow& row : facts.attempts)
    if (concerns(row, question) && wanted(row)) table.rows.push_back(evaluation_row(row));
  return last_rows(std::move(table));
}

bool everything(const AttemptRow&) {
  return true;
}
bool is_rejected(const AttemptRow& row) {
  return blame_of(row.evaluation.verdict) == Blame::candidate;
}

// Accepted, and close to the champion of some case without being it.
FactTable near_misses(const RunFacts& facts, const Question& question) {
  struct Near {
    double share = 0;
    Line row;
  };
  std::map<std::pair<std::string, std::string>, Near> best;  // by case and candidate
  for (const AttemptRow& row : facts.attempts) {
    if (!concerns(row, question)) continue;
    for (const Measurement& measurement : row.evaluation.measurements) {
      const Champion* const champion = champion_of(facts, measurement.case_name);
      if (champion == nullptr || champion->candidate_id == row.evaluation.candidate_id) continue;
      if (!question.cases.empty() && std::find(question.cases.begin(), question.cases.end(),
                                               measurement.case_name) == question.cases.end())
        continue;
      const double share = against_baseline(measurement) / champion->speedup;
      Near& near = best[{measurement.case_name, row.evaluation.candidate_id}];
      if (share <= near.share) continue;
      near = {share,
              {measurement.case_name, row.evaluation.id, row.evaluation.candidate_id,
               row.candidate.family, times(against_baseline(measurement)),
               fmt::format("{:.0f} % of {}", 100 * share, times(champion->speedup))}};
    }
  }
  std::vector<Near> order;
  for (auto& [key, near] : best) order.push_back(std::move(near));
  std::stable_sort(order.begin(), order.end(),
                   [](const Near& a, const Near& b) { return a.share > b.share; });
  FactTable table{.title = "accepted, measured close to the champion, and not champion",
                  .columns = {"case", "evaluation", "candidate", "family", "screened or confirmed",
                              "of the champion"},
                  .rows = {},
                  .note = {}};
  for (Near& near : order)
    if (table.rows.size() < kMostRows) table.rows.push_back(std::move(near.row));
  return table;
}

// ---- champions

Line crowning_row(const RunFacts::Crowning& crowning) {
  const Champion& champion = crowning.champion;
  return {champion.case_name, champion.candidate_id, champion.family,
          fmt::format("{} [{:.2f}, {:.2f}]", times(champion.speedup), champion.low, champion.high),
          shorten(crowning.why)};
}

FactTable champions_table(const RunFacts& facts) {
  FactTable table{.title = "champions of now, against the baseline, as confirmed",
                  .columns = {"case", "candidate", "family", "speedup", "decided by"},
                  .rows = {},
                  .note = {}};
  for (const std::string& case_name : facts.cases) {
    const RunFacts::Crowning* latest = nullptr;
    for (const RunFacts::Crowning& crowning : facts.crownings)
      if (crowning.champion.case_name == case_name) latest = &crowning;
    if (latest != nullptr)
      table.rows.push_back(crowning_row(*latest));
    else
      table.rows.push_back({case_name, "none", "", "", "nobody was confirmed faster"});
  }
  return table;
}

FactTable winner_table(const RunFacts& facts) {
  FactTable table{
      .title = "winner, as promoted", .columns = {"candidate", "how"}, .rows = {}, .note = {}};
  if (facts.winner.empty())
    table.rows.push_back({"none", facts.winner_text});
  else
    table.rows.push_back({facts.winner, facts.winner_text});
  return table;
}

FactTable ladder_table(const RunFacts& facts, const std::string& case_name) {
  FactTable table{.title = "champions of " + case_name + ", the latest last",
                  .columns = {"case", "candidate", "family", "speedup", "decided by"},
                  .rows = {},
                  .note = {}};
  for (const RunFacts::Crowning& crowning : facts.crownings)
    if (crowning.champion.case_name == case_name) table.rows.push_back(crowning_row(crowning));
  return last_rows(std::move(table));
}

FactTable refusals_table(const RunFacts& facts, const Question& question) {
  std::map<std::string, std::string> family_of;
  for (const AttemptRow& row : facts.attempts)
    family_of[row.evaluation.candidate_id] = row.candidate.family;
  FactTable table{.title = "screened faster than a champion, not confirmed",
                  .columns = {"case", "candidate", "family", "why"},
                  .rows = {},
                  .note = {}};
  const auto among = [](const std::vector<std::string>& names, const std::string& name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const RunFacts::Refusal& refusal : facts.refusals) {
    const std::string family = family_of[refusal.candidate_id];
    if (among(question.cases, refusal.case_name) && among(question.families, family) &&
        among(question.candidates, refusal.candidate_id))
      table.rows.push_back({refusal.case_name, refusal.candidate_id, family, shorten(refusal.why)});
  }
  return last_rows(std::move(table));
}

// ---- steering

FactTable steering_table(const RunFacts& facts) {
  FactTable table{.title = "what was said to this run",
                  .columns = {"when (UTC)", "who", "what", "about"},
                  .rows = {},
                  .note = {}};
  for (const SteeringMessage& message : facts.steering)
    table.rows.push_back(
        {fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(message.asked_unix_ms / 1000)),
         message.who, std::string(to_string(message.action)),
         shorten(message.action == SteeringAction::say ? message.text : message.family)});
  return table;
}

void drop_empty(std::vector<FactTable>& tables) {
  if (tables.size() > 1)
    std::erase_if(tables, [](const FactTable& table) { return table.rows.empty(); });
}

void answer_family(const RunFacts& facts, const Question& question, Answer& answer) {
  answer.tables.push_back(family_table(facts, question.families));
  for (const std::string& family : question.families) {
    answer.tables.push_back(decisions_table(facts, family));
    answer.tables.push_back(verdicts_table(facts, family));
  }
  if (!question.cases.empty() || question.about.contains(Topic::near_misses))
    answer.tables.push_back(near_misses(facts, question));
  answer.tables.push_back(refusals_table(facts, question));
  if (!question.verdicts.empty() || question.about.contains(Topic::rejections))
    answer.tables.push_back(
        evaluations_table(facts, question, "rejected evaluations", is_rejected));
}

void answer_names(const RunFacts& facts, const Question& question, Answer& answer) {
  if (!question.evaluations.empty() || !question.candidates.empty()) {
    answer.tables.push_back(evaluations_table(facts, question, "evaluations", everything));
    for (const std::string& id : question.candidates)
      answer.tables.push_back(decisions_table(facts, id));
  } else if (!question.families.empty()) {
    answer_family(facts, question, answer);
  } else if (!question.cases.empty()) {
    for (const std::string& case_name : question.cases)
      answer.tables.push_back(ladder_table(facts, case_name));
    answer.tables.push_back(refusals_table(facts, question));
    answer.tables.push_back(near_misses(facts, question));
  } else if (!question.verdicts.empty()) {
    answer.tables.push_back(
        evaluations_table(facts, question, "evaluations with that verdict", everything));
  }
}

void answer_topics(const RunFacts& facts, const Question& question, Answer& answer) {
  for (const Topic topic : question.about) {
    switch (topic) {
      case Topic::champions:
        answer.tables.push_back(champions_table(facts));
        answer.tables.push_back(winner_table(facts));
        break;
      case Topic::rejections:
        answer.tables.push_back(
            evaluations_table(facts, question, "rejected evaluations", is_rejected));
        break;
      case Topic::near_misses:
        answer.tables.push_back(near_misses(facts, question));
        answer.tables.push_back(refusals_table(facts, question));
        break;
      case Topic::steering:
        answer.tables.push_back(steering_table(facts));
        break;
      case Topic::families:
        answer.tables.push_back(family_table(facts, {}));
        break;
      case Topic::evaluations:
        answer.tables.push_back(
            evaluations_table(facts, question, "the latest evaluations", everything));
        break;
    }
  }
}

std::vector<std::string> questions_that_work(const RunFacts& facts) {
  std::vector<std::string> list{
      "who are the champions?", "which families are there?",         "what was rejected?",
      "what almost worked?",    "what were the latest evaluations?", "what was said to this run?"};
  if (!facts.families.empty())
    list.push_back(fmt::format("why was family {} dropped? (a number or a name: {})",
                               facts.families.size(), fmt::join(facts.families, ", ")));
  if (!facts.cases.empty())
    list.push_back(
        fmt::format("who leads {}? (or {})", facts.cases.front(), fmt::join(facts.cases, ", ")));
  if (!facts.attempts.empty())
    list.push_back(fmt::format("what happened to {} in {}?",
                               facts.attempts.front().evaluation.candidate_id,
                               facts.attempts.front().evaluation.id));
  return list;
}

}  // namespace

Result<RunFacts> gather_facts(const Archive& archive) {
  RunFacts facts;
  ASSIGN_OR_RETURN(facts.attempts, archive.attempts());
  ASSIGN_OR_RETURN(facts.decisions, archive.decisions());
  ASSIGN_OR_RETURN(const std::vector<Idea> ideas, archive.ideas());
  const auto note_family = [&](const std::string& family) {
    if (family.empty() || family == "portfolio") return;
    if (std::find(facts.families.begin(), facts.families.end(), family) == facts.families.end())
      facts.families.push_back(family);
  };
  for (const Idea& idea : ideas) note_family(idea.family);
  for (const AttemptRow& row : facts.attempts) {
    note_family(row.candidate.family);
    for (const Measurement& measurement : row.evaluation.measurements)
      if (std::find(facts.cases.begin(), facts.cases.end(), measurement.case_name) ==
          facts.cases.end())
        facts.cases.push_back(measurement.case_name);
  }
  ASSIGN_OR_RETURN(const std::vector<Event> events, archive.events());
  for (const Event& event : events) {
    if (event.kind != "champion" && event.kind != "refusal" && event.kind != "steering") continue;
    ASSIGN_OR_RETURN(const Json body, parse_json(event.body, "an event of the archive"));
    if (event.kind == "champion") {
      ASSIGN_OR_RETURN(Champion champion, champion_from_json(body));
      facts.crownings.push_back({std::move(champion), {}});
    } else if (event.kind == "refusal") {
      facts.refusals.push_back(
          {body.value("case_name", ""), body.value("candidate_id", ""), body.value("why", "")});
    } else {
      ASSIGN_OR_RETURN(SteeringMessage message, steering_message_from_json(body));
      facts.steering.push_back(std::move(message));
    }
  }
  // The decision on a crowning is written right behind it.
  std::size_t next = 0;
  for (const Decision& decision : facts.decisions)
    if (decision.what.starts_with("champion of ") && next < facts.crownings.size())
      facts.crownings[next++].why = decision.why;
  facts.winner_text = "nothing was promoted yet";
  for (const Decision& decision : facts.decisions) {
    if (decision.what == "winner") facts.winner = decision.subject;
    if (decision.what == "winner" || decision.what == "not promoted")
      facts.winner_text = decision.what + ": " + decision.why;
  }
  return facts;
}

Answer answer_question(const RunFacts& facts, const std::string& text) {
  Vocabulary vocabulary{
      .families = facts.families, .cases = facts.cases, .candidates = {}, .evaluations = {}};
  for (const AttemptRow& row : facts.attempts) {
    vocabulary.candidates.push_back(row.evaluation.candidate_id);
    vocabulary.evaluations.push_back(row.evaluation.id);
  }
  const Question question = read_question(text, vocabulary);
  Answer answer{
      .read_as = describe(question), .tables = {}, .advice = question.advice, .can_ask = {}};
  answer_names(facts, question, answer);
  if (answer.tables.empty()) answer_topics(facts, question, answer);
  drop_empty(answer.tables);
  if (answer.tables.empty()) answer.read_as.clear();
  answer.can_ask = questions_that_work(facts);
  return answer;
}

Json to_json(const Answer& answer) {
  Json tables = Json::array();
  for (const FactTable& table : answer.tables)
    tables.push_back({{"title", table.title},
                      {"columns", table.columns},
                      {"rows", table.rows},
                      {"note", table.note}});
  return {{"answered", !answer.read_as.empty()},
          {"read_as", answer.read_as},
          {"tables", std::move(tables)},
          {"advice", answer.advice},
          {"can_ask", answer.can_ask}};
}

std::string to_text(const Answer& answer) {
  std::string text;
  if (answer.read_as.empty()) {
    text = "I cannot answer that from the archive." +
           (answer.advice.empty() ? std::string() : " " + answer.advice) + "\nWhat can be asked:\n";
    for (const std::string& question : answer.can_ask) text += "  " + question + "\n";
    return text;
  }
  text = "read as: " + answer.read_as + "\n";
  for (const FactTable& table : answer.tables) {
    text += "\n" + table.title + "\n";
    std::vector<std::size_t> widths(table.columns.size());
    std::vector<Line> lines{table.columns};
    lines.insert(lines.end(), table.rows.begin(), table.rows.end());
    for (const Line& line : lines)
      for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
    for (const Line& line : lines) {
      std::string row = " ";
      for (std::size_t i = 0; i < line.size(); ++i)
        row += fmt::format(" {:<{}}", line[i], i + 1 < line.size() ? widths[i] + 1 : 0);
      text += row + "\n";
    }
    if (table.rows.empty()) text += "  none\n";
    if (!table.note.empty()) text += "  (" + table.note + ")\n";
  }
  return text;
}

}  // namespace kbeam
