// What a run writes is there afterwards: across reopening, beside readers, after SIGKILL, and never
// silently changed.
#include "archive/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "archive/database.h"
#include "archive/derived_tables.h"
#include "archive/schema.h"
#include "archive/stored_forms.h"
#include "archive/writer_lock.h"
#include "base/files.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

Idea make_idea(int i) {
  const std::string number = std::to_string(i);
  return {"idea" + number, "blocked", "blocking", "text " + number, "2 x", {}, "builtin"};
}

Candidate make_candidate(int i) {
  Candidate candidate;
  candidate.idea_id = "idea" + std::to_string(i);
  candidate.family = "blocked";
  candidate.origin = "builtin/random";
  candidate.rows = {Row{"// source number " + std::to_string(i) + " of the archive test\n",
                        "a.cpp",
                        {{"kPanel", "32"}},
                        0,
                        31},
                    Row{"// shared\n", "b.cpp", {}, 32, INT64_MAX}};
  candidate.id = candidate_id(candidate);
  return candidate;
}

Evaluation make_accepted(int i) {
  Evaluation evaluation;
  evaluation.id = "e" + std::to_string(i);
  evaluation.candidate_id = make_candidate(i).id;
  evaluation.verdict = Verdict::accepted;
  evaluation.grade = "fp32";
  evaluation.sandbox = SandboxLevel::namespaces;
  CheckReport report{"n64", Verdict::accepted, "fp32", "", {}, 3, UINT64_MAX};
  report.figures = {{"residual", 12.5, 80, "eps", "matrix 3"},
                    {"orthogonality", std::nan(""), 128, "eps", ""}};
  evaluation.checks = {report};
  Measurement measurement;
  measurement.case_name = "n64";
  measurement.reference = "lapack";
  measurement.samples = {{1e6 + i, 0.1}, {3e6, 1.0 / 3}, {1, 0}, {0, -1}};
  measurement.stopping_rule = "screen 5";
  measurement.noise_floor = 0.005;
  measurement.summary = {1e6, 3e6, 3.0, -HUGE_VAL, HUGE_VAL, 0.99, 2, Comparison::faster};
  evaluation.measurements = {measurement};
  return evaluation;
}

class ArchiveTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_temporary_folder(fs::temp_directory_path(), "kbeam-archive-test-").value();
    file_ = folder_ / "archive.sqlite";
    config_.run_id = "r1";
    config_.seed = UINT64_MAX;
    environment_.cpu = "a processor";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<Archive> create() {
    auto archive = Archive::create(file_, config_, environment_);
    EXPECT_TRUE(archive.ok()) << archive.error().text();
    return std::move(archive).value();
  }

  // One of everything, `count` times.
  static void fill(Archive& archive, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(archive.append_idea(make_idea(i)).ok());
      ASSERT_TRUE(archive.append_candidate(make_candidate(i)).ok());
      Artifact artifact;
      artifact.log = "warning " + std::to_string(i);
      ASSERT_TRUE(archive.append_artifact(make_candidate(i).id, artifact).ok());
      ASSERT_TRUE(archive.append_evaluation(make_accepted(i)).ok());
      ASSERT_TRUE(archive.append_decision({"kept", make_candidate(i).id, "it is correct"}).ok());
      ASSERT_TRUE(archive.append_event("phase", Json{{"number", i}}).ok());
    }
  }

  // Every derived table as text.
  std::map<std::string, std::string> dump_tables() {
    const Database database = Database::open(file_, OpenMode::read_only).value();
    std::map<std::string, std::string> tables;
    for (const std::string_view name : derived_table_names()) {
      Statement columns =
          database.prepare("SELECT name FROM pragma_table_info('" + std::string(name) + "')")
              .value();
      std::string list;
      while (columns.step().value())
        list += (list.empty() ? "" : " || '|' || ") + ("quote(" + columns.text(0) + ")");
      Statement rows =
          database.prepare("SELECT " + list + " FROM " + std::string(name) + " ORDER BY 1").value();
      std::string& text = tables[std::string(name)];
      while (rows.step().value()) text += rows.text(0) + "\n";
    }
    return tables;
  }

  void execute(const std::string& sql) {
    Database database = Database::open(file_, OpenMode::append).value();
    const Result<void> done = database.execute(sql);
    ASSERT_TRUE(done.ok()) << done.error().text();
  }

  // Changes one byte of the closed file where `text` lies; the pages around it stay valid.
  void flip_byte_of(const std::string& text) {
    std::string bytes = read_file(file_).value();
    const std::size_t position = bytes.find(text);
    ASSERT_NE(position, std::string::npos) << text;
    bytes[position + text.size() - 1] ^= 1;
    ASSERT_TRUE(write_file(file_, bytes).ok());
  }

  fs::path folder_;
  fs::path file_;
  CampaignConfig config_;
  Environment environment_;
};

