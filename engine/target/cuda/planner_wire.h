// What the engine and kbeam-planner say to each other. The request is JSON in a file that the
// planner inherits (its number is the only argument); the reply is a sequence of frames on standard
// output:
//
//   kbeam-planner KIND INDEX BYTES\n  BYTES of payload  \n
//
// The planner's side runs foreign code: whoever reads a reply trusts nothing in it.
#pragma once

#include <string_view>

namespace kbeam::planner_wire {

inline constexpr std::string_view kFrameStart = "kbeam-planner ";

// Kinds, in the order in which they can come. INDEX counts the requests of the order asked for.
inline constexpr std::string_view kReady = "ready";             // fenced in; nothing foreign loaded
inline constexpr std::string_view kLoaded = "loaded";           // the module is in
inline constexpr std::string_view kCannotLoad = "cannot_load";  // payload: the loader's words
inline constexpr std::string_view kPlan = "plan";               // payload: a LaunchPlan
inline constexpr std::string_view kMistakes = "mistakes";       // payload: an array of sentences
inline constexpr std::string_view kUnsupported = "unsupported";  // payload: why
inline constexpr std::string_view kNoMemory = "no_memory";       // the plan function ran out of it
inline constexpr std::string_view kEnd = "end";
// INDEX is the number of the system call that the filter refused; the process ends with it.
inline constexpr std::string_view kForbidden = "forbidden";

inline constexpr int kCannotPlan = 125;  // exit code: the planner itself could not work

inline constexpr const char* kEntryNames[] = {"kbeam_candidate_plan", "kbeam_generate_plan",
                                              "kbeam_check_plan"};  // by PlanEntry

}  // namespace kbeam::planner_wire
