// The mistakes that wrong_plans.cu makes, chosen by the axis "mistake".
#pragma once

namespace kbeam {

enum class PlanMistake {
  none,
  writes_an_input,
  fills_an_input,
  copies_into_a_table,
  copies_onto_itself,
  reaches_beyond_a_buffer,
  argument_beyond_a_buffer,
  no_blocks,
  too_many_rows_of_blocks,
  too_many_threads,
  above_launch_bounds,
  too_much_shared_memory,
  cluster_does_not_divide,
  cluster_too_large,
  another_cluster_than_compiled,
  too_many_cooperative_blocks,
  overlaps_two_nodes,
  overlaps_a_copy,
  waits_for_a_later_node,
  waits_across_bodies,
  unused_condition,
  condition_asked_twice,
  box_too_large,
  box_not_whole,
  swizzle_too_narrow,
  odd_stride,
  tensor_map_beyond_a_buffer,
  calls_without_leave,
  multiplies_into_an_input,
  multiplies_mixed_types,
  multiplies_beyond_a_buffer,
  no_such_carveout,
  count
};

}  // namespace kbeam
