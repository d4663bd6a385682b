// SPDX-License-Identifier: Apache-2.0
// Case: one thing that a plugin must keep to, and what came out when it was tried.
//
// First header of the kit. The catalogue makes cases from names alone, without loading anything;
// the runner gives each to a child process; the child calls `run`. Invariant: an id is unique
// within its target and never changes its meaning, since vendors keep lists of them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.hpp"

namespace gradrack::conform {

/// What is tried: a library, and one of its factories. Cases about the library as a whole have an
/// empty kind and name.
struct Target {
  std::string library;  ///< absolute path
  std::string kind;
  std::string name;
};

enum class Verdict { kPass, kFail, kNotApplicable };

/// "pass", "fail", "not applicable".
const char* verdict_name(Verdict verdict);

/// How a case ended. `text` says what was wrong or why it does not apply. `facts` are for tables
/// (coverage) and travel to the report as they are.
struct Outcome {
  Verdict verdict = Verdict::kPass;
  std::string text = {};
  std::map<std::string, std::string> facts = {};
};

inline Outcome pass() { return {}; }
inline Outcome fail(std::string text) { return {Verdict::kFail, std::move(text), {}}; }
inline Outcome not_applicable(std::string text) {
  return {Verdict::kNotApplicable, std::move(text), {}};
}
/// Pass, or a failure with the status' text.
inline Outcome outcome_of(const Status& status) {
  return status.ok() ? pass() : fail(status.message());
}

class Context;

struct Case {
  std::string id;     ///< "L3.MatMul.float32.forward": level, then words from wide to narrow
  int level = 0;      ///< 0 to 5, that of the id
  std::string title;  ///< what must hold, in a few words
  std::function<Outcome(Context&)> run;
  /// Cases of one non-empty batch follow each other in one child, so that cheap ones stay cheap.
  /// When the child dies, the case that it died in is tried again alone.
  std::string batch = {};
  double limit_s = 0;      ///< time for this case; 0: what --time-limit says
  bool must_exit = false;  ///< the child ends through exit(), and must end well
};

/// Adds the cases of one kind of factory. Called in the parent, which has not loaded the library,
/// and again in each child: the same cases both times.
using AddCases = void (*)(const Target& target, std::vector<Case>* cases);

/// A case with its outcome, as reports see it.
struct CaseResult {
  Target target;
  std::string id;
  int level = 0;
  std::string title;
  Outcome outcome;
  double seconds = 0;
  std::string output = {};  ///< end of what the child wrote, when it failed
  std::string repro = {};   ///< command line that runs it again
};

}  // namespace gradrack::conform

/// Ends a case with the failure of `expression` (a Status).
#define CONFORM_TRY(expression)                                                           \
  do {                                                                                    \
    const ::gradrack::Status conform_status = (expression);                               \
    if (!conform_status.ok()) return ::gradrack::conform::fail(conform_status.message()); \
  } while (false)

/// `CONFORM_ASSIGN(auto x, f())`: x gets the value of a Result, or the case fails with its text.
#define CONFORM_ASSIGN(declaration, expression) \
  CONFORM_ASSIGN_INNER(GR_CONCAT(conform_result_, __COUNTER__), declaration, expression)
#define CONFORM_ASSIGN_INNER(result, declaration, expression)                    \
  auto result = (expression);                                                    \
  if (!result.ok()) return ::gradrack::conform::fail(result.status().message()); \
  declaration = std::move(*result)
