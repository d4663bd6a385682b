// SPDX-License-Identifier: Apache-2.0
// `gradrack data inspect`: what the first batches hold, as a person reads it.
//
// Makes the data plugin alone: no model, no plan. Rows of tokens are shown as text where the source
// has a tokenizer, other rows by their first values and their range.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/text.hpp"
#include "core/data/feed.hpp"
#include "core/plugin/choose.hpp"
#include "core/train/commands.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

namespace {

constexpr int64_t kMostValues = 16;  // of a row
constexpr size_t kMostText = 400;    // bytes of a row

/// Control characters, quotes and bytes that are no text as escapes, so that a row is one line.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kMostText)) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + (text.size() > kMostText ? "\" ..." : "\"");
}

/// Element `at` of a host tensor, as a double; exact for integers below 2^53.
double element(const DLTensor& tensor, int64_t at) {
  switch (gr_dtype_of(tensor.dtype)) {
    case GR_INT64:
      return static_cast<double>(static_cast<const int64_t*>(tensor.data)[at]);
    case GR_INT32:
      return static_cast<const int32_t*>(tensor.data)[at];
    case GR_FLOAT64:
      return static_cast<const double*>(tensor.data)[at];
    case GR_FLOAT32:
      return static_cast<const float*>(tensor.data)[at];
    case GR_UINT8:
    case GR_BOOL:
      return static_cast<const uint8_t*>(tensor.data)[at];
    default:
      return NAN;
  }
}

class Inspector {
 public:
  Inspector(const gr_data_t& data, const Feed& feed) : data_(data), feed_(feed) {}

  void print_shapes() const {
    const gr_data_info_t& info = feed_.info();
    if (info.summary != nullptr) std::printf("%s\n", info.summary);
    if (info.identity != nullptr) std::printf("identity %s\n", info.identity);
  }

  Status print(const PreparedBatch& batch, int64_t rows) const {
    for (size_t k = 0; k < feed_.names().size(); ++k) {
      const DLTensor& tensor = batch.tensors[k].tensor();
      std::vector<std::string> dims;
      for (int32_t d = 0; d < tensor.ndim; ++d) dims.push_back(std::to_string(tensor.shape[d]));
      std::printf("  %s %s [%s]%s\n", feed_.names()[k].c_str(),
                  dtype_name(gr_dtype_of(tensor.dtype)).c_str(), join(dims).c_str(),
                  range_text(tensor).c_str());
      for (int64_t row = 0; row < std::min(rows, tensor.shape[0]); ++row) {
        GR_ASSIGN(const std::string text, row_text(tensor, row));
        std::printf("    %lld: %s\n", static_cast<long long>(row), text.c_str());
      }
    }
    return {};
  }

 private:
  static int64_t row_elements(const DLTensor& tensor) {
    return tensor.ndim > 0 && tensor.shape[0] > 0 ? tensor.strides[0] : 0;
  }

  static std::string range_text(const DLTensor& tensor) {
    const int64_t count = row_elements(tensor) * tensor.shape[0];
    if (count == 0) return "";
    double low = element(tensor, 0), high = low, sum = 0;
    for (int64_t at = 0; at < count; ++at) {
      const double value = element(tensor, at);
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
    }
    return fmt::format(", {:g} to {:g}, mean {:.4g}", low, high, sum / static_cast<double>(count));
  }

  /// Rows of ids are text where the source can say which.
  bool is_text(const DLTensor& tensor) const {
    return data_.decode != nullptr && feed_.info().vocab > 0 && tensor.ndim == 2 &&
           gr_dtype_of(tensor.dtype) == GR_INT64;
  }

  Result<std::string> row_text(const DLTensor& tensor, int64_t row) const {
    const int64_t elements = row_elements(tensor), first = row * elements;
    if (is_text(tensor)) {
      const auto* ids = static_cast<const int64_t*>(tensor.data) + first;
      if (std::optional<std::string> text = decoded({ids, ids + elements})) return quoted(*text);
    }
    std::vector<std::string> values;
    for (int64_t k = 0; k < std::min(elements, kMostValues); ++k) {
      values.push_back(fmt::format("{:.6g}", element(tensor, first + k)));
    }
    return join(values) + (elements > kMostValues ? ", ..." : "");
  }

  /// Nothing when an id stands for no text. What a loss leaves out is left out here.
  std::optional<std::string> decoded(std::vector<int64_t> ids) const {
    std::erase_if(ids, [](int64_t id) { return id < 0; });
    uint64_t bytes = 0;
    gr_error_t err = {};
    if (data_.decode(data_.self, ids.data(), ids.size(), nullptr, 0, &bytes, &err) != GR_OK) {
      return {};
    }
    std::string text(bytes, '\0');
    const int32_t code =
        data_.decode(data_.self, ids.data(), ids.size(), text.data(), bytes, &bytes, &err);
    return code == GR_OK ? std::optional(text) : std::nullopt;
  }

  const gr_data_t& data_;
  const Feed& feed_;
};

}  // namespace

Status run_inspect_data(Session& session, const InspectDataRequest& request) {
  const StopSignals stops;
  const RunSection& run = session.config.run;
  GR_ASSIGN(const Chosen<gr_data_t> chosen,
            choose<gr_data_t>(*session.plugins, session.config.data, session.events));
  const gr_data_t& data = chosen.instance.table();
  GR_ASSIGN(Feed feed, Feed::make(data, chosen.instance.name(), static_cast<uint64_t>(run.seed)));
  const Inspector inspector(data, feed);
  inspector.print_shapes();
  const int32_t split = request.validation ? GR_SPLIT_VALIDATION : GR_SPLIT_TRAIN;
  const ThreadRole role(GR_THREAD_EXEC);
  PreparedBatch batch;
  for (int64_t k = 0; k < request.batches && stop_signal() == 0; ++k) {
    const int64_t index = request.first + k;
    GR_ASSIGN(const int64_t rows, feed.rows(split, index, run.batch_size));
    std::printf("%s batch %lld: %lld rows\n", request.validation ? "validation" : "training",
                static_cast<long long>(index), static_cast<long long>(rows));
    if (rows == 0) break;  // the end of the validation split
    GR_TRY(feed.prepare(split, index, run.batch_size, rows, &batch));
    GR_TRY(inspector.print(batch, request.rows));
  }
  return stopped_early("inspecting data");
}

}  // namespace gradrack
