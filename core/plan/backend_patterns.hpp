// SPDX-License-Identifier: Apache-2.0
// The patterns that a backend declares (fusion.h), checked and parsed.
#pragma once

#include "core/device/device.hpp"
#include "core/plan/pattern.hpp"
#include "gradrack/fusion.h"

namespace gradrack {

struct BackendPattern {
  std::string name;
  std::string help;
  std::string expression;
  uint32_t index = 0;  // as the backend counts
  uint32_t flags = 0;  // GR_PATTERN_*
  PatternText text;

  bool across() const { return (flags & GR_PATTERN_ACROSS) != 0; }
};

/// The backend's table of patterns; nullptr: it has none. [any]
const gr_fusion_t* fusion_of(const gr_backend_t* backend);

/// In the backend's order. GR_INVALID_ARGUMENT: a name or an expression is wrong, and which.
Result<std::vector<BackendPattern>> patterns_of(const gr_backend_t* backend);

}  // namespace gradrack
