// SPDX-License-Identifier: Apache-2.0
// NodeViews: nodes of a bound graph in the form that backends read.
//
// Used by claim and prepare. Owns the arrays that the C structs point to; texts and dims belong to
// the bound graph. Invariant: valid while the BoundGraph and its Graph are; ids are the graph's, or
// those of roots.
#pragma once

#include <deque>
#include <vector>

#include "core/plan/bind.hpp"
#include "gradrack/backend.h"

namespace gradrack {

/// Attributes as C structs that point into `attrs`.
std::vector<gr_attr_t> attr_views(const Attrs& attrs);

class NodeViews {
 public:
  /// With `roots` (of each value; has to stay) a view is shown under the id of its root.
  explicit NodeViews(const BoundGraph& bound, const std::vector<ValueId>* roots = nullptr)
      : bound_(bound), roots_(roots) {}

  /// Appends the view of a live node.
  void add(size_t node);
  /// The views, in the order added. Valid until the next add().
  const std::vector<gr_node_view_t>& views() const { return views_; }
  /// All views as one group to prepare, with the types of its border. Points into this object and
  /// the two vectors, which have to stay.
  gr_group_t group(const std::vector<gr_value_type_t>& inputs,
                   const std::vector<gr_value_type_t>& outputs) const;
  /// The types of some values, for the border of a group.
  std::vector<gr_value_type_t> types_of(const std::vector<ValueId>& ids) const;
  /// One value, for the border of a group.
  gr_value_type_t type_of(ValueId id) const;

 private:
  const BoundGraph& bound_;
  const std::vector<ValueId>* roots_;
  std::vector<gr_node_view_t> views_;
  std::deque<std::vector<gr_value_type_t>> types_;
  std::deque<std::vector<gr_attr_t>> attrs_;
};

}  // namespace gradrack
