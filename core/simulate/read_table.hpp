// SPDX-License-Identifier: Apache-2.0
// Tables from files: JSON and CSV with every task, YAML with a recipe for them (docs/formats.md).
//
// First step of simulate/. Invariant: nothing in a file is passed over: an unknown key, a repeated
// id and a name that nothing has are errors with file, place, got and wanted. All of them exit
// with 2.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"
#include "core/simulate/sim_table.hpp"

namespace gradrack {

/// By the end of the name: .json, .csv, .yaml (or .yml). `sets` are KEY=VALUE over the keys of a
/// recipe; other tables take none. GR_NOT_FOUND, GR_IO, GR_INVALID_ARGUMENT.
Result<SimTable> load_table(const std::string& path, const std::vector<std::string>& sets);

/// From text; `name` stands in messages.
Result<SimTable> parse_json_table(std::string_view text, const std::string& name);
Result<SimTable> parse_csv_table(std::string_view text, const std::string& name);
Result<SimTable> parse_recipe(std::string_view text, const std::string& name,
                              const std::vector<std::string>& sets = {});

/// The table as JSON that parses to the same one.
std::string table_to_json(const SimTable& table);

}  // namespace gradrack
