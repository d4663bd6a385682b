// SPDX-License-Identifier: Apache-2.0
// UTF-8: reading code points, and what stands for bytes that are none.
//
// Well-formed is what table 3-7 of the Unicode standard lists: no overlong forms, no surrogates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace corpus {

struct CodePoint {
  int32_t value = -1;  // -1: the bytes are no well-formed sequence
  size_t bytes = 1;    // of a faulty one: its longest part that could begin a code point
};

/// The code point at `at`, below text.size().
CodePoint read_code_point(std::string_view text, size_t at);

/// Position of the first byte that is not well-formed; npos: there is none.
size_t find_ill_formed(std::string_view text);

/// Each ill-formed part as one U+FFFD, as Python's `bytes.decode("utf-8", "replace")` does it.
std::string replace_ill_formed(std::string_view text);

}  // namespace corpus
