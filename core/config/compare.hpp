// SPDX-License-Identifier: Apache-2.0
// Two configurations side by side: which keys differ, whatever the way in which they are written.
//
// For resuming a run. Numbers are compared by value; a key that only one side has is compared with
// its default. What a difference means is not known here (train/resume_rules.hpp).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/config/yaml.hpp"

namespace gradrack {

/// A key that the two do not agree on, with its values as YAML; "nothing" where there is none.
struct ConfigDifference {
  std::string key;  ///< "optimizer.lr"
  std::string before, now;
  Place place;  ///< of the key now; of the section, or the file, where it is gone
};

/// The default of a full key, as YAML; nothing: it has none, or is no key.
using DefaultOf = std::function<std::optional<std::string>(const std::string& key)>;

/// By the order of `now`, then that of `before`.
std::vector<ConfigDifference> compare_configs(const YamlNode& before, const YamlNode& now,
                                              const DefaultOf& default_of);

}  // namespace gradrack
