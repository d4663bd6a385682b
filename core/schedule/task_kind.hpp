// SPDX-License-Identifier: Apache-2.0
// Kinds of tasks as people and files see them: a name, a letter, colours.
//
// The numbers are the ABI's (GR_KIND_*); this is the one table of what they are called in tables,
// reports, timelines and traces.
#pragma once

#include <cstdint>

namespace gradrack {

struct TaskKind {
  const char* name;          ///< "input_gradient": in files
  char letter;               ///< in timelines of text
  const char* colour;        ///< "#rrggbb", in pictures
  const char* trace_colour;  ///< a name that Chrome's trace viewer has a colour for
};

/// Kinds are numbered from 0 to below this.
inline constexpr int32_t kTaskKinds = 6;

/// Of GR_KIND_*. A number that is none of them: "other", '#'.
const TaskKind& task_kind(int32_t kind);

}  // namespace gradrack
