// SPDX-License-Identifier: Apache-2.0
// Feed: see feed.hpp.
#include "core/data/feed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/text.hpp"
#include "core/state/checksum.hpp"
#include "sdk/checked/thread_role.hpp"

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
std::string fault_of(const gr_data_output_t& output, const std::vector<std::string>& earlier,
                     const std::vector<std::string>& symbols) {
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
    const char* symbol = output.dims[k].symbol;
    if (symbol != nullptr) {
      if (std::find(symbols.begin(), symbols.end(), symbol) != symbols.end()) continue;
      return fmt::format(
          "'{}' has a dim {} that is no number, and gr.batch/1 does not declare '{}'", output.name,
          k, symbol);
    }
    if (output.dims[k].size < 0) {
      return fmt::format("'{}' has a dim {} of {}", output.name, k, output.dims[k].size);
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
  GR_TRY(feed.read_batch_info());
  for (uint32_t k = 0; k < info.output_count; ++k) {
    const std::string fault = fault_of(feed.output(k), feed.names_, feed.symbols_);
    if (!fault.empty()) {
      return invalid_argument(fmt::format("data '{}': output {} {}", feed.name_, k, fault));
    }
    feed.names_.push_back(feed.output(k).name);
  }
  feed.spares_.resize(feed.names_.size());
  feed.filled_.resize(feed.names_.size());
  return feed;
}

Status Feed::read_batch_info() {
  if (data_->get_extension == nullptr) return {};
  batches_ = static_cast<const gr_batch_t*>(data_->get_extension(data_->self, GR_EXT_BATCH));
  if (batches_ == nullptr) return {};
  const auto bad = [&](const std::string& what) {
    return invalid_argument("data '" + name_ + "', gr.batch/1: " + what).in_area(Area::kPlugin);
  };
  if (!GR_HAS(batches_, describe) || batches_->info == nullptr || batches_->describe == nullptr) {
    return bad("info or describe is missing");
  }
  gr_batch_info_t info = {};
  info.struct_size = sizeof info;
  gr_error_t err = {};
  GR_TRY(status_from(batches_->info(batches_->self, &info, &err), err)
             .with_context("data '" + name_ + "', gr.batch/1"));
  if ((info.set_count > 0 && info.sets == nullptr) || info.symbol_count > GR_MAX_BATCH_SYMBOLS ||
      (info.symbol_count > 0 && info.symbols == nullptr)) {
    return bad(fmt::format("{} sets and {} symbols, of which some are missing or too many",
                           info.set_count, info.symbol_count));
  }
  for (uint32_t k = 0; k < info.set_count; ++k) {
    const gr_objective_set_t& set = info.sets[k];
    if (set.count == 0 || set.names == nullptr) return bad(fmt::format("set {} is empty", k));
    std::vector<std::string> names(set.names, set.names + set.count);
    if (std::find(sets_.begin(), sets_.end(), names) != sets_.end()) {
      return bad(fmt::format("set {} is declared twice", k));
    }
    sets_.push_back(std::move(names));
  }
  for (uint32_t k = 0; k < info.symbol_count; ++k) {
    const gr_batch_symbol_t& symbol = info.symbols[k];
    if (symbol.name == nullptr || symbol.largest < 1) {
      return bad(fmt::format("symbol {} has no name or a largest size of {}", k, symbol.largest));
    }
    symbols_.push_back(symbol.name);
    largest_[k] = symbol.largest;
  }
  return {};
}

Result<BatchDescription> Feed::describe(int32_t split, int64_t index, int64_t batch) const {
  if (split == GR_SPLIT_TRAIN && is_ahead(batch)) {
    GR_ASSIGN(const PreparedBatch* ready, ahead_->take(index));
    return ready->description;
  }
  const std::unique_lock lock = lock_calls();
  return ask(split, index, batch);
}

Result<BatchDescription> Feed::ask(int32_t split, int64_t index, int64_t batch) const {
  BatchDescription out;
  if (batches_ == nullptr) return out;
  const gr_batch_request_t request = {sizeof request, split, seed_, index, batch};
  gr_batch_description_t answer = {};
  answer.struct_size = sizeof answer;
  gr_error_t err = {};
  const int32_t code = batches_->describe(batches_->self, &request, &answer, &err);
  if (code != GR_OK) return status_from(code, err).with_context("data '" + name_ + "'");
  // Plans exist for what was declared: a wrong answer must not reach them.
  const bool known = answer.objective_set < std::max<size_t>(sets_.size(), 1);
  bool fits = true;
  for (size_t k = 0; k < symbols_.size(); ++k) {
    out.sizes[k] = answer.sizes[k];
    fits &= answer.sizes[k] >= 1 && answer.sizes[k] <= largest_[k];
  }
  if (!known || !fits) {
    return internal_error(
        fmt::format("data '{}' described batch {} beyond what gr.batch/1 declares "
                    "(set {} of {}): a bug of the plugin",
                    name_, index, answer.objective_set, sets_.size()));
  }
  out.set = answer.objective_set;
  return out;
}

int64_t Feed::size_of(const gr_dim_t& dim, const BatchSizes& sizes) const {
  if (dim.symbol == nullptr) return dim.size;
  size_t k = 0;
  while (k + 1 < symbols_.size() && symbols_[k] != dim.symbol) ++k;
  return sizes[k];
}

const gr_data_output_t& Feed::output(size_t k) const {
  const char* first = reinterpret_cast<const char*>(info_.outputs);
  return *reinterpret_cast<const gr_data_output_t*>(first + k * info_.output_stride);
}

Status Feed::check_input(const Value& input, const gr_data_output_t& output, int64_t rows,
                         const BatchSizes& sizes, Bindings* bindings) const {
  const Type offered = type_of(output);
  const std::string both = fmt::format("model input '{}' is {}, data '{}' gives {}", input.name,
                                       to_text(input.type), name_, to_text(offered));
  if (input.type.dtype != offered.dtype || input.type.shape.size() != offered.shape.size()) {
    return invalid_argument(both);
  }
  for (size_t k = 0; k < offered.shape.size(); ++k) {
    const Dim& wanted = input.type.shape[k];
    const int64_t size = k == 0 ? rows : size_of(output.dims[k], sizes);
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

Result<Bindings> Feed::bindings(const Graph& graph, int64_t rows, const BatchSizes& sizes) const {
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
    GR_TRY(check_input(value, output(k), rows, sizes, &bindings));
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

DLTensor* Feed::reshape(size_t k, int64_t rows, const BatchSizes& sizes,
                        BatchTensor* tensor) const {
  const gr_data_output_t& shape = output(k);
  int64_t dims[GR_MAX_RANK] = {rows};
  for (uint32_t d = 1; d < shape.rank; ++d) dims[d] = size_of(shape.dims[d], sizes);
  return tensor->reshape(shape.dtype, dims, shape.rank);
}

std::unique_lock<std::mutex> Feed::lock_calls() const {
  if ((data_->flags & GR_DATA_CONCURRENT) != 0) return {};
  return std::unique_lock(*calls_);
}

void Feed::prepare_ahead(int64_t batch, int64_t depth, int64_t workers) {
  const bool several = (data_->flags & GR_DATA_CONCURRENT) != 0;
  ahead_batch_ = batch;
  ahead_ = std::make_unique<Prefetch>(
      [this, batch](int64_t index, PreparedBatch* out) {
        return prepare(GR_SPLIT_TRAIN, index, batch, batch, out);
      },
      depth, several ? std::min(workers, depth) : 1);
}

Status Feed::prepare(int32_t split, int64_t index, int64_t batch, int64_t rows,
                     PreparedBatch* out) const {
  const ThreadRole role(GR_THREAD_EXEC);
  const std::unique_lock lock = lock_calls();
  GR_ASSIGN(out->description, ask(split, index, batch));
  out->tensors.resize(names_.size());
  out->pointers.resize(names_.size());
  for (size_t k = 0; k < names_.size(); ++k) {
    out->pointers[k] = reshape(k, rows, out->description.sizes, &out->tensors[k]);
  }
  return call(split, index, batch, out->pointers.data());
}

Status Feed::copy_ahead(int64_t index, const std::vector<DLTensor*>& tensors) {
  GR_ASSIGN(const PreparedBatch* ready, ahead_->take(index));
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (tensors[k] == nullptr) continue;
    const std::vector<std::byte>& bytes = ready->tensors[k].bytes();
    std::memcpy(tensors[k]->data, bytes.data(), bytes.size());
  }
  ahead_->release(index);
  return {};
}

Status Feed::fill(int32_t split, int64_t index, int64_t batch, int64_t rows,
                  const std::vector<DLTensor*>& tensors, const BatchSizes& sizes) {
  if (split == GR_SPLIT_TRAIN && is_ahead(batch)) return copy_ahead(index, tensors);
  for (size_t k = 0; k < names_.size(); ++k) {
    filled_[k] = tensors[k] != nullptr ? tensors[k] : reshape(k, rows, sizes, &spares_[k]);
  }
  const std::unique_lock lock = lock_calls();
  return call(split, index, batch, filled_.data());
}

Status Feed::call(int32_t split, int64_t index, int64_t batch, DLTensor* const* tensors) const {
  const gr_batch_request_t request = {sizeof request, split, seed_, index, batch};
  gr_error_t err = {};
  const int32_t code =
      data_->batch(data_->self, &request, tensors, static_cast<uint32_t>(names_.size()), &err);
  if (code == GR_OK) return {};
  return status_from(code, err).with_context("data '" + name_ + "'");
}

Result<std::string> Feed::fingerprint(int64_t batch) const {
  Checksum sum;
  const int64_t amounts[] = {info_.vocab, info_.classes, info_.block, info_.train_items,
                             info_.validation_items};
  sum.add(amounts, sizeof amounts);
  if (info_.identity != nullptr) sum.add(info_.identity, std::strlen(info_.identity));
  PreparedBatch first;
  for (const int32_t split : {GR_SPLIT_TRAIN, GR_SPLIT_VALIDATION}) {
    GR_ASSIGN(const int64_t count, rows(split, 0, batch));
    if (count == 0) continue;
    GR_TRY(prepare(split, 0, batch, count, &first));
    for (const BatchTensor& tensor : first.tensors) {
      sum.add(tensor.bytes().data(), tensor.bytes().size());
    }
  }
  return sum.hex();
}

}  // namespace gradrack
