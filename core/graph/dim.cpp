// SPDX-License-Identifier: Apache-2.0
// Dim arithmetic: see dim.hpp.
#include "core/graph/dim.hpp"

#include <algorithm>
#include <limits>

namespace gradrack {
namespace {

// Of a size that does not fit: a symbol that nothing binds, so that whoever needs the number
// refuses it.
constexpr std::string_view kTooLarge = "(more than 64 bits)";

// Numbers are in [-max, max], so that division by -1 fits too.
bool add(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_add_overflow(a, b, out) && *out != std::numeric_limits<int64_t>::min();
}

bool multiply(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_mul_overflow(a, b, out) && *out != std::numeric_limits<int64_t>::min();
}

}  // namespace

struct Dim::Quotient {
  Dim numerator;
  Dim denominator;
};

Dim::Dim(int64_t number) {
  // Slices say "from the very end" by the least number.
  if (number != 0) terms_[{}] = std::max(number, -std::numeric_limits<int64_t>::max());
}

Dim Dim::symbol(std::string_view name) {
  Dim dim;
  dim.terms_[{Atom{std::string(name), nullptr}}] = 1;
  return dim;
}

bool Dim::is_number() const {
  return terms_.empty() || (terms_.size() == 1 && terms_.begin()->first.empty());
}

int64_t Dim::number() const {
  GR_CHECK(is_number());
  return terms_.empty() ? 0 : terms_.begin()->second;
}

Dim Dim::add_scaled(const Dim& other, int64_t factor) const {
  Dim sum = *this;
  for (const auto& [monomial, coefficient] : other.terms_) {
    int64_t& slot = sum.terms_[monomial];
    int64_t scaled = 0;
    if (!multiply(coefficient, factor, &scaled) || !add(slot, scaled, &slot)) {
      return symbol(kTooLarge);
    }
    if (slot == 0) sum.terms_.erase(monomial);
  }
  return sum;
}

Dim Dim::operator+(const Dim& other) const { return add_scaled(other, 1); }
Dim Dim::operator-(const Dim& other) const { return add_scaled(other, -1); }

Dim Dim::operator*(const Dim& other) const {
  Dim product;
  for (const auto& [a, x] : terms_) {
    for (const auto& [b, y] : other.terms_) {
      Monomial both = a;
      both.insert(both.end(), b.begin(), b.end());
      std::sort(both.begin(), both.end());
      Dim term;
      if (!multiply(x, y, &term.terms_[both])) return symbol(kTooLarge);
      product = product + term;
    }
  }
  return product;
}

bool Dim::divide_by_monomial(const Monomial& atoms, int64_t factor, Dim* out) const {
  Dim quotient;
  for (const auto& [monomial, coefficient] : terms_) {
    if (coefficient % factor != 0) return false;
    Monomial rest = monomial;
    for (const Atom& atom : atoms) {
      const auto at = std::find(rest.begin(), rest.end(), atom);
      if (at == rest.end()) return false;
      rest.erase(at);
    }
    quotient.terms_[rest] = coefficient / factor;
  }
  *out = quotient;
  return true;
}

Dim Dim::floor_div(const Dim& divisor) const {
  GR_CHECK(!divisor.terms_.empty());
  if (is_number() && divisor.is_number()) {
    const int64_t a = number(), b = divisor.number();
    const int64_t q = a / b;
    return Dim((a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q);
  }
  if (*this == divisor) return Dim(1);
  if (divisor.terms_.size() == 1) {
    const auto& [atoms, factor] = *divisor.terms_.begin();
    Dim quotient;
    if (divide_by_monomial(atoms, factor, &quotient)) return quotient;
  }
  Atom atom{"floor((" + text() + ")/(" + divisor.text() + "))",
            std::make_shared<const Quotient>(Quotient{*this, divisor})};
  Dim dim;
  dim.terms_[{atom}] = 1;
  return dim;
}

std::string Dim::text() const {
  if (terms_.empty()) return "0";
  std::string out;
  // The constant term is the smallest monomial: print it last.
  for (auto it = terms_.rbegin(); it != terms_.rend(); ++it) {
    const auto& [monomial, coefficient] = *it;
    if (!out.empty() && coefficient >= 0) out += "+";
    if (monomial.empty()) {
      out += std::to_string(coefficient);
      continue;
    }
    if (coefficient == -1) out += "-";
    if (coefficient != 1 && coefficient != -1) out += std::to_string(coefficient) + "*";
    for (size_t k = 0; k < monomial.size(); ++k) out += (k > 0 ? "*" : "") + monomial[k].text;
  }
  return out;
}

Result<int64_t> Dim::bind(const Bindings& bindings) const {
  int64_t sum = 0;
  const auto too_large = [&] {
    return invalid_argument("dimension " + text() + " does not fit 64 bits");
  };
  for (const auto& [monomial, coefficient] : terms_) {
    int64_t product = coefficient;
    for (const Atom& atom : monomial) {
      if (atom.quotient != nullptr) {
        GR_ASSIGN(const int64_t a, atom.quotient->numerator.bind(bindings));
        GR_ASSIGN(const int64_t b, atom.quotient->denominator.bind(bindings));
        if (b == 0) return invalid_argument("division by zero in dimension " + text());
        if (!multiply(product, Dim(a).floor_div(Dim(b)).number(), &product)) return too_large();
        continue;
      }
      const auto at = bindings.find(atom.text);
      if (atom.text == kTooLarge) return too_large();
      if (at == bindings.end()) {
        return invalid_argument("dimension '" + atom.text + "' has no value here");
      }
      if (!multiply(product, at->second, &product)) return too_large();
    }
    if (!add(sum, product, &sum)) return too_large();
  }
  return sum;
}

std::string to_text(const Shape& shape) {
  std::string out = "[";
  for (size_t k = 0; k < shape.size(); ++k) out += (k > 0 ? ", " : "") + shape[k].text();
  return out + "]";
}

Dim element_count(const Shape& shape) {
  Dim count(1);
  for (const Dim& dim : shape) count = count * dim;
  return count;
}

Result<std::vector<int64_t>> bind(const Shape& shape, const Bindings& bindings) {
  std::vector<int64_t> out;
  for (const Dim& dim : shape) {
    GR_ASSIGN(const int64_t size, dim.bind(bindings));
    out.push_back(size);
  }
  return out;
}

}  // namespace gradrack