TEST_F(ArchiveTest, GivesBackWhatWasAppendedAfterReopening) {
  fill(*create(), 3);
  const auto archive = Archive::open_for_append(file_).value();
  EXPECT_EQ(to_json(archive->config()), to_json(config_));
  EXPECT_EQ(to_json(archive->environment()), to_json(environment_));
  ASSERT_EQ(archive->ideas().value().size(), 3u);
  EXPECT_EQ(to_json(archive->ideas().value()[1]), to_json(make_idea(1)));
  ASSERT_EQ(archive->candidates().value().size(), 3u);
  EXPECT_EQ(to_json(archive->candidates().value()[2]), to_json(make_candidate(2)));
  EXPECT_EQ(archive->find_candidate(make_candidate(1).id).value()->rows[0].source,
            make_candidate(1).rows[0].source);
  EXPECT_EQ(archive->find_candidate("nobody").value(), std::nullopt);
  ASSERT_EQ(archive->evaluations().value().size(), 3u);
  EXPECT_EQ(to_json(archive->evaluations().value()[2]), to_json(make_accepted(2)));
  EXPECT_EQ(archive->count_evaluations().value(), 3);
  EXPECT_EQ(archive->decisions().value()[0].why, "it is correct");
  EXPECT_EQ(archive->last_event("phase").value().value()["number"], 2);
  EXPECT_EQ(archive->last_event("nothing").value(), std::nullopt);
  EXPECT_TRUE(archive->verify().ok());
}

TEST_F(ArchiveTest, AForkBeginsWithAllThatItsParentHas) {
  const auto parent = create();  // running: its writer is at work
  fill(*parent, 2);
  const std::vector<Event> before = parent->events().value();
  CampaignConfig config = config_;
  config.run_id = "another";
  config.budget.evaluations = 77;
  const fs::path file = folder_ / "forks" / "another" / "archive.sqlite";
  ASSERT_TRUE(Archive::fork({file_, file, config, "a tester"}).ok());
  ASSERT_TRUE(parent->append_idea(make_idea(7)).ok());  // the parent goes on alone
  const auto fork = Archive::open_for_append(file).value();
  EXPECT_EQ(fork->config().run_id, "another");
  EXPECT_EQ(fork->config().budget.evaluations, 77);
  const std::vector<Event> events = fork->events().value();
  ASSERT_EQ(events.size(), before.size() + 1);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(events[i].body, before[i].body);
    EXPECT_EQ(events[i].unix_ms, before[i].unix_ms);
  }
  const Json origin = fork->last_event("fork").value().value();
  EXPECT_EQ(origin["parent_run_id"], config_.run_id);
  EXPECT_EQ(origin["parent_events"], before.size());
  EXPECT_EQ(origin["who"], "a tester");
  EXPECT_EQ(fork->candidates().value().size(), 2u);
  EXPECT_EQ(fork->evaluations().value().size(), 2u);
  EXPECT_TRUE(fork->verify().ok());
  EXPECT_TRUE(fork->append_event("phase", {{"number", 9}}).ok());
  EXPECT_EQ(parent->config().run_id, config_.run_id);
}

TEST_F(ArchiveTest, AForkAppearsWholeOrNotAtAll) {
  create();
  EXPECT_FALSE(Archive::fork({file_, file_, config_, "onto itself"}).ok());
  EXPECT_TRUE(Archive::open_read_only(file_)->get()->verify().ok());
  const fs::path nowhere = folder_ / "no" / "archive.sqlite";
  EXPECT_FALSE(Archive::fork({folder_ / "missing.sqlite", nowhere, config_, "of nothing"}).ok());
  EXPECT_FALSE(fs::exists(nowhere));
}

