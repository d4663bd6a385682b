// SPDX-License-Identifier: Apache-2.0
// Attrs: the attributes of a node, complete (defaults filled in when the node is made).
//
// Invariant: sorted by name and of the declared types, so that equal nodes compare and hash equal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gradrack/may_throw.hpp"

namespace gradrack {

using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, sdk::MayThrow>;

class Attrs {
 public:
  using Item = std::pair<std::string, AttrValue>;

  Attrs() = default;
  Attrs(std::initializer_list<Item> items);

  void set(std::string_view name, AttrValue value);
  const AttrValue* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  /// The value, or `fallback` when absent. The type was checked when the node was made.
  int64_t get_int(std::string_view name, int64_t fallback = 0) const;
  double get_float(std::string_view name, double fallback = 0) const;
  std::string get_string(std::string_view name, std::string_view fallback = "") const;
  std::vector<int64_t> get_ints(std::string_view name) const;

  const std::vector<Item>& items() const { return items_; }
  bool operator==(const Attrs& other) const { return items_ == other.items_; }
  /// "axis=-1 epsilon=1e-05"; floats with all their digits.
  std::string text() const;

 private:
  std::vector<Item> items_;
};

}  // namespace gradrack
