// SPDX-License-Identifier: Apache-2.0
// Private to config/: the three written forms of a plugin section -> one chain.
//
//   optimizer: {plugin: adamw, lr: 1e-3}               one
//   backend: {plugin: [cpu, reference], threads: 2}    a chain with common options
//   backend: [{plugin: cpu, threads: 2}, {plugin: reference}]   a chain, each with its own
#pragma once

#include "core/config/run_config.hpp"
#include "core/config/schema.hpp"

namespace gradrack {

/// `node` may be nullptr when the section is not in the file: the schema's default chain, or an
/// error at `root` for a section that has none.
Result<PluginSection> read_plugin_section(const SectionSchema& schema, const YamlNode* node,
                                          const Place& root);

/// An error at the second entry that names the same plugin.
Status check_no_repeats(const PluginSection& section);

/// `NAME`, `{plugin: NAME, OPTION: VALUE}`, or a list of either: plugins of `kind` that are all
/// used. `node` may be nullptr: none.
Result<std::vector<PluginChoice>> read_plugin_list(const SectionSchema& kind, const YamlNode* node,
                                                   const std::string& path);

}  // namespace gradrack
