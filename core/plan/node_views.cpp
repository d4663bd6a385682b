// SPDX-License-Identifier: Apache-2.0
// NodeViews: see node_views.hpp.
#include "core/plan/node_views.hpp"

namespace gradrack {

gr_value_type_t NodeViews::type_of(ValueId id) const {
  gr_value_type_t type = {};
  type.id = id;
  if (id == GR_NO_VALUE) return type;
  if (roots_ != nullptr) type.id = (*roots_)[static_cast<size_t>(id)];
  const BoundValue& value = bound_.at(id);
  type.dtype = bound_.graph->value(id).type.dtype;
  type.rank = static_cast<uint32_t>(value.dims.size());
  type.dims = value.dims.data();
  static const std::byte kEmpty{};  // an empty constant is known too, so it needs an address
  if (value.constant) type.constant = value.content.empty() ? &kEmpty : value.content.data();
  return type;
}

std::vector<gr_attr_t> attr_views(const Attrs& attrs) {
  std::vector<gr_attr_t> out;
  for (const auto& [name, value] : attrs.items()) {
    gr_attr_t attr = {};
    attr.name = name.c_str();
    attr.type = static_cast<int32_t>(value.index()) + 1;  // the variant's order is GR_ATTR_*'s
    if (const auto* i = std::get_if<int64_t>(&value)) attr.i = *i;
    if (const auto* f = std::get_if<double>(&value)) attr.f = *f;
    if (const auto* s = std::get_if<std::string>(&value)) attr.s = s->c_str();
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
      attr.ints = ints->data();
      attr.count = ints->size();
    }
    if (const auto* floats = std::get_if<std::vector<double>>(&value)) {
      attr.floats = floats->data();
      attr.count = floats->size();
    }
    out.push_back(attr);
  }
  return out;
}

void NodeViews::add(size_t index) {
  const Node& node = bound_.graph->nodes()[index];
  std::vector<gr_value_type_t> types;
  for (const ValueId id : node.inputs) types.push_back(type_of(id));
  for (const ValueId id : node.outputs) types.push_back(type_of(id));
  types_.push_back(std::move(types));
  attrs_.push_back(attr_views(node.attrs));
  gr_node_view_t view = {};
  view.struct_size = sizeof view;
  view.kind = node.kind;
  view.domain = node.op->domain.c_str();
  view.op = node.op->name.c_str();
  view.inputs = types_.back().data();
  view.input_count = static_cast<uint32_t>(node.inputs.size());
  view.outputs = types_.back().data() + node.inputs.size();
  view.output_count = static_cast<uint32_t>(node.outputs.size());
  view.attrs = attrs_.back().data();
  view.attr_count = static_cast<uint32_t>(attrs_.back().size());
  views_.push_back(view);
}

std::vector<gr_value_type_t> NodeViews::types_of(const std::vector<ValueId>& ids) const {
  std::vector<gr_value_type_t> types;
  for (const ValueId id : ids) types.push_back(type_of(id));
  return types;
}

gr_group_t NodeViews::group(const std::vector<gr_value_type_t>& inputs,
                            const std::vector<gr_value_type_t>& outputs) const {
  gr_group_t group = {};
  group.struct_size = sizeof group;
  group.node_stride = sizeof(gr_node_view_t);
  group.nodes = views_.data();
  group.node_count = static_cast<uint32_t>(views_.size());
  group.inputs = inputs.data();
  group.input_count = static_cast<uint32_t>(inputs.size());
  group.outputs = outputs.data();
  group.output_count = static_cast<uint32_t>(outputs.size());
  return group;
}

}  // namespace gradrack
