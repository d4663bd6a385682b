// SPDX-License-Identifier: Apache-2.0
// GPT-2's words: see gpt2_words.hpp. Classes of characters come from utf8proc.
#include "plugins/data/common/gpt2_words.hpp"

#include <utf8proc.h>

#include "plugins/data/common/utf8.hpp"

namespace corpus {

namespace {

enum class Kind { kLetter, kNumber, kSpace, kOther };

Kind ascii_kind(int32_t c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return Kind::kLetter;
  if (c >= '0' && c <= '9') return Kind::kNumber;
  return c == ' ' || (c >= 9 && c <= 13) ? Kind::kSpace : Kind::kOther;
}

Kind kind_of(int32_t c) {
  if (c < 0x80) return ascii_kind(c);
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return Kind::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Kind::kNumber;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return Kind::kSpace;
    default:
      return c == 0x85 ? Kind::kSpace : Kind::kOther;  // NEXT LINE is a control that is white
  }
}

size_t contraction(std::string_view rest) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (rest.starts_with(ending)) return ending.size();
  }
  return 0;
}

/// End of the run of characters of `kind` from `at` on; `last`: where its last one begins.
size_t run_end(std::string_view text, size_t at, Kind kind, size_t* last) {
  while (at < text.size()) {
    const CodePoint point = read_code_point(text, at);
    if (kind_of(point.value) != kind) break;
    *last = at;
    at += point.bytes;
  }
  return at;
}

}  // namespace

size_t gpt2_word_end(std::string_view text, size_t at) {
  if (const size_t bytes = contraction(text.substr(at)); bytes > 0) return at + bytes;
  size_t last = at;
  const size_t behind = at + (text[at] == ' ' ? 1 : 0);
  if (behind < text.size()) {
    const Kind kind = kind_of(read_code_point(text, behind).value);
    if (kind != Kind::kSpace) return run_end(text, behind, kind, &last);
  }
  // White space: its last character belongs to the word behind it, unless it is all there is.
  const size_t end = run_end(text, at, Kind::kSpace, &last);
  return end < text.size() && last > at ? last : end;
}

}  // namespace corpus