TEST_F(ArchiveTest, EventsAreNumberedWithoutGapsAndKeepTheirOrder) {
  fill(*create(), 1);
  const auto archive = Archive::open_read_only(file_).value();
  std::vector<std::string> kinds;
  const std::vector<Event> events = archive->events().value();
  for (const Event& event : events) {
    kinds.push_back(event.kind);
    EXPECT_EQ(event.sequence, static_cast<std::int64_t>(kinds.size()));
  }
  EXPECT_THAT(kinds, testing::ElementsAre("campaign", "idea", "candidate", "artifact", "evaluation",
                                          "decision", "phase"));
  EXPECT_EQ(archive->events(5).value().size(), 2u);
}

TEST_F(ArchiveTest, AttemptsJoinIdeaCandidateAndDecisions) {
  {
    const auto archive = create();
    fill(*archive, 2);
    ASSERT_TRUE(archive->append_decision({"retired", make_candidate(1).id, "slow"}).ok());
  }
  const auto attempts = Archive::open_read_only(file_).value()->attempts().value();
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_EQ(attempts[1].evaluation.id, "e1");
  EXPECT_EQ(attempts[1].idea.text, "text 1");
  EXPECT_EQ(attempts[1].decision, "kept: it is correct\nretired: slow");
  EXPECT_EQ(attempts[1].candidate.rows[0].knobs.at("kPanel"), "32");
  EXPECT_EQ(attempts[1].candidate.rows[0].source, "");
  EXPECT_EQ(attempts[1].source_hashes.at(0), make_blob(make_candidate(1).rows[0].source).hash);
}

TEST_F(ArchiveTest, AnIdThatComesTwiceIsAddedOnceAndNeverReplaced) {
  const auto archive = create();
  ASSERT_TRUE(archive->append_idea(make_idea(1)).ok());
  ASSERT_TRUE(archive->append_idea(make_idea(1)).ok());
  EXPECT_EQ(archive->ideas().value().size(), 1u);
  Idea other = make_idea(1);
  other.text = "something else";
  EXPECT_THAT(archive->append_idea(other).error().text(), HasSubstr("idea idea1"));
  Candidate submitted = make_candidate(1);
  ASSERT_TRUE(archive->append_candidate(submitted).ok());
  submitted.origin = "manual";
  submitted.rows[0].source_name = "by_hand.cpp";
  EXPECT_TRUE(archive->append_candidate(submitted).ok());
  EXPECT_EQ(archive->candidates().value().at(0).origin, "builtin/random");
  submitted.rows[0].knobs["kPanel"] = "64";  // under the old id
  EXPECT_THAT(archive->append_candidate(submitted).error().text(), HasSubstr(submitted.id));
  ASSERT_TRUE(archive->append_evaluation(make_accepted(1)).ok());
  const Result<void> again = archive->append_evaluation(make_accepted(1));
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().text(), HasSubstr("record evaluation"));
  EXPECT_EQ(archive->events().value().size(), 4u);  // the refused append left nothing
  EXPECT_TRUE(archive->verify().ok());
}

TEST_F(ArchiveTest, AFailedCandidateHasNoSpeedInTheArchive) {
  const auto archive = create();
  Evaluation evaluation = make_accepted(1);
  evaluation.verdict = Verdict::wrong_value;
  ASSERT_TRUE(archive->append_evaluation(evaluation).ok());
  EXPECT_TRUE(archive->evaluations().value()[0].measurements.empty());
  EXPECT_THAT(dump_tables().at("measurements"), "");
}

TEST_F(ArchiveTest, TablesRebuiltFromEventsAreTheSame) {
  fill(*create(), 3);
  const auto before = dump_tables();
  for (const auto& [name, text] : before) EXPECT_NE(text, "") << name;
  execute("DELETE FROM measurements; UPDATE evaluations SET verdict = 'crashed'; DELETE FROM rows");
  EXPECT_NE(dump_tables(), before);
  ASSERT_TRUE(Archive::open_for_append(file_).value()->rebuild_tables().ok());
  EXPECT_EQ(dump_tables(), before);
}

