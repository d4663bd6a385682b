// SPDX-License-Identifier: Apache-2.0
// GroupSpec and GroupEntry: patterns of nodes that a backend in host memory runs as one kernel.
//
// A family file adds entries with KernelTable::add_group, most wanted first; the host looks for
// their patterns (fusion.h says how they are written) and group.cpp turns the entries into the C
// extension. Invariant: the kernel of a group gives what its nodes give one by one. It gets its
// tensors by their place at the group's border, and knows nothing of values inside.
#pragma once

#include "backends/common/kernel.hpp"
#include "gradrack/fusion.h"

namespace gradrack::host {

/// A match with concrete dims. Readable constants as in TensorSpec: copy what the kernel keeps.
struct GroupSpec {
  GroupSpec() = default;
  explicit GroupSpec(const gr_group_t& group);

  std::vector<NodeSpec> nodes;      // a pattern's by statement, a set's in the graph's order
  std::vector<TensorSpec> inputs;   // at the border, each once, in the order of launch
  std::vector<TensorSpec> outputs;  // what is read outside, in the order of launch

  /// Place of a value among the inputs, or -1: it is made inside, or not read.
  int input(gr_value_t id) const;
  /// Place of a value among the outputs, or -1: nothing outside reads it, so it has no memory.
  int output(gr_value_t id) const;
};

struct GroupEntry {
  std::string name;     // letters, digits, `_`; unique in the table; run files switch it off by it
  std::string help;     // one line: what the kernel saves
  std::string pattern;  // the expression
  uint32_t flags = 0;   // GR_PATTERN_*
  /// Empty: yes. Else the reason, naming the dtype, attribute, shape or read result in the way.
  std::function<std::string(const GroupSpec&)> claim;
  /// Called for claimed groups alone. Kernel::in_place and Kernel::run speak of border places.
  std::function<std::unique_ptr<Kernel>(const GroupSpec&)> make;
};

/// gr.fusion/1 over a table's groups, which must outlive it and stay as they are.
class FusionFace {
 public:
  explicit FusionFace(const KernelTable& table);
  FusionFace(const FusionFace&) = delete;
  FusionFace& operator=(const FusionFace&) = delete;
  /// nullptr: the table has no groups.
  const gr_fusion_t* extension() const;

 private:
  std::vector<gr_pattern_t> patterns_;
  gr_fusion_t face_ = {};
};

/// The entry that made `group` and still claims it; otherwise nullptr and why not.
const GroupEntry* match_group(const KernelTable& table, uint32_t pattern, const GroupSpec& group,
                              std::string* reason);

}  // namespace gradrack::host
