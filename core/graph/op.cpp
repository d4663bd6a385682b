// SPDX-License-Identifier: Apache-2.0
// OpRegistry and the shorthands that op tables use: see op.hpp.
#include "core/graph/op.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/graph/ops/families.hpp"

namespace gradrack {

AttrDef attr(std::string name, AttrValue default_value) {
  AttrDef def;
  def.name = std::move(name);
  // The variant's order is that of GR_ATTR_INT, FLOAT, STRING, INTS, FLOATS.
  def.type = static_cast<int32_t>(default_value.index()) + 1;
  def.has_default = true;
  def.default_value = std::move(default_value);
  return def;
}

AttrDef required_attr(std::string name, int32_t type) {
  AttrDef def;
  def.name = std::move(name);
  def.type = type;
  def.required = true;
  return def;
}

AttrDef optional_attr(std::string name, int32_t type) {
  AttrDef def;
  def.name = std::move(name);
  def.type = type;
  return def;
}

std::vector<PortDef> ports(std::string_view text) {
  std::vector<PortDef> out;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    PortDef port;
    if (!word.empty() && word.back() == '?') port.optional = true;
    if (!word.empty() && word.back() == '*') port.variadic = true;
    if (port.optional || port.variadic) word.remove_suffix(1);
    port.name = std::string(word);
    out.push_back(std::move(port));
  }
  return out;
}

Status OpRegistry::add(OpDef op) {
  const std::string name = op.full_name();
  if (ops_.count(name) > 0) return invalid_argument("operator " + name + " is defined twice");
  if (!op.infer) return internal_error("operator " + name + " has no shape rule");
  if ((op.primitive || op.view) == static_cast<bool>(op.decompose)) {
    return internal_error("operator " + name + " must be a primitive or have a decomposition");
  }
  ops_.emplace(name, std::move(op));
  return {};
}

const OpDef* OpRegistry::find(std::string_view domain, std::string_view name) const {
  const std::string full =
      domain.empty() ? std::string(name) : std::string(domain) + "." + std::string(name);
  const auto at = ops_.find(full);
  return at != ops_.end() ? &at->second : nullptr;
}

std::string OpRegistry::nearest(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [full, op] : ops_) names.push_back(full);
  return nearest_name(name, names);
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> out;
  for (const auto& [name, op] : ops_) out.push_back(&op);
  return out;
}

const OpRegistry& OpRegistry::builtin() {
  static const OpRegistry* const registry = [] {
    auto* made = new OpRegistry;  // leaked on purpose: outlives everything
    const Status status = add_builtin_ops(*made);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
    GR_CHECK(status.ok());
    return made;
  }();
  return *registry;
}

}  // namespace gradrack