TEST_F(ArchiveTest, ADerivedRowThatTheEventsDoNotSayIsNamed) {
  fill(*create(), 2);
  const auto complaint = [&] {
    const Result<void> verified = Archive::open_read_only(file_).value()->verify();
    return verified.ok() ? "" : verified.error().text();
  };
  execute("UPDATE evaluations SET verdict = 'crashed' WHERE id = 'e1'");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("table evaluations"), HasSubstr("e1")));
  ASSERT_TRUE(Archive::open_for_append(file_).value()->rebuild_tables().ok());
  EXPECT_EQ(complaint(), "");
  execute("DELETE FROM decisions");
  EXPECT_THAT(complaint(), HasSubstr("table decisions"));
  ASSERT_TRUE(Archive::open_for_append(file_).value()->rebuild_tables().ok());
  execute("INSERT INTO ideas SELECT 'more', 1, 'f', 'c', 't', 'e', '[]', 's'");
  EXPECT_THAT(complaint(), HasSubstr("table ideas, which has rows of no event"));
}

TEST_F(ArchiveTest, MissingContentIsNamedByItsHash) {
  fill(*create(), 1);
  const std::string hash = make_blob(encode_samples(make_accepted(0).measurements[0].samples)).hash;
  execute("DELETE FROM blobs WHERE hash = '" + hash + "'");
  EXPECT_THAT(Archive::open_read_only(file_).value()->verify().error().text(),
              AllOf(HasSubstr(hash), HasSubstr("event 5 (evaluation)")));
}

// Whatever byte of the file is flipped: it is refused with words, or it changed nothing that is
// read. Positions are spread over the whole file.
TEST_F(ArchiveTest, AFlippedByteAnywhereIsRefusedOrWithoutEffect) {
  fill(*create(), 2);
  const std::string whole = read_file(file_).value();
  const auto everything = [&]() -> std::string {
    const auto archive = Archive::open_read_only(file_);
    if (!archive.ok()) return "refused: " + archive.error().text();
    if (const auto verified = (*archive)->verify(); !verified.ok())
      return "refused: " + verified.error().text();
    std::string text;
    const auto events = (*archive)->events();
    for (const Event& event : *events) text += event.body + "\n";
    const auto candidates = (*archive)->candidates();
    for (const Candidate& one : *candidates) text += json_text(to_json(one));
    const auto evaluations = (*archive)->evaluations();
    for (const Evaluation& one : *evaluations) text += json_text(to_json(one));
    return text;
  };
  const std::string before = everything();
  ASSERT_THAT(before, testing::Not(testing::StartsWith("refused")));
  int refused = 0;
  constexpr std::size_t kStep = 211;  // a prime, so that it meets every place of a page
  for (std::size_t position = 0; position < whole.size(); position += kStep) {
    std::string bytes = whole;
    bytes[position] = static_cast<char>(bytes[position] ^ (1 << position % 8));
    ASSERT_TRUE(write_file(file_, bytes).ok());
    const std::string after = everything();
    if (after.starts_with("refused: "))
      ++refused;
    else
      EXPECT_TRUE(after == before) << "byte " << position;
  }
  EXPECT_GT(refused, 50);
}

TEST_F(ArchiveTest, WhatIsPutTogetherIsThereTogetherOrNotAtAll) {
  const auto archive = create();
  const auto put = [&](ErrorCode outcome) {
    return archive->together([&]() -> Result<void> {
      RETURN_IF_ERROR(archive->append_candidate(make_candidate(1)));
      RETURN_IF_ERROR(archive->append_evaluation(make_accepted(1)));
      // Within, what was appended is seen: once is enough.
      RETURN_IF_ERROR(archive->append_candidate(make_candidate(1)));
      if (outcome == ErrorCode::internal) return Error{ErrorCode::internal, "go on", "no", ""};
      return archive->append_decision({"kept", make_candidate(1).id, "why"});
    });
  };
  EXPECT_EQ(put(ErrorCode::internal).error().attempted, "go on");
  EXPECT_EQ(archive->events().value().size(), 1u);
  EXPECT_EQ(archive->count_evaluations().value(), 0);
  ASSERT_TRUE(put(ErrorCode::io).ok());
  EXPECT_EQ(archive->events().value().size(), 4u);
  EXPECT_TRUE(archive->verify().ok());
}

