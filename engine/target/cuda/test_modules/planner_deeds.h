// What the plan function of planner_deeds.cpp can do, chosen by the axis "deed".
#pragma once

namespace kbeam {

enum class PlannerDeed {
  honest,
  exits,
  exits_at_once,
  hangs,
  crashes,
  overflows_the_stack,
  aborts,
  throws,
  eats_memory,
  forks,
  starts_a_program,
  opens_a_socket,
  reads_files,
  writes_files,
  reads_the_environment,
  depends_on_time,
  depends_on_addresses,
  depends_on_call_count,
  depends_on_randomness,
  writes_garbage,
  forges_a_plan_and_exits,
  forges_an_answer_more,
  prints,
  floods_its_output,
  registers_a_fake_kernel,
  launches_from_the_host,
  jumps_into_a_dead_frame,
  makes_too_many_nodes,
  makes_a_huge_table,
  wants_too_much_scratch,
  passes_bytes_that_are_no_text,
  leaves_a_body_open,
  is_not_supported,
  asks_for_an_unknown_tensor,
  asks_for_an_unknown_axis,
  mistakes_role_and_type,
  asks_for_a_text,
  records_nothing,
  count
};

}  // namespace kbeam
