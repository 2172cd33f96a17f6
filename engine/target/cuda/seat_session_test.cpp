#include "target/cuda/seat_session.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "target/cuda/fake_driver_fixture.h"

namespace kbeam {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kCount = 1000;
constexpr std::uint64_t kSecret = 4711;

PlanArgument address(int buffer) {
  PlanArgument argument;
  argument.kind = KBEAM_ADDRESS;
  argument.size = 8;
  argument.address = {buffer, 0};
  return argument;
}

PlanNode launch(const std::string& kernel, std::vector<PlanArgument> arguments) {
  PlanNode node;
  node.kernel = node.kernel_name = kernel;
  node.arguments = std::move(arguments);
  return node;
}

// Y = 2 A on one small case, with device plans that generate and check.
class SeatSessionTest : public testing::Test {
 protected:
  using Kernel = std::function<void(const float* a, float* y)>;

  SeatSessionTest() {
    SessionCase& the_case = setup_.cases.emplace_back();
    the_case.the_case.name = "small";
    the_case.tensors = {{"A", KBEAM_INPUT, KBEAM_F32, {10, 100}, {100, 1}},
                        {"Y", KBEAM_OUTPUT, KBEAM_F32, {10, 100}, {100, 1}}};
    the_case.subject.image_hash = "candidate";
    the_case.subject.buffers = {{BufferKind::input, "A", 4 * kCount, ""},
                                {BufferKind::output, "Y", 4 * kCount, ""},
                                {BufferKind::scratch, "scratch 0", 13, ""},
                                {BufferKind::table, "table 0", 4, "abcd"}};
    the_case.subject.nodes = {
        launch("candidate_work", {address(0), address(1), address(2), address(3)})};
    LaunchPlan generate;
    generate.image_hash = "problem";
    generate.buffers = {{BufferKind::control, "kbeam.control", 16, ""},
                        {BufferKind::output, "A", 4 * kCount, ""}};
    generate.nodes = {launch("judge_generate", {address(0), address(1)})};
    the_case.generate = generate;
    LaunchPlan check;
    check.image_hash = "problem";
    check.buffers = {{BufferKind::control, "kbeam.control", 16, ""},
                     {BufferKind::input, "A", 4 * kCount, ""},
                     {BufferKind::input, "Y", 4 * kCount, ""},
                     {BufferKind::figures, "kbeam.figures", 8, ""}};
    check.nodes = {launch("judge_check", {address(0), address(1), address(2), address(3)})};
    check.figures = {{"difference", "", 1e-6, {"row", "column"}, {10, 100}, false}};
    the_case.full_check = check;
    setup_.images = {{"candidate", "c"}, {"problem", "p"}};
    setup_.trusted_image = "trusted";
    setup_.grade = "fp32";
    add_kernels();
  }

  void add_kernels() {
    fake_.kernels["candidate_work"] = {{8, 8, 8, 8}, [this](void** p) {
                                         auto* y = *static_cast<float**>(p[1]);
                                         a_ = *static_cast<float**>(p[0]);
                                         y_ = y;
                                         scratch_ = *static_cast<char**>(p[2]);
                                         table_ = *static_cast<char**>(p[3]);
                                         work_(a_, y);
                                       }};
    fake_.kernels["judge_generate"] = {{8, 8}, [this](void** p) {
                                         const auto* control = *static_cast<std::uint64_t**>(p[0]);
                                         auto* a = *static_cast<float**>(p[1]);
                                         secrets_at_generate_.push_back(control[1]);
                                         for (int i = 0; i < kCount; ++i)
                                           a[i] = static_cast<float>(control[0] % 97 + i);
                                       }};
    fake_.kernels["judge_check"] = {
        {8, 8, 8, 8}, [this](void** p) {
          const auto* control = *static_cast<std::uint64_t**>(p[0]);
          const auto* a = *static_cast<float**>(p[1]);
          const auto* y = *static_cast<float**>(p[2]);
          auto* cell = *static_cast<std::uint64_t**>(p[3]);
          secret_at_check_ = control[1];
          for (int i = 0; i < kCount; ++i) {
            const float difference = std::abs(y[i] - 2 * a[i]);
            const auto bits =
                std::isnan(difference) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(difference);
            *cell = std::max(*cell, std::uint64_t{bits} << 32 | static_cast<std::uint32_t>(i));
          }
        }};
  }

  static void right(const float* a, float* y) {
    for (int i = 0; i < kCount; ++i) y[i] = 2 * a[i];
  }

  SeatSession& session() {
    if (!session_) session_ = std::make_unique<SeatSession>(cuda_, setup_);
    return *session_;
  }
  SeatCall call(std::uint64_t seed = 5) {
    CallHooks hooks;
    hooks.running = [this] { fake_.log.push_back("running"); };
    hooks.secret = [this] {
      fake_.log.push_back("asked for the secret");
      return kSecret;
    };
    return session().call({"small", seed, 0, SeatDepth::full, true}, hooks);
  }

