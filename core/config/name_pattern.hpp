// SPDX-License-Identifier: Apache-2.0
// NamePattern: names that differ in numbers alone, such as "blocks.{n}.norm1.weight".
//
// For mapping files (weight_mapping.hpp). A place {name} stands for a decimal number without
// leading zeros. Invariant: fill(*match(name)) is `name`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"

namespace gradrack {

class NamePattern {
 public:
  /// The number at each place, as text.
  using Numbers = std::map<std::string, std::string>;

  /// GR_INVALID_ARGUMENT, without a place: an empty text, a brace without its other one, a place
  /// without a name of small letters, two places without text between them.
  static Result<NamePattern> parse(const std::string& text);

  const std::string& text() const { return text_; }
  /// Names of the places, sorted, each once.
  std::vector<std::string> places() const;
  /// The numbers with which the pattern is `name`; nothing where there are none.
  std::optional<Numbers> match(std::string_view name) const;
  /// The name with those numbers: one for each place.
  std::string fill(const Numbers& numbers) const;

 private:
  struct Part {
    std::string text;  // or a place's name
    bool place = false;
  };
  std::string text_;
  std::vector<Part> parts_;
};

}  // namespace gradrack
