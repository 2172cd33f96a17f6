// One function a command; the table in commands.cpp names them.
#pragma once

#include "apps/cli/command.h"

namespace kbeam::cli {

int run_command(const Options& options);
int resume_command(const Options& options);
int status_command(const Options& options);
int stop_command(const Options& options);
int submit_command(const Options& options);
int ask_command(const Options& options);
int steer_command(const Options& options);
int pause_command(const Options& options);
int drop_command(const Options& options);
int protect_command(const Options& options);
int fork_command(const Options& options);
int check_command(const Options& options);
int bench_command(const Options& options);
int compare_command(const Options& options);
int plan_command(const Options& options);
int profile_command(const Options& options);
int report_command(const Options& options);
int publish_command(const Options& options);
int export_command(const Options& options);
int replay_command(const Options& options);
int gc_command(const Options& options);
int bundle_command(const Options& options);
int collect_command(const Options& options);
int problems_command(const Options& options);
int separation_command(const Options& options);
int study_command(const Options& options);
int trace_command(const Options& options);
int tune_command(const Options& options);
int new_problem_command(const Options& options);
int doctor_command(const Options& options);
int mcp_command(const Options& options);
int setup_command(const Options& options);

}  // namespace kbeam::cli
