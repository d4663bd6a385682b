// SPDX-License-Identifier: Apache-2.0
// Results for machines, JSON and JUnit: see report.hpp.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/log.hpp"
#include "core/plugin/host_table.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/report.hpp"

namespace gradrack::conform {
namespace {

using nlohmann::json;

json case_json(const CaseResult& result) {
  json line = {{"id", result.id},
               {"level", result.level},
               {"title", result.title},
               {"kind", result.target.kind},
               {"name", result.target.name},
               {"verdict", verdict_name(result.outcome.verdict)},
               {"text", result.outcome.text},
               {"seconds", result.seconds},
               {"repro", result.repro}};
  if (!result.outcome.facts.empty()) line["facts"] = result.outcome.facts;
  if (!result.output.empty()) line["output"] = result.output;
  return line;
}

// Text of an XML attribute or element; what XML cannot hold is shown as \xNN.
std::string xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        out += printable(std::string(1, c));
    }
  }
  return out;
}

std::string junit_case(const CaseResult& result) {
  const std::string class_name =
      "gradrack." +
      (result.target.kind.empty() ? "library" : result.target.kind + "." + result.target.name);
  std::string text = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                                 xml(class_name), xml(result.id), result.seconds);
  if (result.outcome.verdict == Verdict::kPass) return text + "/>\n";
  const std::string reason = xml(result.outcome.text);
  if (result.outcome.verdict == Verdict::kNotApplicable) {
    return text + fmt::format("><skipped message=\"{}\"/></testcase>\n", reason);
  }
  return text + fmt::format("><failure message=\"{}\">again: {}\n{}</failure></testcase>\n", reason,
                            xml(result.repro), xml(result.output));
}

}  // namespace

std::string json_report(const Report& report) {
  json out = {{"program", "gradrack-conform " + host_version()},
              {"library", report.library},
              {"id", report.description.id},
              {"version", report.description.version},
              {"seed", report.seed},
              {"pass", report.count(Verdict::kPass)},
              {"fail", report.count(Verdict::kFail)},
              {"not_applicable", report.count(Verdict::kNotApplicable)}};
  if (!report.error.empty()) out["error"] = report.error;
  out["factories"] = json::array();
  for (const OfferedFactory& factory : report.description.factories) {
    out["factories"].push_back(
        {{"kind", factory.kind}, {"name", factory.name}, {"version", factory.version}});
  }
  out["cases"] = json::array();
  for (const CaseResult& result : report.results) out["cases"].push_back(case_json(result));
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string junit_report(const Report& report) {
  std::string suites;
  for (int level = 0; level < kLevels; ++level) {
    const size_t bad = report.count(Verdict::kFail, level);
    const size_t none = report.count(Verdict::kNotApplicable, level);
    const size_t all = report.count(Verdict::kPass, level) + bad + none;
    if (all == 0) continue;
    suites += fmt::format(
        "  <testsuite name=\"L{} {}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n"
        "    <properties><property name=\"seed\" value=\"{}\"/></properties>\n",
        level, level_title(level), all, bad, none, report.seed);
    for (const CaseResult& result : report.results) {
      if (result.level == level) suites += junit_case(result);
    }
    suites += "  </testsuite>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"gradrack-conform {}\" tests=\"{}\" failures=\"{}\">\n{}</testsuites>\n",
      xml(report.library), report.results.size(), report.count(Verdict::kFail), suites);
}

}  // namespace gradrack::conform
