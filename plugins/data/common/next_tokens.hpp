// SPDX-License-Identifier: Apache-2.0
// NextTokens: the outputs `tokens` and `targets` of a next-token source, and further ones that the
// source fills itself; all int64 [batch, block].
//
// Between windows and the C table: what such sources declare and how a row is filled. Invariant:
// targets are the tokens one position later.
#pragma once

#include "plugins/data/common/ids.hpp"
#include "plugins/data/common/windows.hpp"

namespace corpus {

/// An output beside tokens and targets; values are below `limit`.
struct FurtherOutput {
  const char* name;
  int64_t limit;
};

/// What gr_data_info_t says of such a source.
struct NextTokensInfo {
  int64_t vocab = 0;
  std::string identity;
  const Windows* windows = nullptr;
  std::string summary;
  std::vector<FurtherOutput> further = {};
};

class NextTokens {
 public:
  /// Call once. The order of the windows becomes part of the identity.
  void describe(NextTokensInfo info);
  const gr_data_info_t& info() const { return info_; }

  /// Throws GR_INVALID_ARGUMENT unless these are the declared tensors with `rows` rows.
  void check_outputs(std::span<DLTensor* const> outputs, int64_t rows) const;
  /// Tokens and targets of row `row` from the window that begins at `first`.
  void fill(const IdView& ids, int64_t first, std::span<DLTensor* const> outputs,
            int64_t row) const;

 private:
  std::vector<gr_data_output_t> outputs_;
  std::string summary_, identity_;
  gr_data_info_t info_ = {};
};

}  // namespace corpus
