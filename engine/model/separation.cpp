#include "model/separation.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "model/json_forms.h"
#include "model/json_walk.h"

namespace kbeam {

static void walk(auto& visit, Is<SeparationRow> auto& row) {
  visit("check", row.check);
  visit("case", row.case_name);
  visit("family", row.family);
  visit("unit", row.unit);
  visit("honest", row.honest);
  visit("limit", row.limit);
  visit("cheat", row.cheat);
  visit("honest_by", row.honest_by);
  visit("cheat_by", row.cheat_by);
}

static void walk(auto& visit, Is<Separation> auto& separation) {
  visit("problem", separation.problem);
  visit("grade", separation.grade);
  visit("rows", separation.rows);
}

namespace {

std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

bool SeparationRow::has_cheat() const {
  return !std::isnan(cheat);
}

double SeparationRow::ratio() const {
  if (!has_cheat()) return std::numeric_limits<double>::quiet_NaN();
  return honest == 0 ? std::numeric_limits<double>::infinity() : cheat / honest;
}

Json to_json(const Separation& separation) {
  return write_value(separation);
}

Result<Separation> separation_from_json(const Json& json) {
  return read_noun<Separation>(json, "a separation");
}

Result<Separation> separation_from_text(const std::string& text, const std::string& what) {
  ASSIGN_OR_RETURN(const Json json, parse_json(text, what));
  return separation_from_json(json);
}

std::string refusal(const SeparationRow& row) {
  const std::string subject = "case " + row.case_name + ", check " + row.check + ": ";
  if (!(row.honest <= row.limit))
    return subject + "honest " + row.honest_by + " has " + figure(row.honest) + " " + row.unit +
           ", the limit is " + figure(row.limit);
  if (!row.has_cheat()) return "";
  if (!(row.cheat > row.limit))
    return subject + row.cheat_by + " passes with " + figure(row.cheat) + " " + row.unit +
           ", the limit is " + figure(row.limit);
  if (!(row.ratio() >= kLeastSeparation))
    return subject + row.cheat_by + " has " + figure(row.cheat) + " " + row.unit + ", only " +
           figure(row.ratio()) + " times honest " + row.honest_by + "'s " + figure(row.honest) +
           "; " + figure(kLeastSeparation) + " are asked for";
  return "";
}

}  // namespace kbeam
