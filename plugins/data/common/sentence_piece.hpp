// SPDX-License-Identifier: Apache-2.0
// SentencePiece: a .model file run by Google's library of that name.
#pragma once

#include "plugins/data/common/tokenizer.hpp"

namespace corpus {

/// Throws GR_NOT_FOUND, GR_IO, GR_INVALID_ARGUMENT. [main]
std::unique_ptr<Tokenizer> load_sentence_piece(const std::string& path, bool replace_ill_formed);

}  // namespace corpus