  FakeDriver fake_;
  Driver cuda_ = fake_.driver();
  SessionSetup setup_;
  Kernel work_ = right;
  float* a_ = nullptr;
  float* y_ = nullptr;
  char* scratch_ = nullptr;
  char* table_ = nullptr;
  std::vector<std::uint64_t> secrets_at_generate_;
  std::uint64_t secret_at_check_ = 0;
  std::unique_ptr<SeatSession> session_;
};

TEST_F(SeatSessionTest, AcceptsARightOutputAndTimesIt) {
  const SeatCall result = call();
  EXPECT_EQ(result.report.verdict, Verdict::accepted) << result.report.sentence;
  EXPECT_EQ(result.report.case_name, "small");
  EXPECT_EQ(result.report.grade, "fp32");
  EXPECT_EQ(result.report.seed, 5u);
  EXPECT_NEAR(result.event_ns, 2000, 1);
  EXPECT_GT(result.host_ns, 0);
  ASSERT_THAT(result.report.figures, SizeIs(1));
  EXPECT_EQ(result.report.figures[0].value, 0);
}

TEST_F(SeatSessionTest, TheJudgesMemoryIsUnmappedWheneverTheCandidateRuns) {
  call(1);
  call(2);
  session().host_slope_ns(3, {});
  session().node_times(2, {});
  EXPECT_THAT(fake_.judge_mapped_at_launch, SizeIs(testing::Gt(10u)));
  EXPECT_THAT(fake_.judge_mapped_at_launch, Each(false));
}

TEST_F(SeatSessionTest, TheSecretIsAskedForAfterTheRunAndSeenByTheCheckAlone) {
  call();
  const auto at = [&](const std::string& what) {
    return std::find(fake_.log.rbegin(), fake_.log.rend(), what);  // the last
  };
  EXPECT_GT(at("running") - fake_.log.rbegin(), at("asked for the secret") - fake_.log.rbegin());
  EXPECT_EQ(secret_at_check_, kSecret);
  EXPECT_EQ(secrets_at_generate_.front(), 0u);
}

TEST_F(SeatSessionTest, EventsStandAroundTheGraphAndAFlushComesBefore) {
  call();
  const auto last = [&](const std::string& what) {
    return fake_.log.rend() - std::find(fake_.log.rbegin(), fake_.log.rend(), what);
  };
  EXPECT_LT(last("kbeam_scrub_shared"), last("kbeam_flush_write"));
  EXPECT_LT(last("reset persisting"), last("kbeam_flush_read"));
  EXPECT_LT(last("kbeam_flush_read"), last("unmap"));
  EXPECT_LT(last("unmap"), last("running"));
  EXPECT_LT(last("running"), last("kbeam_spin"));
  EXPECT_LT(last("kbeam_spin"), last("record"));
  const auto spin = std::find(fake_.log.rbegin(), fake_.log.rend(), "kbeam_spin").base();
  EXPECT_THAT(std::vector<std::string>(spin, spin + 3), ElementsAre("record", "launch", "record"));
}

TEST_F(SeatSessionTest, InputsAreReadOnlyWhileKernelsRunAndLocalMemoryIsOverwrittenBefore) {
  fake_.kernels["candidate_work"].local_bytes = 2000;
  call();
  const auto last = [&](const std::string& what) {
    return fake_.log.rend() - std::find(fake_.log.rbegin(), fake_.log.rend(), what);
  };
  EXPECT_GT(last("read-only"), 0);
  EXPECT_LT(last("read-only"), last("running"));
  EXPECT_GT(last("kbeam_scrub_local_4k"), 0);  // what the kernel has, and a stack
  EXPECT_LT(last("kbeam_scrub_local_4k"), last("kbeam_flush_write"));
  const auto times = [&](const std::string& what) {
    return std::count(fake_.log.begin(), fake_.log.end(), what);
  };
  const auto before = times("read-only");
  call();  // they were writable in between, to be filled
  EXPECT_EQ(times("read-only"), before + 1);
}

TEST_F(SeatSessionTest, AKernelWithMoreLocalMemoryThanCanBeOverwrittenIsRefused) {
  fake_.kernels["candidate_work"].local_bytes = 64 << 10;
  EXPECT_THROW(call(), SeatRefusal);
}

TEST_F(SeatSessionTest, NoPersistingCacheAndANonBlockingStream) {
  call();
  EXPECT_THAT(fake_.log, testing::Contains(
                             "limit " + std::to_string(CU_LIMIT_PERSISTING_L2_CACHE_SIZE) + " 0"));
  EXPECT_THAT(fake_.log, testing::Contains("stream " + std::to_string(CU_STREAM_NON_BLOCKING)));
}

TEST_F(SeatSessionTest, AWrongValueIsSpelledWithItsPlace) {
  work_ = [](const float* a, float* y) {
    right(a, y);
    y[307] += 1;
  };
  const SeatCall result = call();
  EXPECT_EQ(result.report.verdict, Verdict::wrong_value);
  EXPECT_THAT(result.report.sentence, HasSubstr("row 3, column 7: difference is 1"));
}

TEST_F(SeatSessionTest, WhatIsNotWrittenIsFound) {
  work_ = [](const float* a, float* y) {
    for (int i = 0; i < kCount - 2; ++i) y[i] = 2 * a[i];
  };
  const SeatCall result = call();
  EXPECT_EQ(result.report.verdict, Verdict::wrong_value);
  EXPECT_THAT(result.report.sentence,
              HasSubstr("2 of 1000 elements of Y were never written, the first is Y[9, 98]"));
}

TEST_F(SeatSessionTest, AnOldOutputIsNotThereAnyMore) {
  call(1);
  work_ = [](const float*, float*) {};
  EXPECT_EQ(call(1).report.verdict, Verdict::wrong_value);
}

TEST_F(SeatSessionTest, WritingBesideABufferIsFound) {
  work_ = [](const float* a, float* y) {
    right(a, y);
    y[kCount] = 1;
  };
  SeatCall result = call();
  EXPECT_EQ(result.report.verdict, Verdict::wrote_outside);
  EXPECT_THAT(result.report.sentence, HasSubstr("beyond the end of Y"));
  work_ = [this](const float* a, float* y) {
    right(a, y);
    scratch_[13] ^= 1;  // right behind 13 bytes
  };
  result = call();
  EXPECT_EQ(result.report.verdict, Verdict::wrote_outside);
  EXPECT_THAT(result.report.sentence, HasSubstr("1 bytes beyond the end of scratch 0"));
  work_ = [](const float* a, float* y) {
    right(a, y);
    y[-1] = 1;
  };
  result = call();
  EXPECT_EQ(result.report.verdict, Verdict::wrote_outside);
  EXPECT_THAT(result.report.sentence, HasSubstr("before the start of Y"));
  work_ = right;
  EXPECT_EQ(call().report.verdict, Verdict::accepted);
}

TEST_F(SeatSessionTest, AChangedInputIsFoundWhateverTheFiguresSay) {
  work_ = [this](const float* a, float* y) {
    right(a, y);
    a_[42] = 0;
    y[0] = 12;
  };
  const SeatCall result = call();
  EXPECT_EQ(result.report.verdict, Verdict::mutated_input);
  EXPECT_THAT(result.report.sentence, HasSubstr("the first in A[0, 42]"));
}

TEST_F(SeatSessionTest, WritingAfterTheEndIsFound) {
  int syncs_after_check = 0;
  fake_.before_context_sync = [&] {
    // The last synchronisation of a call comes after its check.
    if (secret_at_check_ == kSecret && y_ != nullptr && ++syncs_after_check == 1) y_[500] += 1;
  };
  const SeatCall result = call();
  EXPECT_EQ(result.report.verdict, Verdict::late_write);
  EXPECT_THAT(result.report.sentence, HasSubstr("Y[5, 0] changed after the call had ended"));
}

TEST_F(SeatSessionTest, EveryCallStartsWithAFreshModuleAndFreshTables) {
  work_ = [this](const float* a, float* y) {
    right(a, y);
    EXPECT_EQ(std::string(table_, 4), "abcd");
    table_[0] = 'x';
  };
  call(1);
  const int loads = fake_.module_loads;
  call(2);
  call(3);
  EXPECT_EQ(fake_.module_loads, loads + 2);
}

TEST_F(SeatSessionTest, ScratchHoldsNothingFromTheCallBefore) {
  std::string seen;
  work_ = [&](const float* a, float* y) {
    right(a, y);
    seen.assign(scratch_, 13);
    std::memcpy(scratch_, "remember this", 13);
  };
  call(1);
  call(2);
  EXPECT_NE(seen, "remember this");
}

TEST_F(SeatSessionTest, AnIllegalAddressIsTheCandidatesCrash) {
  session().prepare("small");
  work_ = [this](const float*, float*) { fake_.next_sync = CUDA_ERROR_ILLEGAL_ADDRESS; };
  try {
    call();
    FAIL() << "the call came to an end";
  } catch (const SeatRefusal& refusal) {
    EXPECT_EQ(refusal.verdict(), Verdict::crashed);
    EXPECT_THAT(refusal.sentence(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
    EXPECT_THAT(refusal.sentence(), HasSubstr("cuStreamSynchronize"));
  }
}

TEST_F(SeatSessionTest, APlanThatTheImageContradictsIsRefused) {
  setup_.cases[0].subject.nodes[0].arguments.pop_back();
  try {
    session();
    FAIL() << "the plan was taken";
  } catch (const SeatRefusal& refusal) {
    EXPECT_EQ(refusal.verdict(), Verdict::bad_plan);
    EXPECT_THAT(refusal.sentence(), HasSubstr("small: candidate_work: the kernel takes 4"));
  }
}

TEST_F(SeatSessionTest, APlanThatWantsTheJudgesBuffersIsRefused) {
  setup_.cases[0].subject.buffers.push_back({BufferKind::figures, "kbeam.figures", 8, ""});
  EXPECT_THROW(session(), SeatRefusal);
}

TEST_F(SeatSessionTest, PlainMemoryHashesInsteadOfChecking) {
  setup_.memory = MemoryMode::plain;
  const SeatCall first = call(1);
  const SeatCall again = call(1);
  const SeatCall other = call(2);
  EXPECT_EQ(first.report.verdict, Verdict::accepted);
  EXPECT_EQ(first.report.outputs_checked, 0);
  EXPECT_EQ(first.output_hash, again.output_hash);
  EXPECT_NE(first.output_hash, other.output_hash);
  EXPECT_THAT(fake_.log, testing::Not(testing::Contains("kbeam_poison")));
  EXPECT_THAT(fake_.log, testing::Not(testing::Contains("kbeam_flush_write")));
}

TEST_F(SeatSessionTest, DescribesTheDevice) {
  const SeatDevice device = session().describe();
  EXPECT_EQ(device.name, "Fake GPU");
  EXPECT_EQ(device.uuid, "GPU-abababab-abab-abab-abab-abababababab");
  EXPECT_EQ(device.architecture, 90);
  EXPECT_THAT(device.weaknesses, ElementsAre(HasSubstr("pageable memory")));
}

TEST_F(SeatSessionTest, ProbesWithAndWithoutACase) {
  EXPECT_TRUE(session().probe());
  call();
  EXPECT_TRUE(session().probe());
  fake_.kernels["kbeam_probe"].body = [](void** p) { **static_cast<std::uint64_t**>(p[0]) = 1; };
  EXPECT_FALSE(session().probe());
}

// Problem code on the host: what small cases use.
class HostDoubles final : public HostProblem {
 public:
  HostTensors generate(const Case&, const std::vector<TensorShape>& tensors,
                       std::uint64_t seed) override {
    HostTensors made(tensors.size());
    made[0].resize(static_cast<std::size_t>(tensors[0].bytes()));
    for (int i = 0; i < kCount; ++i)
      reinterpret_cast<float*>(made[0].data())[i] = static_cast<float>(seed + i);
    return made;
  }
  CheckReport check(const Case&, const std::vector<TensorShape>&, const HostCheck& request,
                    HostTensors& inputs, HostTensors& outputs) override {
    secret = request.secret;
    CheckReport report;
    report.verdict = Verdict::accepted;
    for (int i = 0; i < kCount; ++i)
      if (reinterpret_cast<float*>(outputs[1].data())[i] !=
          2 * reinterpret_cast<float*>(inputs[0].data())[i])
        report.verdict = Verdict::wrong_value;
    return report;
  }
  std::uint64_t secret = 0;
};

TEST_F(SeatSessionTest, CasesWithoutPlansAreMadeAndCheckedOnTheHost) {
  HostDoubles host;
  setup_.cases[0].generate.reset();
  setup_.cases[0].full_check.reset();
  setup_.host_problem = &host;
  EXPECT_EQ(call().report.verdict, Verdict::accepted);
  EXPECT_EQ(host.secret, kSecret);
  work_ = [](const float* a, float* y) {
    right(a, y);
    y[3] = 0;
  };
  EXPECT_EQ(call().report.verdict, Verdict::wrong_value);
}

TEST_F(SeatSessionTest, GeneratedOnTheDeviceAndCheckedOnTheHost) {
  HostDoubles host;
  setup_.cases[0].full_check.reset();
  setup_.host_problem = &host;
  EXPECT_EQ(call().report.verdict, Verdict::accepted);
}

TEST_F(SeatSessionTest, SlopeAndNodeTimesLeaveTheSeatReadyForCalls) {
  EXPECT_EQ(call(1).report.verdict, Verdict::accepted);
  EXPECT_NE(session().host_slope_ns(5, {}), 0);
  const SeatNodeTimes times = session().node_times(3, {});
  EXPECT_THAT(times.nodes, ElementsAre(0));
  EXPECT_THAT(times.node_ns, SizeIs(1));
  EXPECT_EQ(call(2).report.verdict, Verdict::accepted);
}

}  // namespace
}  // namespace kbeam
