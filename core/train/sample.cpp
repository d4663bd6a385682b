// SPDX-License-Identifier: Apache-2.0
// `gradrack sample`: text from a trained model, one token at a time.
//
// Runs the evaluation graph on one row. The model must be causal and give "logits" [1, T, V]; what
// lies after the last token is padding that it cannot see. Randomness is Philox keyed by (seed,
// position).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "core/train/commands.hpp"
#include "core/train/programs.hpp"
#include "core/train/weights.hpp"
#include "gradrack/philox.h"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

namespace {

Result<std::vector<int64_t>> encode(const gr_data_t& data, const std::string& text) {
  uint64_t count = 0;
  gr_error_t err = {};
  std::vector<int64_t> ids(text.size() + 1);
  const int32_t code =
      data.encode(data.self, text.data(), text.size(), ids.data(), ids.size(), &count, &err);
  GR_TRY(status_from(code, err).with_context("--prompt"));
  ids.resize(std::min<size_t>(count, ids.size()));
  return ids;
}

Result<std::string> decode(const gr_data_t& data, const std::vector<int64_t>& ids) {
  uint64_t bytes = 0;
  gr_error_t err = {};
  int32_t code = data.decode(data.self, ids.data(), ids.size(), nullptr, 0, &bytes, &err);
  GR_TRY(status_from(code, err));
  std::string text(bytes, '\0');
  code = data.decode(data.self, ids.data(), ids.size(), text.data(), text.size(), &bytes, &err);
  GR_TRY(status_from(code, err));
  return text;
}

/// Row `position` of logits [1, T, V] as doubles.
void read_logits(const DLTensor& logits, int64_t position, std::vector<double>* out) {
  const int64_t vocab = logits.shape[2];
  out->resize(static_cast<size_t>(vocab));
  for (int64_t v = 0; v < vocab; ++v) {
    const int64_t at = position * vocab + v;
    (*out)[static_cast<size_t>(v)] = gr_dtype_of(logits.dtype) == GR_FLOAT64
                                         ? static_cast<const double*>(logits.data)[at]
                                         : static_cast<const float*>(logits.data)[at];
  }
}

/// Draws an index from softmax(logits / temperature) over the `top_k` likeliest (0: all), with `u`
/// uniform in [0, 1). Ties are broken by the lower index.
int64_t draw(const std::vector<double>& logits, double temperature, int64_t top_k, double u) {
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return logits[size_t(a)] > logits[size_t(b)]; });
  if (temperature == 0) return order[0];
  if (top_k > 0 && static_cast<size_t>(top_k) < order.size()) order.resize(size_t(top_k));
  const double highest = logits[static_cast<size_t>(order[0])];
  double total = 0;
  std::vector<double> weight;
  for (const int64_t v : order) {
    weight.push_back(std::exp((logits[static_cast<size_t>(v)] - highest) / temperature));
    total += weight.back();
  }
  double left = u * total;
  for (size_t k = 0; k < order.size(); ++k) {
    left -= weight[k];
    if (left < 0) return order[k];
  }
  return order.back();
}

class Sampler {
 public:
  /// `names`: of the program's inputs.
  Sampler(Program& program, const std::vector<std::string>& names, const SampleRequest& request)
      : program_(program), names_(names), request_(request) {}

  Status prepare() {
    GR_ASSIGN(const TensorHandle handle, program_.executor->output("logits"));
    logits_ = program_.executor->tensor(handle);
    tokens_ = program_.inputs[0];
    if (logits_->ndim != 3 || tokens_ == nullptr || tokens_->ndim != 2) {
      return unsupported("sample needs a model with logits [batch, time, vocab] over tokens");
    }
    for (DLTensor* input : program_.inputs) clear(*input);
    count_positions();
    return {};
  }

  /// Id of the token after `ids`.
  Result<int64_t> next(const std::vector<int64_t>& ids) {
    const ThreadRole role(GR_THREAD_EXEC);
    const int64_t block = tokens_->shape[1];
    const int64_t shown = std::min<int64_t>(block, static_cast<int64_t>(ids.size()));
    std::copy(ids.end() - shown, ids.end(), static_cast<int64_t*>(tokens_->data));
    GR_TRY(program_.executor->run());
    read_logits(*logits_, shown - 1, &row_);
    const auto position = static_cast<uint32_t>(ids.size());
    const uint32_t counter[4] = {position, 0, 0, 0x73616d70};  // "samp"
    uint32_t random[4];
    gr_philox4x32(counter, request_.seed, random);
    return draw(row_, request_.temperature, request_.top_k, gr_uniform24(random[0]));
  }

 private:
  static void clear(const DLTensor& tensor) {
    int64_t bytes = gr_dtype_bytes(gr_dtype_of(tensor.dtype));
    for (int32_t k = 0; k < tensor.ndim; ++k) bytes *= tensor.shape[k];
    std::memset(tensor.data, 0, static_cast<size_t>(bytes));
  }

  /// A row is one document here, so its tokens are numbered through.
  void count_positions() {
    for (size_t k = 0; k < names_.size(); ++k) {
      const DLTensor* input = program_.inputs[k];
      if (names_[k] != "positions" || input == nullptr) continue;
      if (gr_dtype_of(input->dtype) != GR_INT64) continue;
      auto* positions = static_cast<int64_t*>(input->data);
      std::iota(positions, positions + tokens_->shape[1], int64_t{0});
    }
  }

  Program& program_;
  const std::vector<std::string>& names_;
  const SampleRequest& request_;
  const DLTensor* logits_ = nullptr;
  DLTensor* tokens_ = nullptr;
  std::vector<double> row_;
};

}  // namespace

Status run_sample(Session& session, const SampleRequest& request) {
  const StopSignals stops;
  GR_ASSIGN(const std::unique_ptr<Programs> programs, Programs::make(session));
  const Instance<gr_data_t>& source = programs->setup().data->instance;
  const gr_data_t& data = source.table();
  if (data.encode == nullptr || data.decode == nullptr) {
    return unsupported("data plugin '" + source.name() +
                       "' has no tokenizer, so there is no text to sample")
        .in_area(Area::kPlugin);
  }
  GR_TRY(programs->plan_evaluation(1));
  GR_TRY(programs->allocate());
  const std::string& output = session.config.run.output;
  GR_TRY(load_weights({request.checkpoint.empty() ? output : request.checkpoint, request.mapping},
                      session, *programs->setup().model->choice, &programs->store()));
  GR_ASSIGN(std::vector<int64_t> ids, encode(data, request.prompt));
  if (ids.empty()) return invalid_argument("--prompt is empty: give at least one character");
  GR_ASSIGN(Program* const program, programs->evaluation(1, programs->feed().largest()));
  Sampler sampler(*program, programs->feed().names(), request);
  GR_TRY(sampler.prepare());
  std::fputs(request.prompt.c_str(), stdout);
  for (int64_t k = 0; k < request.tokens && stop_signal() == 0; ++k) {
    GR_ASSIGN(const int64_t id, sampler.next(ids));
    ids.push_back(id);
    GR_ASSIGN(const std::string text, decode(data, {id}));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  std::fputs("\n", stdout);
  return stopped_early("sampling");
}

}  // namespace gradrack
