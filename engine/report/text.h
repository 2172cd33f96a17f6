// Numbers and foreign text as they appear in reports. Ideas, reasons and logs come from proposers
// and compilers, so nothing reaches a page without one of these.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace kbeam {

std::string escape_html(std::string_view text);
// JSON that cannot end the <script> element it lies in.
std::string escape_json_for_script(std::string_view json);
// One line of Markdown, safe in a table cell too.
std::string escape_markdown(std::string_view text);
// `text` as a code span, safe in a table cell too.
std::string markdown_code(std::string_view text);

// At most `most_bytes` and an ellipsis, never half a character: what a compiler says can be long.
std::string shorten(std::string_view text, std::size_t most_bytes);

std::string format_ratio(double ratio);                // "4.61", "12.3"; "-" when unknown
std::string format_interval(double low, double high);  // "4.52 to 4.70"
std::string format_time_ns(double time_ns);            // "812 ns", "1.23 ms"
std::string format_time_s(double time_s);              // "0.4 s", "3 min 12 s"
std::string format_date(std::int64_t unix_ms);         // "2026-01-31 12:00 UTC"

// `frame` with every {{name}} replaced, in one pass: text that looks like a slot stays text. A slot
// that `slots` lacks is a programmer's mistake.
std::string fill_slots(std::string_view frame,
                       const std::map<std::string_view, std::string>& slots);

}  // namespace kbeam
