// The switch of the weakened engine: at most one defence is off. Linked into the attack corpus's
// own binaries only.
#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/defence.h"

#if !defined(KBEAM_TEST_DEFENCES)
#error "the switch belongs to the weakened build"
#endif

namespace kbeam {
namespace {

constexpr char kVariable[] = "KBEAM_TEST_WITHOUT";

constexpr std::array<std::pair<Defence, std::string_view>, 39> kWords = {{
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
    {Defence::scratch_refill, "scratch_refill"},
    {Defence::fresh_content, "fresh_content"},
    {Defence::fresh_base, "fresh_base"},
    {Defence::every_output_checked, "every_output_checked"},
    {Defence::all_workers_checked, "all_workers_checked"},
    {Defence::private_cases, "private_cases"},
    {Defence::private_silence, "private_silence"},
    {Defence::nan_fails_closed, "nan_fails_closed"},
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
}};

std::string setting_of(std::optional<Defence> defence) {
  return std::string(kVariable) + "=" + (defence ? std::string(to_string(*defence)) : "");
}

// A runner is told through its environment, once.
struct Switch {
  std::optional<Defence> off;
  std::string setting;
};
Switch& the_switch() {
  static Switch value = [] {
    const char* const word = std::getenv(kVariable);
    const std::optional<Defence> off = word == nullptr ? std::nullopt : parse_defence(word);
    return Switch{off, setting_of(off)};
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
  const std::optional<Defence> off = the_switch().off;
  return !off || !includes(*off, defence);
}

void switch_off(std::optional<Defence> defence) {
  the_switch() = {defence, setting_of(defence)};
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
