// SPDX-License-Identifier: Apache-2.0
// Dim: one dimension of a shape, a polynomial over named symbols with integer coefficients.
//
// Shapes are inferred once with names ("batch", "time") and bound to numbers when a plan is made.
// Invariant: canonical form, so two dims are equal exactly when their terms are; division that does
// not come out even becomes an atom floor(a/b) with a canonical text.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"

namespace gradrack {

/// Values of symbols when a plan is made.
using Bindings = std::map<std::string, int64_t, std::less<>>;

class Dim {
 public:
  Dim(int64_t number = 0);  // NOLINT: a number is a dim
  static Dim symbol(std::string_view name);

  bool is_number() const;
  /// The number; only when is_number().
  int64_t number() const;
  bool is_one() const { return is_number() && number() == 1; }

  Dim operator+(const Dim& other) const;
  Dim operator-(const Dim& other) const;
  Dim operator*(const Dim& other) const;
  /// Floor of the quotient; exact when the polynomial divides.
  Dim floor_div(const Dim& divisor) const;
  bool operator==(const Dim& other) const { return terms_ == other.terms_; }

  /// "2*time+1"; the text is canonical.
  std::string text() const;
  /// The number under `bindings`; GR_INVALID_ARGUMENT when a symbol is not bound.
  Result<int64_t> bind(const Bindings& bindings) const;

 private:
  struct Quotient;
  // An atom is a symbol, or a quotient that stays a quotient. Ordered and compared by text.
  struct Atom {
    std::string text;
    std::shared_ptr<const Quotient> quotient;
    bool operator<(const Atom& o) const { return text < o.text; }
    bool operator==(const Atom& o) const { return text == o.text; }
  };
  using Monomial = std::vector<Atom>;  // sorted; empty: the constant term
  Dim add_scaled(const Dim& other, int64_t factor) const;
  bool divide_by_monomial(const Monomial& atoms, int64_t factor, Dim* out) const;

  std::map<Monomial, int64_t> terms_;  // no zero coefficients
};

using Shape = std::vector<Dim>;

/// "[batch, 64, 3]".
std::string to_text(const Shape& shape);
/// Product of all dims; 1 for a scalar.
Dim element_count(const Shape& shape);
/// All dims bound to numbers.
Result<std::vector<int64_t>> bind(const Shape& shape, const Bindings& bindings);

}  // namespace gradrack
