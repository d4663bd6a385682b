// SPDX-License-Identifier: Apache-2.0
// Private to config/: `include: FILE` or a list of files, at the top of a run file.
//
//   include: common.yaml              relative to the file that says it
//   optimizer: {lr: 3e-4}             merged key by key over what common.yaml says
//   data: {plugin: text, file: x}     a map with a `plugin` of its own replaces the one included
//
// Own keys win over included ones, a later file of the list over an earlier one; lists and values
// are replaced whole. Invariant: every node keeps the place where it was written, in its own file;
// files that include each other, or more of them than anybody can review, are refused.
#pragma once

#include "core/config/yaml.hpp"

namespace gradrack {

/// `root` with what it includes below it and the key `include` taken out. GR_INVALID_ARGUMENT,
/// GR_NOT_FOUND, GR_IO: one line that begins with the place of the `include`, or as load_yaml.
Result<YamlNode> resolve_includes(YamlNode root, const std::string& file);

}  // namespace gradrack
