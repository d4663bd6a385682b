// SPDX-License-Identifier: Apache-2.0
// Splits text into the words that GPT-2's merges stay within.
//
// The pieces of the pattern
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Source: encoder.py of openai/gpt-2. Invariant: the words side by side are the text.
#pragma once

#include <cstddef>
#include <string_view>

namespace corpus {

/// End of the word that begins at `at`, below text.size(). `text` is well-formed UTF-8.
size_t gpt2_word_end(std::string_view text, size_t at);

}  // namespace corpus
