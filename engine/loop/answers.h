// Questions about a run, answered from its archive: tables of facts with evaluation ids. It matches
// the names and a few words of a question; it understands nothing else and invents nothing, and
// says so when it cannot answer.
#pragma once

#include <string>
#include <vector>

#include "archive/archive.h"
#include "base/json.h"
#include "base/result.h"
#include "loop/inbox.h"

namespace kbeam {

// What is in the archive, as answers need it.
struct RunFacts {
  struct Crowning {
    Champion champion;
    std::string why;  // begins with the evaluation's id
  };
  struct Refusal {  // of a challenge
    std::string case_name;
    std::string candidate_id;
    std::string why;
  };
  std::vector<AttemptRow> attempts;   // one an evaluation, in their order
  std::vector<std::string> families;  // in the order of arrival
  std::vector<Decision> decisions;    // in their order
  std::vector<Crowning> crownings;    // in their order
  std::vector<Refusal> refusals;      // in their order
  std::vector<std::string> cases;     // those that somebody was timed on
  std::vector<SteeringMessage> steering;
  std::string winner;  // candidate id; empty: none yet
  std::string winner_text;
};
Result<RunFacts> gather_facts(const Archive& archive);

struct FactTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::string note;  // "12 more"; empty: nothing was left out
};

struct Answer {
  std::string read_as;  // how the question was read; empty: it was not understood
  std::vector<FactTable> tables;
  std::string advice;                // when it was not: a name that may have been meant
  std::vector<std::string> can_ask;  // questions that this run can be asked
};
Answer answer_question(const RunFacts& facts, const std::string& question);

Json to_json(const Answer& answer);
std::string to_text(const Answer& answer);

}  // namespace kbeam
