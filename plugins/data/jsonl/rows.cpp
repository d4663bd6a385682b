// SPDX-License-Identifier: Apache-2.0
// Rows of documents: see rows.hpp.
#include "rows.hpp"

#include <algorithm>

void fill_row(const corpus::IdView& ids, const std::vector<int64_t>& ends,
              const corpus::Window& window, int64_t pad, const RowTensors& row) {
  const auto count = static_cast<size_t>(window.count);
  ids.copy(window.first, row.tokens.first(count));
  ids.copy(window.first + 1, row.targets.first(count));
  auto end = std::upper_bound(ends.begin(), ends.end(), window.first);
  int64_t document = 0, position = 0;
  for (size_t k = 0; k < count; ++k) {
    row.documents[k] = document;
    row.positions[k] = position++;
    if (window.first + static_cast<int64_t>(k) + 1 < *end) continue;
    row.targets[k] = kIgnored;  // the next token begins another document
    do ++end;
    while (end != ends.end() && *end == *(end - 1));  // one without tokens
    ++document;
    position = 0;
  }
  const auto fill = [&](std::span<int64_t> out, int64_t value) {
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(count), out.end(), value);
  };
  fill(row.tokens, pad);
  fill(row.targets, kIgnored);
  fill(row.documents, document);
  for (size_t k = count; k < row.positions.size(); ++k) {
    row.positions[k] = static_cast<int64_t>(k - count);
  }
}
