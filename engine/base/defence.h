// Names of the defences that keep a candidate honest, and the question that each site of one asks.
// In everything that ships the answer is yes at compile time. The attack corpus (tests/attacks)
// builds a second engine with KBEAM_TEST_DEFENCES, in which defences can be switched off, to show
// that these stop their attacks.
#pragma once

#include <optional>
#include <string_view>

namespace kbeam {

enum class Defence {
  // while it is built
  source_rules,
  knob_rules,
  object_rules,
  compiler_sandbox,
  build_limits,
  // around its process
  process_sandbox,  // namespaces, Landlock and the system call filter together
  system_call_filter,
  clean_environment,
  memory_limit,
  call_timeout,
  plan_twice,
  reply_check,
  stopped_until_timed,
  judged_at_the_stop,
  // around its memory
  page_protection,
  read_only_inputs,
  guard_zones,
  poison,
  unwritten_check,
  scratch_refill,
  // in the judge
  fresh_content,
  fresh_base,
  every_output_checked,
  all_workers_checked,
  private_cases,
  private_silence,
  nan_fails_closed,
  sealed_cases,
  repeatability_gate,
  memory_gate,
  thread_gate,
  // around a plan for a GPU
  one_image,
  device_variables,
  host_launches,
  plan_rules,
  // on the GPU
  judge_unmapped,
  input_comparison,
  table_refill,
  module_reload,
  shared_scrub,
  condition_reset,
  end_of_all_work,
  random_addresses,
  replays_checked,
  host_clock,
  unpinned_cache,
  own_inputs,
  local_scrub,
  device_heap,
};

#if defined(KBEAM_TEST_DEFENCES)

bool defence_is_on(Defence defence);
// Nothing: all are on. A runner that is started afterwards is told.
void switch_off(std::optional<Defence> defence);
std::optional<Defence> parse_defence(std::string_view word);
std::string_view to_string(Defence defence);
// What the runner's environment carries, "NAME=word".
const char* defence_setting();

#else

constexpr bool defence_is_on(Defence) {
  return true;
}
constexpr const char* defence_setting() {
  return nullptr;
}

#endif

}  // namespace kbeam
