// SPDX-License-Identifier: Apache-2.0
// `plugins new`: a folder with a small working plugin of a kind, ready to build and to change.
//
// The text comes from the SDK's templates, which are installed beside the program, one folder
// KIND-LANG each and `common` for what all share. Invariant: nothing that exists is overwritten.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/plugin/registry.hpp"

namespace gradrack {

/// The words of the command line.
struct NewPluginRequest {
  std::string kind;              ///< "optimizer"
  std::string name;              ///< [a-z][a-z0-9_]*
  std::string language = "cpp";  ///< c, cpp or rust
  std::string into;              ///< folder to write; "": one called `name`
};

/// Writes the folder and prints the next three commands. GR_INVALID_ARGUMENT: a bad or used name,
/// no such kind or language, a folder that is not empty. GR_NOT_FOUND: no templates are installed.
/// GR_IO: it cannot be written. [main]
Status new_plugin(PluginRegistry& registry, const NewPluginRequest& request);

/// One line a kind with its languages, from the templates there are: for `plugins new --help`.
std::string template_table();

/// `text` with the template's names ("my_optimizer", "MyOptimizer") replaced by those of `name`.
std::string rename_template(const std::string& text, const std::string& kind,
                            const std::string& name);

}  // namespace gradrack
