// SPDX-License-Identifier: Apache-2.0
// The row of an options table for a path that may be left out.
#pragma once

#include <cmath>

#include "gradrack/options.h"

namespace corpus {

constexpr gr_option_t optional_path(const char* name, const char* help) {
  return {sizeof(gr_option_t), 0, name, GR_OPTION_PATH, 0, "", -INFINITY, INFINITY, nullptr, help};
}

}  // namespace corpus
