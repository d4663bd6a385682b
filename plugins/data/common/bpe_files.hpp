// SPDX-License-Identifier: Apache-2.0
// Reads what a byte-level BPE tokenizer is from `tokenizer.json`, or from `vocab.json` and
// `merges.txt`.
//
// The files may come from a stranger: whatever is not understood is refused by name, since a
// tokenizer that is almost right gives other ids in silence.
#pragma once

#include "plugins/data/common/bpe.hpp"

namespace corpus {

/// `merges` empty: `file` is a tokenizer.json. Throws GR_NOT_FOUND, GR_IO, GR_INVALID_ARGUMENT.
/// [main]
BpeModel read_bpe(const std::string& file, const std::string& merges);

}  // namespace corpus
