// SPDX-License-Identifier: Apache-2.0
// TokenCache: texts in tokens, kept between runs, a file for each (content, tokenizer).
//
// In the folder that the host gives (gr.cache/1); without one nothing is kept. Invariant: a file is
// named after all that decides the ids, appears whole, and is believed only when its own checksum
// holds; so what comes from here equals what the tokenizer would give. No error of the cache ends a
// run. The folder may be removed between runs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradrack/plugin.h"
#include "plugins/data/common/ids.hpp"
#include "plugins/data/common/mapped_file.hpp"

namespace corpus {

/// Documents in tokens, one behind the other.
struct Tokenized {
  std::optional<IdList> own;         ///< fresh from the tokenizer
  std::unique_ptr<MappedFile> kept;  ///< or from the cache
  IdView ids;                        ///< of either
  std::vector<int64_t> ends;         ///< by document: tokens up to its end
};

class TokenCache {
 public:
  explicit TokenCache(const gr_host_t& host);

  /// What was kept under `key`, 64 hexadecimal digits, for a vocabulary of that size.
  std::optional<Tokenized> find(const std::string& key, int64_t vocab) const;
  /// Keeps it for the next run. A failure is a warning in the log.
  void keep(const std::string& key, const Tokenized& tokens) const;

 private:
  std::string path_of(const std::string& key) const;
  void warn(const std::string& what) const;

  const gr_host_t& host_;
  std::string folder_;  // empty: keep nothing
};

}  // namespace corpus
