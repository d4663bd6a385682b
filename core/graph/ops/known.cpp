// SPDX-License-Identifier: Apache-2.0
// Known integers through elementwise work: see known.hpp.
#include "core/graph/ops/known.hpp"

#include <algorithm>

namespace gradrack {

namespace {

/// Element k of known contents that broadcast.
const Dim& known_at(const KnownInts& known, size_t k) { return known[known.size() == 1 ? 0 : k]; }

size_t joint_size(std::initializer_list<const KnownInts*> lists) {
  size_t most = 0;
  for (const KnownInts* list : lists) {
    if (list->empty()) return 0;
    most = std::max(most, list->size());
  }
  return most;
}

/// Whether a < b or a == b for all values of the symbols: plain when a - b is a number.
std::optional<int64_t> difference(const Dim& a, const Dim& b) {
  const Dim d = a - b;
  if (!d.is_number()) return std::nullopt;
  return d.number();
}

}  // namespace

void keep_known(InferContext& c, DimRule rule) {
  if (rule == nullptr || c.input_count() == 0 || c.known(0) == nullptr) return;
  KnownInts out = *c.known(0);
  for (size_t input = 1; input < c.input_count(); ++input) {
    const KnownInts* other = c.known(input);
    if (other == nullptr) return;
    const size_t count = joint_size({&out, other});
    KnownInts joined;
    for (size_t k = 0; k < count; ++k) {
      const std::optional<Dim> each = rule(known_at(out, k), known_at(*other, k));
      if (!each.has_value()) return;
      joined.push_back(*each);
    }
    out = std::move(joined);
  }
  c.set_known(0, std::move(out));
}

void keep_known_where(InferContext& c) {
  const KnownInts *on = c.known(0), *x = c.known(1), *y = c.known(2);
  if (on == nullptr || x == nullptr || y == nullptr) return;
  const size_t count = joint_size({on, x, y});
  KnownInts out;
  for (size_t k = 0; k < count; ++k) {
    const bool first = !(known_at(*on, k) == Dim(0));
    out.push_back(known_at(first ? *x : *y, k));
  }
  c.set_known(0, std::move(out));
}

std::optional<Dim> equal_dims(const Dim& a, const Dim& b) {
  const auto d = difference(a, b);
  if (d.has_value()) return Dim(*d == 0 ? 1 : 0);
  // A size is not -1, whatever it is: exporters ask that before they expand.
  const auto apart = [](const Dim& x, const Dim& y) {
    // The canonical text of a polynomial without a minus has nothing that is taken off.
    const bool never_negative = y.text().find('-') == std::string::npos;
    return x.is_number() && x.number() < 0 && never_negative;
  };
  if (apart(a, b) || apart(b, a)) return Dim(0);
  return std::nullopt;
}

std::optional<Dim> less_dims(const Dim& a, const Dim& b) {
  const auto d = difference(a, b);
  if (!d.has_value()) return std::nullopt;
  return Dim(*d < 0 ? 1 : 0);
}

std::optional<Dim> larger_dim(const Dim& a, const Dim& b) {
  const auto d = difference(a, b);
  if (!d.has_value()) return std::nullopt;
  return *d >= 0 ? a : b;
}

std::optional<Dim> smaller_dim(const Dim& a, const Dim& b) {
  const auto d = difference(a, b);
  if (!d.has_value()) return std::nullopt;
  return *d <= 0 ? a : b;
}

std::optional<Dim> negated_test(const std::optional<Dim>& test) {
  if (!test.has_value()) return std::nullopt;
  return Dim(1) - *test;
}

}  // namespace gradrack
