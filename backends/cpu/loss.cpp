// SPDX-License-Identifier: Apache-2.0
// SoftmaxCrossEntropyLoss and its gradient on float32 scores [N, C], and gradrack.CountTargets.
//
// Invariant: a label outside [0, C) that is not ignore_index is an error that names its position;
// an ignored row adds nothing and has a gradient of exactly 0 whatever its scores. Losses of rows
// are summed in double in row order.
#include <cstring>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/index_check.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

enum class Reduction { kNone, kSum, kMean };

/// Attributes and shape of loss and gradient; `first` is the input with the scores.
struct LossShape {
  LossShape(const NodeSpec& node, size_t first)
      : rows(node.inputs[first + 1].count),
        classes(node.inputs[first].dims[1]),
        label_dtype(node.inputs[first + 1].dtype),
        has_ignore(node.has("ignore_index")),
        ignore(node.get_int("ignore_index")),
        smoothing(node.get_float("label_smoothing", 0.0)) {
    const std::string how = node.get_string("reduction", "mean");
    reduction = how == "none"  ? Reduction::kNone
                : how == "sum" ? Reduction::kSum
                               : Reduction::kMean;
    grain = std::max<int64_t>(1, kFunctionGrain / std::max<int64_t>(1, classes));
  }
  bool ignored(int64_t label) const { return has_ignore && label == ignore; }

  /// Checks all labels and counts those that are not ignored; -1 after an error.
  int64_t count(const Indices& labels, gr_error_t* err) const {
    int64_t counted = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t label = labels.raw(row);
      if (ignored(label)) continue;
      if (label < 0 || label >= classes) {
        fail_label(label, row, classes, has_ignore, err);
        return -1;
      }
      ++counted;
    }
    return counted;
  }

  int64_t rows, classes;
  gr_dtype_t label_dtype;
  bool has_ignore;
  int64_t ignore;
  double smoothing;
  Reduction reduction;
  int64_t grain;
};

class LossKernel final : public Kernel {
 public:
  LossKernel(const NodeSpec& node, const Context& context) : context_(context), shape_(node, 0) {}

  int64_t workspace_bytes() const override { return shape_.rows * int64_t{sizeof(double)}; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    const Indices labels(in[1], shape_.label_dtype);
    const int64_t counted = shape_.count(labels, err);
    if (counted < 0) return err->code;
    const float* scores = host::data<float>(in[0]);
    float* y = host::data<float>(out[0]);
    auto* losses = static_cast<double*>(workspace);
    context_.pool.parallel(shape_.rows, shape_.grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        losses[row] = row_loss(scores + row * shape_.classes, labels.raw(row));
      }
    });
    if (shape_.reduction == Reduction::kNone) {
      for (int64_t row = 0; row < shape_.rows; ++row) y[row] = static_cast<float>(losses[row]);
      return GR_OK;
    }
    double sum = 0;
    for (int64_t row = 0; row < shape_.rows; ++row) sum += losses[row];
    if (shape_.reduction == Reduction::kMean)
      sum /= static_cast<double>(std::max<int64_t>(counted, 1));
    y[0] = static_cast<float>(sum);
    return GR_OK;
  }

 private:
  double row_loss(const float* x, int64_t label) const {
    if (shape_.ignored(label)) return 0.0;
    const double log_sum = context_.loops.log_sum_exp(x, shape_.classes);
    const double picked = log_sum - static_cast<double>(x[label]);
    if (shape_.smoothing == 0) return picked;
    const double mean = context_.loops.sum(x, shape_.classes) / static_cast<double>(shape_.classes);
    return (1.0 - shape_.smoothing) * picked + shape_.smoothing * (log_sum - mean);
  }

  const Context& context_;
  LossShape shape_;
};