class SteppingClock final : public Clock {
 public:
  std::int64_t monotonic_ns() const override { return 0; }
  std::int64_t unix_ms() const override { return now_ms; }
  std::int64_t now_ms = 1'800'000'000'000;
};

TEST_F(ArchiveTest, AClockThatWentBackIsRecordedAndLosesNothing) {
  SteppingClock clock;
  {
    auto archive = Archive::create(file_, config_, environment_, {.clock = &clock}).value();
    ASSERT_TRUE(archive->append_evaluation(make_accepted(1)).ok());
    clock.now_ms -= 500;  // as a clock in step with others does
    ASSERT_TRUE(archive->append_evaluation(make_accepted(2)).ok());
    EXPECT_EQ(archive->last_event("clock_went_back").value(), std::nullopt);
    clock.now_ms -= 3'600'000;
    ASSERT_TRUE(archive->append_evaluation(make_accepted(3)).ok());
  }
  const auto archive = Archive::open_for_append(file_, {.clock = &clock}).value();
  const auto jump = archive->last_event("clock_went_back").value();
  ASSERT_TRUE(jump.has_value());
  EXPECT_EQ(
      jump->at("from_unix_ms").get<std::int64_t>() - jump->at("to_unix_ms").get<std::int64_t>(),
      3'600'000);
  std::vector<std::string> ids;
  const auto evaluations = archive->evaluations();
  for (const Evaluation& evaluation : *evaluations) ids.push_back(evaluation.id);
  EXPECT_THAT(ids, testing::ElementsAre("e1", "e2", "e3"));
  ASSERT_TRUE(archive->append_evaluation(make_accepted(4)).ok());
  EXPECT_EQ(archive->events().value().size(), 6u);  // the jump is recorded once
  EXPECT_TRUE(archive->verify().ok());
}

TEST_F(ArchiveTest, ADatabaseThatAnotherHasLockedIsAClearErrorAndLosesNothing) {
  create();
  const auto archive = Archive::open_for_append(file_, {.busy_timeout_ms = 1}).value();
  ASSERT_TRUE(archive->append_evaluation(make_accepted(1)).ok());
  {
    Database other = Database::open(file_, OpenMode::append).value();
    ASSERT_TRUE(other.execute("BEGIN IMMEDIATE").ok());
    const Result<void> refused = archive->append_evaluation(make_accepted(2));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::busy);
    EXPECT_THAT(refused.error().text(),
                AllOf(HasSubstr("record evaluation in archive"), HasSubstr("locked"),
                      HasSubstr("end that process"), HasSubstr("recorded before is whole")));
    ASSERT_TRUE(other.execute("ROLLBACK").ok());
  }
  EXPECT_EQ(archive->count_evaluations().value(), 1);
  EXPECT_TRUE(archive->append_evaluation(make_accepted(2)).ok());
  EXPECT_TRUE(archive->verify().ok());
}

TEST_F(ArchiveTest, ARunBeginsWholeOrNotAtAll) {
  const fs::path run = folder_ / "run";
  fs::create_directories(run);
  // What a process left that was killed while it began.
  ASSERT_TRUE(write_file(run / "archive.sqlite.draft", "half").ok());
  ASSERT_TRUE(write_file(run / "archive.lock", "1\n").ok());
  { ASSERT_TRUE(Archive::create(run / "archive.sqlite", config_, environment_).ok()); }
  EXPECT_TRUE(Archive::open_read_only(run / "archive.sqlite").value()->verify().ok());
  EXPECT_FALSE(fs::exists(run / "archive.sqlite.draft"));
  EXPECT_FALSE(fs::exists(run / "archive.lock"));
}

