// SPDX-License-Identifier: Apache-2.0
// Data sources with one fault each, named after it: what the conformance kit has to notice.
#include "gradrack/data.hpp"

#include <cmath>
#include <cstring>

namespace {

namespace gr = gradrack::sdk;

enum class Fault {
  kNone,
  kCallOrder,
  kBeyondLimit,
  kNotANumber,
  kShortTraining,
  kEndless,
  kGapInElements,
  kWritesPast,
  kLossyText
};

constexpr const char* kNames[] = {"right",           "call_order",     "beyond_limit",
                                  "not_a_number",    "short_training", "endless",
                                  "gap_in_elements", "writes_past",    "lossy_text"};
constexpr int64_t kVocabulary = 20, kBlock = 6, kValidation = 11;

template <Fault kFault>
class Wrong {
 public:
  static constexpr const char* kName = kNames[static_cast<size_t>(kFault)];
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "for tests";

  explicit Wrong(const gr::Options&) {
    outputs_[0].name = "tokens";
    outputs_[0].dtype = GR_INT64;
    outputs_[0].limit = kVocabulary;
    outputs_[1].name = "weights";
    outputs_[1].dtype = GR_FLOAT32;
    for (gr_data_output_t& output : outputs_) {
      output.rank = 2;
      output.dims[0] = {0, "batch"};
      output.dims[1] = {kBlock, nullptr};
    }
    info_.struct_size = sizeof info_;
    info_.outputs = outputs_;
    info_.output_count = 2;
    info_.output_stride = sizeof outputs_[0];
    info_.vocab = kVocabulary;
    info_.block = kBlock;
    info_.train_items = 100;
    info_.validation_items = kValidation;
    info_.summary = "for tests";
  }

  const gr_data_info_t& info() const { return info_; }

  int64_t rows(const gr_batch_request_t& request) const {
    if (request.split == GR_SPLIT_TRAIN) {
      return kFault == Fault::kShortTraining && request.index % 2 == 0
                 ? std::max<int64_t>(1, request.batch_size - 1)
                 : request.batch_size;
    }
    const int64_t left = kValidation - request.index * request.batch_size;
    const int64_t rows = std::max<int64_t>(0, std::min(left, request.batch_size));
    // Begins again after a while.
    return kFault == Fault::kEndless && request.index > 100 ? request.batch_size : rows;
  }

  void batch(const gr_batch_request_t& request, std::span<DLTensor* const> outputs) const {
    uint64_t state = static_cast<uint64_t>(request.index) * 31 + 7;
    if (request.split == GR_SPLIT_TRAIN) state += request.seed * 1000003;
    if (kFault == Fault::kCallOrder) state += static_cast<uint64_t>(++calls_);
    auto* tokens = static_cast<int64_t*>(outputs[0]->data);
    auto* weights = static_cast<float*>(outputs[1]->data);
    const int64_t count = outputs[0]->shape[0] * kBlock;
    for (int64_t k = 0; k < count; ++k) {
      state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      if (kFault == Fault::kGapInElements && k == 3) continue;
      tokens[k] = static_cast<int64_t>((state >> 33) % kVocabulary);
      weights[k] = static_cast<float>((state >> 40) % 100);
    }
    if (kFault == Fault::kBeyondLimit) tokens[count - 1] = kVocabulary;
    if (kFault == Fault::kNotANumber) weights[1] = NAN;
    if (kFault == Fault::kWritesPast) tokens[count] = 0;
  }

  std::vector<int64_t> encode(std::string_view text) const {
    std::vector<int64_t> ids;
    for (const char c : text) ids.push_back((c - 'a') % kVocabulary);
    if (kFault == Fault::kLossyText && !ids.empty()) ids.pop_back();
    return ids;
  }

  std::string decode(std::span<const int64_t> ids) const {
    std::string text;
    for (const int64_t id : ids) text += static_cast<char>('a' + id);
    return text;
  }

 private:
  gr_data_output_t outputs_[2] = {};
  gr_data_info_t info_ = {};
  mutable int calls_ = 0;
};

}  // namespace

GRADRACK_PLUGIN("test.wrong_data", "1.0.0", gr::Data<Wrong<Fault::kNone>>,
                gr::Data<Wrong<Fault::kCallOrder>>, gr::Data<Wrong<Fault::kBeyondLimit>>,
                gr::Data<Wrong<Fault::kNotANumber>>, gr::Data<Wrong<Fault::kShortTraining>>,
                gr::Data<Wrong<Fault::kEndless>>, gr::Data<Wrong<Fault::kGapInElements>>,
                gr::Data<Wrong<Fault::kWritesPast>>, gr::Data<Wrong<Fault::kLossyText>>)
