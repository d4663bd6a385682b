// SPDX-License-Identifier: Apache-2.0
// The catalogue: which cases there are for a target. A new kind of plugin is one line in
// catalogue.cpp and one file of cases.
#pragma once

#include <string>
#include <vector>

#include "sdk/conformance/case.hpp"

namespace gradrack::conform {

inline constexpr int kLevels = 6;
/// "file and exports", ...
const char* level_title(int level);

/// All cases of a target, in the order in which they run: of the library as a whole when its kind
/// is empty, else of the factory. An unknown kind has none. Asks nothing of the library.
std::vector<Case> cases_of(const Target& target);

// Library as a whole.
void add_file_cases(const Target& target, std::vector<Case>* cases);         // L0
void add_manifest_cases(const Target& target, std::vector<Case>* cases);     // L0
void add_negotiation_cases(const Target& target, std::vector<Case>* cases);  // L1
void add_process_cases(const Target& target, std::vector<Case>* cases);      // L2: threads, stop

// Any factory.
void add_table_cases(const Target& target, std::vector<Case>* cases);      // L1: its table's size
void add_lifecycle_cases(const Target& target, std::vector<Case>* cases);  // L2
void add_fault_cases(const Target& target, std::vector<Case>* cases);      // L2: injected faults

// By kind.
void add_model_cases(const Target& target, std::vector<Case>* cases);
void add_data_cases(const Target& target, std::vector<Case>* cases);
void add_optimizer_cases(const Target& target, std::vector<Case>* cases);
void add_lr_schedule_cases(const Target& target, std::vector<Case>* cases);
void add_precision_cases(const Target& target, std::vector<Case>* cases);
void add_scheduler_cases(const Target& target, std::vector<Case>* cases);
void add_backend_cases(const Target& target, std::vector<Case>* cases);
void add_metrics_cases(const Target& target, std::vector<Case>* cases);

/// The kinds that have cases of their own, for the test that none is forgotten.
std::vector<std::string> kinds_with_cases();

/// What a backend runs natively, by decomposition or not at all, as a Markdown table from the
/// facts of its L3 cases. In backend_coverage.cpp.
std::string coverage_markdown(const std::vector<CaseResult>& results);

}  // namespace gradrack::conform