TEST_F(ArchiveTest, OnlyARunThatNeverBeganIsClearedAway) {
  const fs::path run = folder_ / "run";
  fs::create_directories(run);
  ASSERT_TRUE(write_file(run / "archive.sqlite.draft", "half").ok());
  {
    const auto beginning = WriterLock::take(run / "archive.sqlite");
    EXPECT_FALSE(remove_stillborn_run(run)) << "somebody is beginning it";
  }
  EXPECT_TRUE(remove_stillborn_run(run));
  EXPECT_FALSE(fs::exists(run));
  { ASSERT_TRUE(Archive::create(run / "archive.sqlite", config_, environment_).ok()); }
  EXPECT_FALSE(remove_stillborn_run(run)) << "it has an archive";
  EXPECT_TRUE(fs::exists(run / "archive.sqlite"));
  fs::create_directories(folder_ / "other");
  ASSERT_TRUE(write_file(folder_ / "other/mine.txt", "text").ok());
  EXPECT_FALSE(remove_stillborn_run(folder_ / "other")) << "it is somebody's";
}

TEST_F(ArchiveTest, TheHolderOfTheLockIsKnownWhileItLives) {
  EXPECT_EQ(WriterLock::find_holder(file_), std::nullopt);
  {
    const auto archive = create();
    EXPECT_THAT(WriterLock::find_holder(file_).value_or(""), HasSubstr(std::to_string(::getpid())));
  }
  EXPECT_EQ(WriterLock::find_holder(file_), std::nullopt);
  std::ofstream(folder_ / "archive.lock") << "123\n";  // of one that was killed
  EXPECT_EQ(WriterLock::find_holder(file_), std::nullopt);
}

TEST_F(ArchiveTest, AReaderSeesEachAppendWhileTheWriterWrites) {
  const auto writer = create();
  const auto reader = Archive::open_read_only(file_).value();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(reader->count_evaluations().value(), i);
    ASSERT_TRUE(writer->append_evaluation(make_accepted(i)).ok());
    EXPECT_EQ(reader->evaluations().value().size(), static_cast<std::size_t>(i + 1));
  }
}

TEST_F(ArchiveTest, AnArchiveAtRestIsOneFileAlsoAfterItWasRead) {
  fill(*create(), 1);
  EXPECT_TRUE(Archive::open_read_only(file_).value()->verify().ok());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, testing::ElementsAre("archive.sqlite"));
}

TEST_F(ArchiveTest, ASecondWriterIsRefusedAndToldWhoHoldsIt) {
  auto writer = create();
  const auto second = Archive::open_for_append(file_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::busy);
  EXPECT_THAT(second.error().text(),
              AllOf(HasSubstr(std::to_string(::getpid())), HasSubstr("kbeam stop")));
  writer.reset();
  EXPECT_TRUE(Archive::open_for_append(file_).ok());
  EXPECT_FALSE(fs::exists(folder_ / "archive.lock"));
}

TEST_F(ArchiveTest, CreateNeverTouchesWhatIsThere) {
  create();
  const std::string before = read_file(file_).value();
  const auto second = Archive::create(file_, config_, environment_);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().text(), HasSubstr("already there"));
  EXPECT_TRUE(read_file(file_).value() == before);
}

// A child appends and says so; it is killed while it goes on. What it said it had appended is
// there.
TEST_F(ArchiveTest, SigkillLosesNothingThatWasAppended) {
  create();
  int next = 0;
  for (const int acknowledged_before_kill : {1, 2, 5, 9}) {
    int channel[2];
    ASSERT_EQ(::pipe(channel), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(channel[0]);
      auto archive = Archive::open_for_append(file_);
      if (!archive.ok()) ::_exit(1);
      for (int i = next;; ++i) {
        if (!archive.value()->append_evaluation(make_accepted(i)).ok()) ::_exit(2);
        if (::write(channel[1], "x", 1) != 1) ::_exit(3);
      }
    }
    ::close(channel[1]);
    int acknowledged = 0;
    char letter;
    while (acknowledged < acknowledged_before_kill && ::read(channel[0], &letter, 1) == 1)
      ++acknowledged;
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    while (::read(channel[0], &letter, 1) == 1) ++acknowledged;
    ::close(channel[0]);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;

    const auto archive = Archive::open_for_append(file_);
    ASSERT_TRUE(archive.ok()) << archive.error().text();
    const int count = archive.value()->count_evaluations().value();
    EXPECT_GE(count, next + acknowledged);
    EXPECT_LE(count, next + acknowledged + 1);  // the one in flight may have been committed
    EXPECT_TRUE(archive.value()->verify().ok());
    EXPECT_EQ(static_cast<int>(archive.value()->evaluations().value().size()), count);
    const auto before = dump_tables();
    EXPECT_TRUE(archive.value()->rebuild_tables().ok());
    EXPECT_EQ(dump_tables(), before);
    next = count;
  }
}

