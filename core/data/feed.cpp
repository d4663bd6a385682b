// SPDX-License-Identifier: Apache-2.0
// Feed: see feed.hpp.
#include "core/data/feed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/text.hpp"

namespace gradrack {

namespace {

Shape shape_of(const gr_data_output_t& output) {
  Shape shape;
  for (uint32_t k = 0; k < output.rank; ++k) {
    const gr_dim_t& dim = output.dims[k];
    shape.push_back(dim.symbol != nullptr ? Dim::symbol(dim.symbol) : Dim(dim.size));
  }
  return shape;
}

Type type_of(const gr_data_output_t& output) { return {output.dtype, shape_of(output)}; }

bool is_plain_symbol(const Dim& dim) { return !dim.is_number() && Dim::symbol(dim.text()) == dim; }

// Far beyond what a row holds; sums and products of what is allowed do not overflow.
constexpr int64_t kMostRowBytes = int64_t{1} << 30;

// What breaks the rules of gradrack/data.h in a declared output, or "".
std::string fault_of(const gr_data_output_t& output, const std::vector<std::string>& earlier) {
  if (output.name == nullptr || output.name[0] == '\0') return "has no name";
  if (std::find(earlier.begin(), earlier.end(), output.name) != earlier.end()) {
    return fmt::format("'{}' is declared twice", output.name);
  }
  if (output.rank < 1 || output.rank > GR_MAX_RANK) {
    return fmt::format("'{}' has rank {}, wanted 1 to {}", output.name, output.rank,
                       int{GR_MAX_RANK});
  }
  if (gr_dtype_bytes(output.dtype) <= 0) return fmt::format("'{}' has no dtype", output.name);
  if (output.dims[0].symbol == nullptr || std::string_view(output.dims[0].symbol) != "batch") {
    return fmt::format("'{}' must have \"batch\" as its first dim", output.name);
  }
  int64_t row_bytes = gr_dtype_bytes(output.dtype);
  for (uint32_t k = 1; k < output.rank; ++k) {
    if (output.dims[k].symbol != nullptr || output.dims[k].size < 0) {
      return fmt::format("'{}' has a dim {} that is no number", output.name, k);
    }
    if (output.dims[k].size > kMostRowBytes / std::max<int64_t>(1, row_bytes)) {
      return fmt::format("'{}' has rows of more than {} bytes", output.name, kMostRowBytes);
    }
    row_bytes *= output.dims[k].size;
  }
  return "";
}

}  // namespace

Result<Feed> Feed::make(const gr_data_t& data, std::string name, uint64_t seed) {
  Feed feed;
  feed.data_ = &data;
  feed.name_ = std::move(name);
  feed.seed_ = seed;
  feed.info_.struct_size = sizeof feed.info_;
  gr_error_t err = {};
  GR_TRY(status_from(data.info(data.self, &feed.info_, &err), err)
             .with_context("data '" + feed.name_ + "'"));
  const gr_data_info_t& info = feed.info_;
  if (info.output_count == 0 || info.outputs == nullptr || info.output_stride == 0) {
    return invalid_argument("data '" + feed.name_ + "' declares no outputs");
  }
  if (info.output_stride < sizeof(gr_data_output_t) ||
      info.output_stride % alignof(gr_data_output_t) != 0) {
    return invalid_argument(fmt::format("data '{}': output_stride is {}, wanted {}", feed.name_,
                                        info.output_stride, sizeof(gr_data_output_t)));
  }
  for (uint32_t k = 0; k < info.output_count; ++k) {
    const std::string fault = fault_of(feed.output(k), feed.names_);
    if (!fault.empty()) {
      return invalid_argument(fmt::format("data '{}': output {} {}", feed.name_, k, fault));
    }
    feed.names_.push_back(feed.output(k).name);
  }
  feed.spares_.resize(feed.names_.size());
  feed.filled_.resize(feed.names_.size());
  return feed;
}

const gr_data_output_t& Feed::output(size_t k) const {
  const char* first = reinterpret_cast<const char*>(info_.outputs);
  return *reinterpret_cast<const gr_data_output_t*>(first + k * info_.output_stride);
}

Status Feed::check_input(const Value& input, const gr_data_output_t& output, int64_t rows,
                         Bindings* bindings) const {
  const Type offered = type_of(output);
  const std::string both = fmt::format("model input '{}' is {}, data '{}' gives {}", input.name,
                                       to_text(input.type), name_, to_text(offered));
  if (input.type.dtype != offered.dtype || input.type.shape.size() != offered.shape.size()) {
    return invalid_argument(both);
  }
  for (size_t k = 0; k < offered.shape.size(); ++k) {
    const Dim& wanted = input.type.shape[k];
    const int64_t size = k == 0 ? rows : offered.shape[k].number();
    if (is_plain_symbol(wanted)) {
      const auto [at, is_new] = bindings->emplace(wanted.text(), size);
      if (!is_new && at->second != size) {
        return invalid_argument(
            fmt::format("{}: '{}' would be both {} and {}", both, wanted.text(), at->second, size));
      }
      continue;
    }
    GR_ASSIGN(const int64_t bound, wanted.bind(*bindings));
    if (bound != size) return invalid_argument(both);
  }
  if (input.limit > 0 && output.limit > input.limit) {
    return invalid_argument(fmt::format(
        "data '{}' may bring '{}' up to {}, the model takes values below {}: raise the model's "
        "vocab or classes, or set 0 to follow the data",
        name_, input.name, output.limit - 1, input.limit));
  }
  return {};
}

Result<Bindings> Feed::bindings(const Graph& graph, int64_t rows) const {
  Bindings bindings;
  for (const Value& value : graph.values()) {
    if (value.source != Source::kInput) continue;
    size_t k = 0;
    while (k < names_.size() && names_[k] != value.name) ++k;
    if (k == names_.size()) {
      return invalid_argument(
          fmt::format("model input '{}' is not brought by data '{}', which has {}{}", value.name,
                      name_, join(names_), did_you_mean(value.name, names_)));
    }
    // A real input of the data is float32; the policy may have retyped the model's.
    GR_TRY(check_input(value, output(k), rows, &bindings));
  }
  return bindings;
}

Result<int64_t> Feed::rows(int32_t split, int64_t index, int64_t batch) const {
  const gr_batch_request_t request = {sizeof request, split, seed_, index, batch};
  int64_t count = 0;
  gr_error_t err = {};
  GR_TRY(status_from(data_->rows(data_->self, &request, &count, &err), err)
             .with_context("data '" + name_ + "'"));
  // Tensors have room for `batch` rows: a wrong answer must not reach them.
  const bool right = split == GR_SPLIT_TRAIN ? count == batch : count >= 0 && count <= batch;
  if (!right) {
    return internal_error(
        fmt::format("data '{}' answered {} rows for a batch of {}: a bug of the "
                    "plugin",
                    name_, count, batch));
  }
  return count;
}

DLTensor* Feed::spare(size_t k, int64_t rows) {
  Spare& spare = spares_[k];
  const gr_data_output_t& shape = output(k);
  if (spare.dims.empty() || spare.dims[0] != rows) {
    spare.dims.assign(shape.rank, rows);
    spare.strides.assign(shape.rank, 1);
    int64_t count = 1;
    for (size_t d = shape.rank; d-- > 0;) {
      if (d > 0) spare.dims[d] = shape.dims[d].size;
      spare.strides[d] = count;
      count *= spare.dims[d];
    }
    spare.bytes.resize(static_cast<size_t>(count * gr_dtype_bytes(shape.dtype)));
    spare.tensor = {spare.bytes.data(),
                    {kDLCPU, 0},
                    static_cast<int32_t>(shape.rank),
                    gr_dl_dtype(shape.dtype),
                    spare.dims.data(),
                    spare.strides.data(),
                    0};
  }
  return &spare.tensor;
}

Status Feed::fill(int32_t split, int64_t index, int64_t batch, int64_t rows,
                  const std::vector<DLTensor*>& tensors) {
  for (size_t k = 0; k < names_.size(); ++k) {
    filled_[k] = tensors[k] != nullptr ? tensors[k] : spare(k, rows);
  }
  const gr_batch_request_t request = {sizeof request, split, seed_, index, batch};
  gr_error_t err = {};
  const int32_t code = data_->batch(data_->self, &request, filled_.data(),
                                    static_cast<uint32_t>(filled_.size()), &err);
  if (code == GR_OK) return {};
  return status_from(code, err).with_context("data '" + name_ + "'");
}

}  // namespace gradrack
