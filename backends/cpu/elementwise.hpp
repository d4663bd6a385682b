// SPDX-License-Identifier: Apache-2.0
// Which hot loop runs an elementwise operator: asked by its own kernel and by kernels of groups.
//
// Answers are by operator and attributes alone; dtypes and shapes are the caller's to judge.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/common/kernel.hpp"
#include "backends/cpu/simd.hpp"

namespace gradrack::cpu {

/// Of one input (unary.cpp), or none.
std::optional<Unary> unary_of(const host::NodeSpec& node);
/// Of two inputs, broadcast (binary.cpp), or none.
std::optional<Binary> binary_of(const host::NodeSpec& node);
/// Whether each element costs no more than its way through memory.
bool is_plain(Unary which);
bool is_plain(Binary which);

/// Names of all operators that the two know, and those of two inputs (binary.cpp).
std::vector<std::string> elementwise_ops();
void add_binary_names(std::vector<std::string>* names);

/// Attribute alpha of those that have one; 1 elsewhere.
inline float alpha_of(const host::NodeSpec& node) {
  return static_cast<float>(node.get_float("alpha", 1.0));
}

}  // namespace gradrack::cpu