TEST_F(ArchiveTest, AFlippedByteOfASourceIsRefusedByName) {
  fill(*create(), 2);
  flip_byte_of("// source number 1");
  const std::string hash = make_blob(make_candidate(1).rows[0].source).hash;
  const auto archive = Archive::open_read_only(file_).value();
  const auto damaged = archive->find_candidate(make_candidate(1).id);
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().code, ErrorCode::corrupt);
  EXPECT_THAT(damaged.error().text(), HasSubstr(hash));
  EXPECT_TRUE(archive->find_candidate(make_candidate(0).id).ok());
  EXPECT_FALSE(archive->candidates().ok());
  EXPECT_THAT(archive->verify().error().text(), HasSubstr(hash));
}

TEST_F(ArchiveTest, AFlippedByteOfASampleIsRefusedByName) {
  fill(*create(), 2);
  flip_byte_of("kbpairs1\x02");  // the number of pairs
  const auto evaluations = Archive::open_read_only(file_).value()->evaluations();
  ASSERT_FALSE(evaluations.ok());
  EXPECT_THAT(evaluations.error().text(), HasSubstr("blob"));
}

TEST_F(ArchiveTest, AFlippedByteOfAnEventIsRefusedByName) {
  fill(*create(), 2);
  flip_byte_of("\"speedup\":3");
  const auto archive = Archive::open_read_only(file_).value();
  EXPECT_THAT(archive->evaluations().error().text(), HasSubstr("event 5 (evaluation)"));
  EXPECT_THAT(archive->verify().error().text(), HasSubstr("event 5 (evaluation)"));
  EXPECT_TRUE(archive->ideas().ok());
}

TEST_F(ArchiveTest, AnEditedOrRemovedEventIsNoticed) {
  fill(*create(), 2);
  execute("UPDATE events SET unix_ms = unix_ms + 1 WHERE sequence = 3");
  EXPECT_THAT(Archive::open_read_only(file_).value()->verify().error().text(),
              HasSubstr("event 3"));
  execute("UPDATE events SET unix_ms = unix_ms - 1 WHERE sequence = 3");
  EXPECT_TRUE(Archive::open_read_only(file_).value()->verify().ok());
  execute("DELETE FROM events WHERE sequence = 4");
  EXPECT_THAT(Archive::open_read_only(file_).value()->verify().error().text(),
              HasSubstr("event 5"));
}

TEST_F(ArchiveTest, ANewerOrForeignFileIsRefusedAndNotChanged) {
  fill(*create(), 1);
  execute("PRAGMA user_version = 99");
  for (const auto& opened :
       {Archive::open_for_append(file_).error(), Archive::open_read_only(file_).error()})
    EXPECT_THAT(opened.text(), AllOf(HasSubstr("schema version 99"), HasSubstr("newer")));

  const fs::path foreign = folder_ / "foreign.sqlite";
  ASSERT_TRUE(Database::open(foreign, OpenMode::create).value().execute("CREATE TABLE t(x)").ok());
  const std::string before = read_file(foreign).value();
  EXPECT_THAT(Archive::open_for_append(foreign).error().text(), HasSubstr("not an archive"));
  EXPECT_TRUE(read_file(foreign).value() == before);

  const fs::path text = folder_ / "text.sqlite";
  ASSERT_TRUE(write_file(text, std::string(5000, 'x')).ok());
  EXPECT_EQ(Archive::open_read_only(text).error().code, ErrorCode::corrupt);
  EXPECT_EQ(Archive::open_read_only(folder_ / "none.sqlite").error().code, ErrorCode::not_found);
}

