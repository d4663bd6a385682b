// SPDX-License-Identifier: Apache-2.0
// Private to config/: the keys of section `run` that hold maps and lists of maps.
//
//   run:
//     objectives: {box: {weight: 2.5}, point: {weight: 1, every: 4}}
//     freeze: [{stage: "heads.*", match: ["*.bias"], from_step: 320}]
//     init_from: {file: model.safetensors, mapping: gpt2.yaml}      or the file alone
//
// Whether the model has such objectives, stages and names is checked where the model is known
// (train/run_rules.hpp).
#pragma once

#include "core/config/run_config.hpp"

namespace gradrack {

/// "objectives", "freeze", "init_from": keys of section `run` that the option table does not hold.
std::vector<std::string> run_rule_keys();

/// `node` may be nullptr: no rules.
Result<std::vector<ObjectiveRule>> read_objective_rules(const YamlNode* node);
Result<std::vector<FreezeRule>> read_freeze_rules(const YamlNode* node);
Result<InitFrom> read_init_from(const YamlNode* node);

}  // namespace gradrack
