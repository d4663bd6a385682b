// SPDX-License-Identifier: Apache-2.0
// What each kind's table must hold: its name and its required function pointers.
//
// The one place of core/ that a new kind of plugin touches (with plugin_kinds in library.cpp).
#pragma once

#include <cstddef>
#include <vector>

#include "gradrack/gradrack.h"

namespace gradrack {

/// A required function pointer of a table.
struct Slot {
  const char* name;
  size_t offset;
};

/// A kind: its YAML word, the size of its table, what must be filled.
struct KindInfo {
  const char* kind;
  size_t table_bytes;
  std::vector<Slot> required;
};

template <typename Table>
const KindInfo& kind_info();

template <>
const KindInfo& kind_info<gr_model_t>();
template <>
const KindInfo& kind_info<gr_data_t>();
template <>
const KindInfo& kind_info<gr_optimizer_t>();
template <>
const KindInfo& kind_info<gr_lr_schedule_t>();
template <>
const KindInfo& kind_info<gr_precision_t>();
template <>
const KindInfo& kind_info<gr_scheduler_t>();
template <>
const KindInfo& kind_info<gr_backend_t>();
template <>
const KindInfo& kind_info<gr_metrics_t>();

}  // namespace gradrack
