// SPDX-License-Identifier: Apache-2.0
// Results as text for people: see report.hpp.
#include "sdk/conformance/report.hpp"

#include <fmt/format.h>

#include "core/base/log.hpp"
#include "core/plugin/host_table.hpp"
#include "sdk/conformance/catalogue.hpp"

namespace gradrack::conform {
namespace {

// Every line of a plugin's text, made harmless and moved in.
std::string indented(const std::string& text, const char* margin) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += margin + printable(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return out;
}

std::string offered(const Description& description) {
  std::string text;
  for (const OfferedFactory& factory : description.factories) {
    text += fmt::format("{}{} '{}' {}", text.empty() ? "" : ", ", factory.kind,
                        printable(factory.name), printable(factory.version));
  }
  return text;
}

// Factories of which nothing beyond negotiation could be tried, with the reason.
std::string untried(const Report& report) {
  std::string text;
  for (const OfferedFactory& factory : report.description.factories) {
    bool tried = false;
    std::string reason;
    for (const CaseResult& result : report.results) {
      const bool own = result.target.kind == factory.kind && result.target.name == factory.name;
      if (!own || result.level < 2) continue;
      tried = tried || result.outcome.verdict != Verdict::kNotApplicable;
      reason = result.outcome.text;
    }
    if (tried || reason.empty()) continue;
    text += fmt::format("NOT TRIED: {} '{}': {}\n", factory.kind, printable(factory.name),
                        printable(reason));
  }
  return text.empty() ? "" : "\n" + text;
}

std::string failure_text(const CaseResult& result) {
  std::string who;
  if (!result.target.kind.empty()) who = result.target.kind + " '" + result.target.name + "': ";
  std::string text = fmt::format("FAIL {}  {}{}\n", result.id, who, result.title);
  text += indented(result.outcome.text, "     ");
  if (!result.output.empty())
    text += "     its output ends with:\n" + indented(result.output, "     | ");
  return text + "     again: " + result.repro + "\n";
}

}  // namespace

size_t Report::count(Verdict verdict, int level) const {
  size_t number = 0;
  for (const CaseResult& result : results) {
    number += result.outcome.verdict == verdict && (level < 0 || result.level == level) ? 1 : 0;
  }
  return number;
}

std::string text_report(const Report& report) {
  std::string text = fmt::format("gradrack-conform {}: {}, seed {}\n", host_version(),
                                 report.library, report.seed);
  if (report.error.empty()) {
    text += fmt::format("{} {}, plugin ABI {}.{}: {}\n", printable(report.description.id),
                        printable(report.description.version), GR_ABI_MAJOR,
                        report.description.abi_minor, offered(report.description));
  } else {
    text += "cannot be loaded:\n" + indented(report.error, "     ");
  }
  text += fmt::format("\n{:<36}{:>7}{:>7}{:>7}{:>16}\n", "level", "cases", "pass", "fail",
                      "not applicable");
  for (int level = 0; level < kLevels; ++level) {
    const size_t good = report.count(Verdict::kPass, level);
    const size_t bad = report.count(Verdict::kFail, level);
    const size_t none = report.count(Verdict::kNotApplicable, level);
    if (good + bad + none == 0) continue;
    text += fmt::format("{:<36}{:>7}{:>7}{:>7}{:>16}\n",
                        fmt::format("L{} {}", level, level_title(level)), good + bad + none, good,
                        bad, none);
  }
  for (const CaseResult& result : report.results) {
    if (result.outcome.verdict == Verdict::kFail) text += "\n" + failure_text(result);
  }
  text += untried(report);
  const size_t failures = report.count(Verdict::kFail);
  return text + fmt::format("\n{}: {} passed, {} failed, {} not applicable\n",
                            failures == 0 && report.error.empty() ? "PASS" : "FAIL",
                            report.count(Verdict::kPass), failures,
                            report.count(Verdict::kNotApplicable));
}

}  // namespace gradrack::conform
