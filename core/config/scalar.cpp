// SPDX-License-Identifier: Apache-2.0
// Meaning of scalars: see scalar.hpp.
#include "core/config/scalar.hpp"

#include <charconv>
#include <cmath>
#include <limits>

namespace gradrack {
namespace {

bool is_plain(const YamlNode& node) { return node.kind == YamlNode::Kind::kScalar && node.plain; }

std::optional<uint64_t> digits(std::string_view text, int base) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Sign off the front; -1 or 1.
int take_sign(std::string_view& text) {
  if (text.empty() || (text[0] != '-' && text[0] != '+')) return 1;
  const int sign = text[0] == '-' ? -1 : 1;
  text.remove_prefix(1);
  return sign;
}

bool is_decimal_number(std::string_view text) {
  // from_chars also takes "inf", "nan" and hexadecimal: only what YAML calls a number may pass.
  return !text.empty() && text.find_first_not_of("0123456789.eE+-") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos && text[0] != '-' &&
         text[0] != '+' && text[0] != 'e' && text[0] != 'E';
}

}  // namespace

std::optional<bool> read_bool(const YamlNode& node) {
  if (!is_plain(node)) return std::nullopt;
  if (node.text == "true" || node.text == "True" || node.text == "TRUE") return true;
  if (node.text == "false" || node.text == "False" || node.text == "FALSE") return false;
  return std::nullopt;
}

std::optional<int64_t> read_int(const YamlNode& node) {
  if (!is_plain(node)) return std::nullopt;
  std::string_view text = node.text;
  if (text.substr(0, 2) == "0x" || text.substr(0, 2) == "0o") {
    const std::optional<uint64_t> value = digits(text.substr(2), text[1] == 'x' ? 16 : 8);
    if (!value || *value > uint64_t{std::numeric_limits<int64_t>::max()}) return std::nullopt;
    return static_cast<int64_t>(*value);
  }
  const int sign = take_sign(text);
  const std::optional<uint64_t> value = digits(text, 10);
  const uint64_t limit = uint64_t{std::numeric_limits<int64_t>::max()} + (sign < 0 ? 1 : 0);
  if (!value || *value > limit) return std::nullopt;
  return static_cast<int64_t>(sign < 0 ? uint64_t{0} - *value : *value);
}

std::optional<double> read_float(const YamlNode& node) {
  if (!is_plain(node)) return std::nullopt;
  std::string_view text = node.text;
  if (const std::optional<int64_t> whole = read_int(node)) {
    const bool minus_zero = *whole == 0 && text[0] == '-';
    return minus_zero ? -0.0 : static_cast<double>(*whole);
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const int sign = take_sign(text);
  if (text == ".inf" || text == ".Inf" || text == ".INF") {
    return sign * std::numeric_limits<double>::infinity();
  }
  if (!is_decimal_number(text)) return std::nullopt;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return sign * value;
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kScalar:
      break;
  }
  if (read_bool(node) || read_float(node)) {
    return (read_bool(node) ? "the boolean " : "the number ") + node.text;
  }
  return "text '" + node.text + "'";
}

std::string yaml_number(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : std::string(".nan");
}

}  // namespace gradrack
