// SPDX-License-Identifier: Apache-2.0
// UTF-8: see utf8.hpp.
#include "plugins/data/common/utf8.hpp"

namespace corpus {

namespace {

/// What may follow a first byte: how many bytes, and the range of the second.
struct Lead {
  int more = -1;  // -1: no first byte
  uint8_t low = 0x80, high = 0xBF;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {0};
  if (byte >= 0xC2 && byte <= 0xDF) return {1};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {};
}

}  // namespace

CodePoint read_code_point(std::string_view text, size_t at) {
  const auto byte = [&](size_t k) { return static_cast<uint8_t>(text[k]); };
  const uint8_t first = byte(at);
  const Lead lead = lead_of(first);
  if (lead.more <= 0) return {lead.more < 0 ? -1 : int32_t{first}, 1};
  int32_t value = first & (0x3F >> lead.more);
  for (int k = 1; k <= lead.more; ++k) {
    const size_t place = at + static_cast<size_t>(k);
    const uint8_t low = k == 1 ? lead.low : 0x80, high = k == 1 ? lead.high : 0xBF;
    if (place >= text.size() || byte(place) < low || byte(place) > high) {
      return {-1, static_cast<size_t>(k)};
    }
    value = value << 6 | (byte(place) & 0x3F);
  }
  return {value, static_cast<size_t>(lead.more) + 1};
}

size_t find_ill_formed(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = read_code_point(text, at);
    if (point.value < 0) return at;
    at += point.bytes;
  }
  return std::string_view::npos;
}

std::string replace_ill_formed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = read_code_point(text, at);
    if (point.value < 0) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(at, point.bytes);
    }
    at += point.bytes;
  }
  return out;
}

}  // namespace corpus
