// Where ideas come from, as the loop sees it: a language model, a coding agent, a recorded run. The
// loop asks with a snapshot of what it knows and takes what comes when it comes; it never waits for
// a proposer while it has other work. A proposer judges nothing and cannot reach the archive, the
// oracle or a seed: all that it can bring is ideas and source text.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/campaign.h"
#include "model/candidate.h"
#include "model/verdict.h"

namespace kbeam {

// ---- what a proposer is told

// One judged source, as proposers may know it.
struct AttemptBrief {
  std::string family;
  std::string idea;   // its text
  std::string knobs;  // "kPanel=32"
  Verdict verdict = Verdict::engine_failed;
  std::string reason;                     // when not accepted; silent on private cases
  std::map<std::string, double> speedup;  // per case, against the baseline
};

struct SourceBrief {
  std::string title;  // "champion of c64 and c512, 1.31 x and 1.20 x the baseline"
  std::string source_name;
  std::string source;
  std::string knobs;
};

// A value: proposers read it on their own threads while the loop goes on.
struct ProposalContext {
  std::string problem;    // its name
  std::string target;     // "cpu", "cuda"
  std::string statement;  // what must be computed and how it is judged: markdown
  std::vector<FamilyState> families;
  std::vector<SourceBrief> sources;  // champions; the baselines before there is one
  std::vector<AttemptBrief> near_misses;
  std::vector<AttemptBrief> dead_ends;
  std::vector<std::string> known_ideas;  // texts, so that none is proposed again
  std::vector<std::string> steering;     // what people said to this run, oldest first
  std::string profile;                   // what holds the champions back, in a sentence
  int evaluations = 0;
  int champions_version = 0;  // raised by every new champion: tells stale parents
};

struct ProposalAsk {
  int number = 0;  // from 1 in a campaign, resumed or not
  Role role = Role::structural;
  std::shared_ptr<const ProposalContext> context;
};

// How a source that was delivered fared. The first one may be answered with a repaired source.
struct Judgement {
  std::string delivery_id;
  bool first = false;
  bool duplicate = false;  // of a source that the campaign knew: not judged again
  std::string candidate_id;
  Verdict verdict = Verdict::engine_failed;
  std::string reason;
  std::string log;                        // the compiler's words
  std::map<std::string, double> speedup;  // per case, against the baseline
  double gain = 0;  // mean over the cases of ln(speedup / champion's), where positive
};

// ---- what a proposer says

// How a request ended. Closed: status, report and dataset count by these words.
enum class ReplyOutcome {
  delivered,       // ideas or a source came of it
  no_code_block,   // words only
  several_files,   // more than one source where one was asked for
  not_json,        // ideas were asked for in JSON
  no_ideas,        // well-formed, but empty
  duplicate,       // every idea in it was known
  truncated,       // the reply ended early, or at the model's length limit
  refused,         // the model declined
  wrong_contract,  // a source that is no candidate
  overstepped,     // asked for more than a reply can give: a tool, a command, a verdict
  garbled,         // not in the form of the protocol
  oversize,        // beyond the limit on a reply; the rest was not read
  timed_out,
  http_error,   // a status that is an error, after all retries
  unreachable,  // no connection, after all retries
  not_allowed,  // a budget had no room for it: never sent
  cancelled,    // the campaign ended first
  lost,         // kbeam was killed while it was under way
};
std::string_view to_string(ReplyOutcome outcome);
std::optional<ReplyOutcome> parse_reply_outcome(std::string_view word);

struct Usage {
  std::int64_t tokens_in = 0;
  std::int64_t tokens_out = 0;
  std::int64_t tokens_estimated = 0;  // of both: counted here because nobody reported them
  double money = 0;
};

// Announced before it is made: the loop writes it down, then allows it or, out of budget, not.
struct RequestRecord {
  std::string id;  // unique in the campaign; names what it is for, so that a replay finds its reply
  int ask = 0;
  std::string model;        // or the agent's command
  std::string step;         // "ideas", "code", "repair", "session"
  std::string prompt;       // as sent, without any key
  Usage most;               // what it can cost
  double prompt_money = 0;  // the part of that for the prompt, which is read whatever comes of it
};

struct ReplyRecord {
  std::string request_id;
  std::string model;
  std::string step;
  ReplyOutcome outcome = ReplyOutcome::lost;
  bool by_connection = false;  // the outcome is not in the text: a replay has to take it from here
  std::string detail;          // one sentence where the word does not say all
  std::string text;            // as it came, keys redacted, bounded
  Usage usage;
  double latency_s = 0;
  int attempts = 1;                   // requests sent, retries included
  std::vector<std::string> troubles;  // what each retry was for: "429", "500", "stalled"
};

struct Delivery {
  std::string id;  // unique in the campaign
  std::string request_id;
  std::string model;
  Idea idea;  // variants of one idea share it, id and all
  std::string source;
  std::string source_name;
};

struct Remark {  // worth a line on the terminal and in the archive
  std::string text;
};

using ProposerNews = std::variant<RequestRecord, ReplyRecord, Delivery, Remark>;

enum class ProposerState {
  ready,    // takes an ask
  working,  // takes none now; news will come
  resting,  // after failures, until some time has passed
  finished  // nothing will ever come again
};

// Rung by a proposer's threads when there is news.
class NewsBell {
 public:
  void ring();
  // Returns at once when it was rung since the last wait.
  void wait(double most_s);

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  bool pending_ = false;
};

// Where the loop stands. A replay brings each recorded reply at the moment at which it came.
struct Moment {
  int evaluations = 0;
  bool is_idle = false;  // the loop has nothing else to do
};

// Called by the loop's thread alone; none of the calls waits.
class Proposer {
 public:
  virtual ~Proposer() = default;  // ends what is under way

  virtual std::string name() const = 0;  // "llm:http://localhost:8080/v1", "agent:codex"
  virtual ProposerState state() const = 0;
  virtual void ask(const ProposalAsk& ask) = 0;  // only in state ready
  // What happened since the last call, in its order.
  virtual std::vector<ProposerNews> take_news(const Moment& moment) = 0;
  // Of every RequestRecord, once: a request that is not allowed is dropped.
  virtual void allow(const std::string& request_id) = 0;
  virtual void forbid(const std::string& request_id) = 0;
  virtual void tell(const Judgement& judgement) = 0;
};

}  // namespace kbeam
