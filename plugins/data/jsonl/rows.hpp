// SPDX-License-Identifier: Apache-2.0
// Rows of documents: tokens, targets, positions and documents, int64 [batch, block].
//
// Packed: a row is a window over all documents of a split; padded: it belongs to one document.
// `documents` numbers the documents of a row from 0 and `positions` the tokens of each, for models
// that keep them apart. Invariant: no target lies in another document than its token, and what has
// no target has kIgnored, which a loss leaves out.
#pragma once

#include <span>

#include "plugins/data/common/ids.hpp"
#include "plugins/data/common/windows.hpp"

inline constexpr int64_t kIgnored = -100;

/// The tensors of one row.
struct RowTensors {
  std::span<int64_t> tokens, targets, positions, documents;
};

/// Fills a row from `window`; `ends`: by document, tokens up to its end; `pad`: the id that stands
/// where the window has no token.
void fill_row(const corpus::IdView& ids, const std::vector<int64_t>& ends,
              const corpus::Window& window, int64_t pad, const RowTensors& row);
