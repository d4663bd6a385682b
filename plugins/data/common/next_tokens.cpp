// SPDX-License-Identifier: Apache-2.0
// NextTokens: see next_tokens.hpp.
#include "plugins/data/common/next_tokens.hpp"

#include "plugins/data/common/digest.hpp"

namespace corpus {

namespace gr = gradrack::sdk;

void NextTokens::describe(NextTokensInfo info) {
  const Windows& windows = *info.windows;
  const auto add = [&](const FurtherOutput& output) {
    outputs_.push_back(
        {output.name, GR_INT64, 2, {{0, "batch"}, {windows.block(), nullptr}}, output.limit});
  };
  add({"tokens", info.vocab});
  add({"targets", info.vocab});
  for (const FurtherOutput& output : info.further) add(output);
  summary_ = std::move(info.summary);
  Digest digest;
  digest.add_text(info.identity);
  digest.add_text(windows.identity());
  identity_ = digest.hex();
  info_.struct_size = sizeof info_;
  info_.outputs = outputs_.data();
  info_.output_count = static_cast<uint32_t>(outputs_.size());
  info_.output_stride = sizeof outputs_[0];
  info_.vocab = info.vocab;
  info_.block = windows.block();
  info_.train_items = windows.train_items();
  info_.validation_items = windows.validation_items();
  info_.summary = summary_.c_str();
  info_.identity = identity_.c_str();
}

void NextTokens::check_outputs(std::span<DLTensor* const> outputs, int64_t rows) const {
  if (outputs.size() != outputs_.size()) {
    std::string names = outputs_[0].name;
    for (size_t k = 1; k < outputs_.size(); ++k) {
      names += gr::text(k + 1 < outputs_.size() ? ", " : " and ", outputs_[k].name);
    }
    throw gr::Error(GR_INVALID_ARGUMENT, "outputs",
                    gr::text("got ", outputs.size(), " tensors, wanted ", names));
  }
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
