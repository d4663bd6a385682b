// SPDX-License-Identifier: Apache-2.0
// The runner: gives cases to children and collects what comes out, whatever the plugin does.
//
// Parent's side of child.hpp. Invariant: the parent never loads the library; a crash, a hang or an
// exit() costs one case, and every case asked for has a result.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sdk/conformance/case.hpp"
#include "sdk/conformance/context.hpp"

namespace gradrack::conform {

/// What a factory of the library is called, and what is wrong with the options given for it.
struct OfferedFactory {
  std::string kind;
  std::string name;
  std::string version;
  std::vector<std::string> options;  ///< names
  std::string options_error;         ///< "" when the command line's options fit
};

struct Description {
  std::string id;
  std::string version;
  int64_t abi_minor = 0;
  std::vector<OfferedFactory> factories;
};

struct RunnerSettings {
  Settings settings;
  std::string program = "gradrack-conform";  ///< as to be written in a repro line
  std::string library;                       ///< as the user wrote it, for repro lines
  double limit_s = 30;
  bool name_factory = false;  ///< the library has several: repro lines name the one
};

/// Asks a child what the library offers. The error says why it cannot be loaded, or how the child
/// died.
Result<Description> describe_library(const std::string& path, const RunnerSettings& settings);

/// Called with each result as it comes.
using Progress = std::function<void(const CaseResult&)>;

/// Runs cases of one target in their order. An error is the kit's own.
Result<std::vector<CaseResult>> run_cases(const Target& target, const std::vector<Case>& cases,
                                          const RunnerSettings& settings, const Progress& progress);

}  // namespace gradrack::conform