// Runs `job` in a child, so that limits and lost privileges end with it.
int exit_code_of_child(const std::function<int()>& job) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(job());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(ArchiveTest, ADiskThatTakesNoMoreIsAClearErrorAndLosesNothing) {
  fill(*create(), 1);
  const int code = exit_code_of_child([&] {
    auto archive = Archive::open_for_append(file_);
    if (!archive.ok()) return 10;
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{64 * 1024, 64 * 1024};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 11;
    Candidate large = make_candidate(7);
    large.rows[0].source = std::string(1 << 20, 'x');
    large.id = candidate_id(large);
    const Result<void> refused = archive.value()->append_candidate(large);
    if (refused.ok()) return 12;
    if (refused.error().code != ErrorCode::io) return 13;
    if (refused.error().text().find("what was recorded before is whole") == std::string::npos)
      return 14;
    return archive.value()->count_evaluations().value() == 1 ? 0 : 15;
  });
  EXPECT_EQ(code, 0);
  const auto archive = Archive::open_for_append(file_).value();
  EXPECT_TRUE(archive->verify().ok());
  EXPECT_TRUE(archive->append_evaluation(make_accepted(2)).ok());
}

TEST_F(ArchiveTest, AReadOnlyFolderCanBeReadButNotWritten) {
  fill(*create(), 1);
  fs::permissions(file_, fs::perms(0444));
  fs::permissions(folder_, fs::perms(0555));
  const int code = exit_code_of_child([&] {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0)
      return 10;  // root may write anywhere
    const auto writer = Archive::open_for_append(file_);
    if (writer.ok()) return 11;
    if (writer.error().code != ErrorCode::io) return 12;
    if (writer.error().text().find("can be written") == std::string::npos) return 13;
    if (Archive::create(folder_ / "new.sqlite", config_, environment_).ok()) return 14;
    const auto reader = Archive::open_read_only(file_);
    if (!reader.ok()) return 15;
    return reader.value()->evaluations().value().size() == 1 ? 0 : 16;
  });
  fs::permissions(folder_, fs::perms(0755));
  EXPECT_EQ(code, 0);
}

TEST_F(ArchiveTest, AFullDatabaseIsNamedAsAFullDisk) {
  Database database = Database::open(file_, OpenMode::create).value();
  ASSERT_TRUE(database.execute("CREATE TABLE t(x); PRAGMA max_page_count = 2").ok());
  const Result<void> full = database.execute("INSERT INTO t VALUES (zeroblob(100000))");
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::io);
  EXPECT_THAT(full.error().text(), AllOf(HasSubstr("disk is full"), HasSubstr(folder_.string())));
}

TEST_F(ArchiveTest, APathWithMarksThatUrisReserve) {
  file_ = folder_ / "a?b#c%20d.sqlite";
  fill(*create(), 1);
  EXPECT_TRUE(fs::exists(file_));
  EXPECT_EQ(Archive::open_read_only(file_).value()->count_evaluations().value(), 1);
}

TEST(Samples, AreStoredBitForBit) {
  const PairedSamples samples{{1.0 / 3, -0.0, 5e-324}, {HUGE_VAL}, {1, 0, 1}, {0, -1, 1 << 30}};
  const std::string bytes = encode_samples(samples);
  const PairedSamples read = decode_samples(bytes).value();
  EXPECT_EQ(encode_samples(read), bytes);
  EXPECT_EQ(read.candidate_ns, samples.candidate_ns);
  EXPECT_EQ(read.process, samples.process);
  EXPECT_EQ(encode_samples(decode_samples(encode_samples({})).value()), encode_samples({}));
}

TEST(Samples, DamageIsRefusedAtEveryLength) {
  const std::string bytes = encode_samples({{1, 2}, {3, 4}, {1, 0}, {0, 0}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_samples(std::string_view(bytes).substr(0, size)).ok()) << size;
  EXPECT_FALSE(decode_samples(bytes + "x").ok());
  std::string huge = bytes;
  huge[8 + 7] = '\x7f';  // a length of 2^62 must not be allocated
  EXPECT_FALSE(decode_samples(huge).ok());
}

}  // namespace
}  // namespace kbeam
