// SPDX-License-Identifier: Apache-2.0
// Reports: all results of a run as text, JSON or JUnit.
//
// Pure functions of the results. Invariant: what a plugin says cannot forge a line or drive a
// terminal (printable()).
#pragma once

#include <string>
#include <vector>

#include "sdk/conformance/case.hpp"
#include "sdk/conformance/runner.hpp"

namespace gradrack::conform {

struct Report {
  std::string library;  ///< as the user wrote it
  std::string error;    ///< why it cannot be loaded; "" when it can
  Description description;
  uint64_t seed = 0;
  std::vector<CaseResult> results;

  size_t count(Verdict verdict, int level = -1) const;
};

/// Table by level, then each failure with its repro line.
std::string text_report(const Report& report);
/// {"program", "library", "seed", "factories", "cases": [...], "pass", "fail", "not_applicable"}.
std::string json_report(const Report& report);
/// One testsuite a level.
std::string junit_report(const Report& report);

}  // namespace gradrack::conform
