// SPDX-License-Identifier: Apache-2.0
// The table of kinds: see task_kind.hpp.
#include "core/schedule/task_kind.hpp"

namespace gradrack {

const TaskKind& task_kind(int32_t kind) {
  static constexpr TaskKind kKinds[kTaskKinds + 1] = {
      {"forward", 'F', "#4e79a7", "rail_response"},
      {"input_gradient", 'X', "#e15759", "terrible"},
      {"weight_gradient", 'W', "#59a14f", "good"},
      {"update", 'U', "#b07aa1", "detailed_memory_dump"},
      {"collective", 'R', "#f28e2b", "rail_idle"},
      {"copy", 'C', "#9c9c9c", "grey"},
      {"other", '#', "#bab0ac", "generic_work"}};
  return kKinds[kind >= 0 && kind < kTaskKinds ? kind : kTaskKinds];
}

}  // namespace gradrack
