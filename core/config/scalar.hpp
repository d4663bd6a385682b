// SPDX-License-Identifier: Apache-2.0
// What a scalar of the tree means: YAML 1.2's core schema, strictly, whatever the locale.
//
// Between yaml.hpp and options.hpp. Invariant: text in quotes is text; only true and false (in
// three spellings) are booleans; nothing is converted in silence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/config/yaml.hpp"

namespace gradrack {

/// true/True/TRUE, false/False/FALSE without quotes.
std::optional<bool> read_bool(const YamlNode& node);

/// Decimal, 0x or 0o without quotes. Nothing for what does not fit 64 bits.
std::optional<int64_t> read_int(const YamlNode& node);

/// Whole numbers, 1e-3, .5, .inf, -.inf, .nan without quotes. Plain "inf" is text.
std::optional<double> read_float(const YamlNode& node);

/// What stands there, for a message: "the number 3", "text 'fast'", "a list", "nothing".
std::string describe(const YamlNode& node);

/// The shortest YAML number that reads back as the same bits: 0.1, 1e-08, .inf.
std::string yaml_number(double value);

}  // namespace gradrack
