// SPDX-License-Identifier: Apache-2.0
// The sections of a run file and the keys in them that the host itself reads: one table.
//
// The check, the documentation and `explain` all come from here. Everything else in a plugin
// section belongs to the plugin. Adding a key is adding a row in schema.cpp.
#pragma once

#include <string>
#include <vector>

#include "core/config/options.hpp"

namespace gradrack {

struct SectionSchema {
  const char* name;
  const char* help;
  bool plugin;  ///< holds `plugin:` and that plugin's options
  const char*
      default_plugin;  ///< chain used when the section is left out: "cpu|reference"; NULL: required
  OptionTable keys;    ///< host keys, `plugin` aside
};

/// In the order of a run file. [any]
const std::vector<SectionSchema>& section_schemas();

/// The section of that name, or nullptr.
const SectionSchema* find_section(std::string_view name);

/// Keys of one entry of optimizer.groups that select parameters; all others override options.
const OptionTable& group_keys();

/// Keys of one entry of run.objectives and of run.freeze.
const OptionTable& objective_keys();
const OptionTable& freeze_keys();
/// Keys of run.init_from where it is a map.
const OptionTable& init_from_keys();

/// Keys of a mapping file and of one of its rules, but for those that hold maps.
const OptionTable& mapping_keys();
const OptionTable& mapping_rule_keys();

/// The names of a table's rows.
std::vector<std::string> option_names(const OptionTable& table);

}  // namespace gradrack