/// g, scores, labels -> g * (softmax - (1 - s) one_hot - s / C).
class LossGradKernel final : public Kernel {
 public:
  LossGradKernel(const NodeSpec& node, const Context& context)
      : context_(context), shape_(node, 1) {}
  int in_place(int) const override { return 1; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*,
              gr_error_t* err) const override {
    const Indices labels(in[2], shape_.label_dtype);
    const int64_t counted = shape_.count(labels, err);
    if (counted < 0) return err->code;
    const float* g = host::data<float>(in[0]);
    const float* scores = host::data<float>(in[1]);
    float* gx = host::data<float>(out[0]);
    const bool each = shape_.reduction == Reduction::kNone;
    const float share = shape_.reduction == Reduction::kMean
                            ? 1.0f / static_cast<float>(std::max<int64_t>(counted, 1))
                            : 1.0f;
    context_.pool.parallel(shape_.rows, shape_.grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row * shape_.classes;
        row_grad(scores + at, labels.raw(row), g[each ? row : 0] * share, gx + at);
      }
    });
    return GR_OK;
  }

 private:
  void row_grad(const float* x, int64_t label, float g, float* gx) const {
    const int64_t n = shape_.classes;
    if (shape_.ignored(label)) {
      std::memset(gx, 0, static_cast<size_t>(n) * sizeof(float));
      return;
    }
    const double log_sum = context_.loops.log_sum_exp(x, n);
    context_.loops.exp_shifted(x, log_sum, g, gx, n);
    const auto s = static_cast<float>(shape_.smoothing);
    if (s != 0) {
      const float even = g * s / static_cast<float>(n);
      for (int64_t k = 0; k < n; ++k) gx[k] -= even;
    }
    gx[label] -= g * (1.0f - s);
  }

  const Context& context_;
  LossShape shape_;
};

class CountTargetsKernel final : public Kernel {
 public:
  explicit CountTargetsKernel(const NodeSpec& node)
      : count_(node.inputs[0].count),
        label_dtype_(node.inputs[0].dtype),
        wide_(node.outputs[0].dtype == GR_FLOAT64),
        has_ignore_(node.has("ignore_index")),
        ignore_(node.get_int("ignore_index")) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const Indices labels(in[0], label_dtype_);
    int64_t counted = count_;
    for (int64_t k = 0; has_ignore_ && k < count_; ++k) counted -= labels.raw(k) == ignore_;
    if (wide_) {
      host::data<double>(out[0])[0] = static_cast<double>(counted);
    } else {
      host::data<float>(out[0])[0] = static_cast<float>(counted);
    }
    return GR_OK;
  }

 private:
  int64_t count_;
  gr_dtype_t label_dtype_;
  bool wide_, has_ignore_;
  int64_t ignore_;
};

std::string claim_labels(const NodeSpec& node, size_t labels) {
  const gr_dtype_t dtype = node.inputs[labels].dtype;
  if (dtype == GR_INT64 || dtype == GR_INT32) return {};
  return "labels are " + host::dtype_text(dtype);
}

/// Classes must stand last: [N, C], or [N, C, 1, ...].
std::string claim_loss(const NodeSpec& node, size_t scores) {
  std::string reason = claim_float32(node);
  if (!reason.empty()) return reason;
  const host::Dims& dims = node.inputs[scores].dims;
  if (dims.size() < 2 || host::product(dims, 2, dims.size()) != 1) {
    return "scores are " + host::type_text(node.inputs[scores]) + ", [N, C] is known";
  }
  if (node.has_input(scores + 2)) return "weights of classes";
  if (node.has_output(1)) return "the output log_prob";
  return claim_labels(node, scores + 1);
}

std::string claim_count(const NodeSpec& node) {
  const gr_dtype_t dtype = node.outputs[0].dtype;
  if (dtype != GR_FLOAT32 && dtype != GR_FLOAT64) return "the output is " + host::dtype_text(dtype);
  return claim_labels(node, 0);
}

}  // namespace

void add_loss_kernels(host::KernelTable& table, const Context& context) {
  table.add(
      {"SoftmaxCrossEntropyLoss", [](const NodeSpec& node) { return claim_loss(node, 0); },
       [&context](const NodeSpec& node) { return std::make_unique<LossKernel>(node, context); }});
  table.add({"gradrack.SoftmaxCrossEntropyLossGrad",
             [](const NodeSpec& node) { return claim_loss(node, 1); },
             [&context](const NodeSpec& node) {
               return std::make_unique<LossGradKernel>(node, context);
             }});
  table.add({"gradrack.CountTargets", claim_count,
             [](const NodeSpec& node) { return std::make_unique<CountTargetsKernel>(node); }});
}

}  // namespace gradrack::cpu
