// SPDX-License-Identifier: Apache-2.0
// NextTokens: see next_tokens.hpp.
#include "plugins/data/common/next_tokens.hpp"

#include "plugins/data/common/digest.hpp"

namespace corpus {

namespace gr = gradrack::sdk;

void NextTokens::describe(NextTokensInfo info) {
  const Windows& windows = *info.windows;
  for (auto* output : {&outputs_[0], &outputs_[1]}) {
    output->dtype = GR_INT64;
    output->rank = 2;
    output->dims[0] = {0, "batch"};
    output->dims[1] = {windows.block(), nullptr};
    output->limit = info.vocab;
  }
  outputs_[0].name = "tokens";
  outputs_[1].name = "targets";
  summary_ = std::move(info.summary);
  Digest digest;
  digest.add_text(info.identity);
  digest.add_text(windows.identity());
  identity_ = digest.hex();
  info_.struct_size = sizeof info_;
  info_.outputs = outputs_;
  info_.output_count = 2;
  info_.output_stride = sizeof outputs_[0];
  info_.vocab = info.vocab;
  info_.block = windows.block();
  info_.train_items = windows.train_items();
  info_.validation_items = windows.validation_items();
  info_.summary = summary_.c_str();
  info_.identity = identity_.c_str();
}

void NextTokens::check_outputs(std::span<DLTensor* const> outputs, int64_t rows) const {
  gr::require(outputs.size() == 2, GR_INVALID_ARGUMENT, "outputs", "got ", outputs.size(),
              " tensors, wanted tokens and targets");
  for (const DLTensor* t : outputs) {
    const bool ok = t->ndim == 2 && t->shape[0] == rows && t->shape[1] == info_.block &&
                    gr_dtype_of(t->dtype) == GR_INT64;
    gr::require(ok, GR_INVALID_ARGUMENT, "outputs", "wanted int64 tensors [", rows, ", ",
                info_.block, "]");
  }
}

void NextTokens::fill(const IdView& ids, int64_t first, std::span<DLTensor* const> outputs,
                      int64_t row) const {
  ids.copy(first, gr::row_of<int64_t>(*outputs[0], row));
  ids.copy(first + 1, gr::row_of<int64_t>(*outputs[1], row));
}

}  // namespace corpus
