// The switch of the weakened engine: the defences that it names are off, one as a rule, more where
// several stop the same attack. Linked into the attack corpus's own binaries only.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/defence.h"

#if !defined(KBEAM_TEST_DEFENCES)
#error "the switch belongs to the weakened build"
#endif

namespace kbeam {
namespace {

constexpr char kVariable[] = "KBEAM_TEST_WITHOUT";

constexpr std::array<std::pair<Defence, std::string_view>, 49> kWords = {{
    {Defence::source_rules, "source_rules"},
    {Defence::knob_rules, "knob_rules"},
    {Defence::object_rules, "object_rules"},
    {Defence::compiler_sandbox, "compiler_sandbox"},
    {Defence::build_limits, "build_limits"},
    {Defence::process_sandbox, "process_sandbox"},
    {Defence::system_call_filter, "system_call_filter"},
    {Defence::clean_environment, "clean_environment"},
    {Defence::memory_limit, "memory_limit"},
    {Defence::call_timeout, "call_timeout"},
    {Defence::plan_twice, "plan_twice"},
    {Defence::reply_check, "reply_check"},
    {Defence::judged_at_the_stop, "judged_at_the_stop"},
    {Defence::page_protection, "page_protection"},
    {Defence::read_only_inputs, "read_only_inputs"},
    {Defence::guard_zones, "guard_zones"},
    {Defence::poison, "poison"},
    {Defence::unwritten_check, "unwritten_check"},
    {Defence::stopped_until_timed, "stopped_until_timed"},
    {Defence::scratch_refill, "scratch_refill"},
    {Defence::fresh_content, "fresh_content"},
    {Defence::fresh_base, "fresh_base"},
    {Defence::every_output_checked, "every_output_checked"},
    {Defence::all_workers_checked, "all_workers_checked"},
    {Defence::private_cases, "private_cases"},
    {Defence::private_silence, "private_silence"},
    {Defence::nan_fails_closed, "nan_fails_closed"},
    {Defence::sealed_cases, "sealed_cases"},
    {Defence::repeatability_gate, "repeatability_gate"},
    {Defence::memory_gate, "memory_gate"},
    {Defence::thread_gate, "thread_gate"},
    {Defence::one_image, "one_image"},
    {Defence::device_variables, "device_variables"},
    {Defence::host_launches, "host_launches"},
    {Defence::plan_rules, "plan_rules"},
    {Defence::judge_unmapped, "judge_unmapped"},
    {Defence::input_comparison, "input_comparison"},
    {Defence::table_refill, "table_refill"},
    {Defence::module_reload, "module_reload"},
    {Defence::shared_scrub, "shared_scrub"},
    {Defence::condition_reset, "condition_reset"},
    {Defence::end_of_all_work, "end_of_all_work"},
    {Defence::random_addresses, "random_addresses"},
    {Defence::replays_checked, "replays_checked"},
    {Defence::host_clock, "host_clock"},
    {Defence::unpinned_cache, "unpinned_cache"},
    {Defence::own_inputs, "own_inputs"},
    {Defence::local_scrub, "local_scrub"},
    {Defence::device_heap, "device_heap"},
}};

std::vector<Defence> parse_list(std::string_view words) {
  std::vector<Defence> found;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(','), words.size());
    if (const auto defence = parse_defence(words.substr(0, end))) found.push_back(*defence);
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return found;
}

// A runner is told through its environment, once.
struct Switch {
  std::vector<Defence> off;
  std::string setting;
};

Switch switch_for(std::string_view words) {
  return {parse_list(words), std::string(kVariable) + "=" + std::string(words)};
}
Switch& the_switch() {
  static Switch value = [] {
    const char* const words = std::getenv(kVariable);
    return switch_for(words == nullptr ? "" : words);
  }();
  return value;
}

// Fresh base inputs are a stronger kind of fresh content; a sandbox includes its filter.
bool includes(Defence whole, Defence part) {
  return whole == part || (whole == Defence::fresh_content && part == Defence::fresh_base) ||
         (whole == Defence::process_sandbox && part == Defence::system_call_filter);
}

}  // namespace

bool defence_is_on(Defence defence) {
  const std::vector<Defence>& off = the_switch().off;
  return std::none_of(off.begin(), off.end(),
                      [&](Defence each) { return includes(each, defence); });
}

void switch_off(std::optional<Defence> defence) {
  the_switch() = switch_for(defence ? to_string(*defence) : "");
  setenv(kVariable, defence ? std::string(to_string(*defence)).c_str() : "", 1);
}

std::optional<Defence> parse_defence(std::string_view word) {
  for (const auto& [defence, known] : kWords)
    if (known == word) return defence;
  return std::nullopt;
}

std::string_view to_string(Defence defence) {
  for (const auto& [known, word] : kWords)
    if (known == defence) return word;
  return "unknown";
}

const char* defence_setting() {
  return the_switch().setting.c_str();
}

}  // namespace kbeam
