// SPDX-License-Identifier: Apache-2.0
// Which cases there are: see catalogue.hpp.
#include "sdk/conformance/catalogue.hpp"

namespace gradrack::conform {
namespace {

struct KindCases {
  const char* kind;
  AddCases add;
};

constexpr KindCases kKinds[] = {
    {"model", add_model_cases},         {"data", add_data_cases},
    {"optimizer", add_optimizer_cases}, {"lr_schedule", add_lr_schedule_cases},
    {"precision", add_precision_cases}, {"scheduler", add_scheduler_cases},
    {"backend", add_backend_cases},     {"metrics", add_metrics_cases},
};

}  // namespace

const char* level_title(int level) {
  constexpr const char* kTitles[kLevels] = {"file and exports",  "negotiation",
                                            "lifecycle, faults", "what each call answers",
                                            "streams",           "training, determinism, state"};
  return level >= 0 && level < kLevels ? kTitles[level] : "?";
}

const char* verdict_name(Verdict verdict) {
  return verdict == Verdict::kPass ? "pass" : verdict == Verdict::kFail ? "fail" : "not applicable";
}

std::vector<Case> cases_of(const Target& target) {
  std::vector<Case> cases;
  if (target.kind.empty()) {
    add_file_cases(target, &cases);
    add_manifest_cases(target, &cases);
    add_negotiation_cases(target, &cases);
    add_process_cases(target, &cases);
    return cases;
  }
  for (const KindCases& kind : kKinds) {
    if (target.kind != kind.kind) continue;
    add_table_cases(target, &cases);
    add_lifecycle_cases(target, &cases);
    add_fault_cases(target, &cases);
    kind.add(target, &cases);
  }
  return cases;
}

std::vector<std::string> kinds_with_cases() {
  std::vector<std::string> kinds;
  for (const KindCases& kind : kKinds) kinds.push_back(kind.kind);
  return kinds;
}

}  // namespace gradrack::conform
