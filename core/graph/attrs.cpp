// SPDX-License-Identifier: Apache-2.0
// Attrs: see attrs.hpp.
#include "core/graph/attrs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gradrack {
namespace {

struct ToText {
  template <typename T>
  std::string operator()(const T& value) const {
    return fmt::format("{}", value);
  }
  std::string operator()(const sdk::MayThrow&) const { return ""; }
};

}  // namespace

Attrs::Attrs(std::initializer_list<Item> items) {
  for (const Item& item : items) set(item.first, item.second);
}

void Attrs::set(std::string_view name, AttrValue value) {
  const auto at =
      std::lower_bound(items_.begin(), items_.end(), name,
                       [](const Item& item, std::string_view key) { return item.first < key; });
  if (at != items_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    items_.insert(at, Item(std::string(name), std::move(value)));
  }
}

const AttrValue* Attrs::find(std::string_view name) const {
  for (const Item& item : items_) {
    if (item.first == name) return &item.second;
  }
  return nullptr;
}

int64_t Attrs::get_int(std::string_view name, int64_t fallback) const {
  const AttrValue* value = find(name);
  return value != nullptr ? std::get<int64_t>(*value) : fallback;
}

double Attrs::get_float(std::string_view name, double fallback) const {
  const AttrValue* value = find(name);
  return value != nullptr ? std::get<double>(*value) : fallback;
}

std::string Attrs::get_string(std::string_view name, std::string_view fallback) const {
  const AttrValue* value = find(name);
  return value != nullptr ? std::get<std::string>(*value) : std::string(fallback);
}

std::vector<int64_t> Attrs::get_ints(std::string_view name) const {
  const AttrValue* value = find(name);
  return value != nullptr ? std::get<std::vector<int64_t>>(*value) : std::vector<int64_t>();
}

std::string Attrs::text() const {
  std::string out;
  for (const auto& [name, value] : items_) {
    if (!out.empty()) out += " ";
    out += name + "=" + std::visit(ToText(), value);
  }
  return out;
}

}  // namespace gradrack
