// SPDX-License-Identifier: Apache-2.0
// Small text helpers that messages need. Base of the flow; no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradrack {

/// Is `word` among `words`?
bool contains(const std::vector<std::string>& words, std::string_view word);

/// Number of single-character edits between two words (Levenshtein).
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, or "" when none is near (more than half of the word differs).
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// " (did you mean 'x'?)", or "" when nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b, c".
std::string join(const std::vector<std::string>& items, std::string_view separator = ", ");

/// "1.5 MiB", "640 B": for people.
std::string human_bytes(int64_t bytes);

}  // namespace gradrack
