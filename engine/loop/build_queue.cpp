#include "loop/build_queue.h"

#include "base/check.h"
#include "base/hash.h"

namespace kbeam {
namespace {

std::string row_key(const Row& row) {
  Hasher hasher;
  hasher.field(row.source);
  for (const auto& [name, value] : row.knobs) hasher.field(name).field(value);
  return hasher.hex();
}

}  // namespace

const Artifact* BuiltCandidate::failed() const {
  for (const Artifact& artifact : artifacts)
    if (artifact.verdict != Verdict::accepted) return &artifact;
  return nullptr;
}

BuildQueue::BuildQueue(Compiler& compiler, std::vector<std::string> problem_flags,
                       ActivityMeter& meter)
    : compiler_(compiler),
      problem_flags_(std::move(problem_flags)),
      meter_(meter),
      thread_([this] { work(); }) {}

BuildQueue::~BuildQueue() {
  {
    const std::lock_guard guard(mutex_);
    closing_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void BuildQueue::push(Candidate candidate) {
  {
    const std::lock_guard guard(mutex_);
    waiting_.push_back(std::move(candidate));
    ++in_flight_;
  }
  changed_.notify_all();
}

std::size_t BuildQueue::in_flight() const {
  const std::lock_guard guard(mutex_);
  return in_flight_;
}

BuiltCandidate BuildQueue::pop() {
  std::unique_lock lock(mutex_);
  CHECK(in_flight_ > 0, "pop() needs something in flight");
  changed_.wait(lock, [this] { return !done_.empty(); });
  BuiltCandidate built = std::move(done_.front());
  done_.pop_front();
  --in_flight_;
  return built;
}

std::optional<BuildQueue::KnownRow> BuildQueue::find_row(const Row& row) const {
  const std::lock_guard guard(mutex_);
  const auto found = known_.find(row_key(row));
  if (found == known_.end()) return std::nullopt;
  return found->second;
}

BuiltCandidate BuildQueue::build_now(const Candidate& candidate) {
  return build_rows(candidate, {}, false);
}

BuiltCandidate BuildQueue::build_trusted(const Candidate& candidate,
                                         const std::vector<std::string>& link) {
  return build_rows(candidate, link, true);
}

BuiltCandidate BuildQueue::build_rows(const Candidate& candidate,
                                      const std::vector<std::string>& link, bool trusted) {
  BuiltCandidate built{candidate, {}, std::nullopt};
  for (const Row& row : candidate.rows) {
    if (const std::optional<KnownRow> known = find_row(row)) {
      built.artifacts.push_back(known->artifact);
      continue;
    }
    const std::lock_guard one_at_a_time(compiler_mutex_);
    const ActivityMeter::Span busy(meter_);
    Result<Artifact> artifact =
        compiler_.build({row.source, row.source_name, row.knobs, problem_flags_, link});
    if (!artifact.ok()) {
      built.engine_error = artifact.error();
      return built;
    }
    if (artifact->verdict != Verdict::engine_failed) {
      const std::lock_guard guard(mutex_);
      known_[row_key(row)] = {*artifact, trusted};
    }
    built.artifacts.push_back(std::move(*artifact));
  }
  return built;
}

void BuildQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (closing_) return;
    const Candidate candidate = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    BuiltCandidate built = build_now(candidate);
    lock.lock();
    done_.push_back(std::move(built));
    changed_.notify_all();
  }
}

Subject BuildQueue::subject_of(const Candidate& candidate, const std::string& id) const {
  Subject subject{.id = id, .rows = candidate.rows, .modules = {}};
  for (const Row& row : candidate.rows) {
    const std::optional<KnownRow> known = find_row(row);
    CHECK(known && known->artifact.verdict == Verdict::accepted,
          "every row of a subject has been built");
    subject.modules.push_back(known->artifact.module);
    subject.kernels.push_back(known->artifact.kernels);
    subject.may_use_libraries = subject.may_use_libraries || known->trusted;
  }
  return subject;
}

}  // namespace kbeam
