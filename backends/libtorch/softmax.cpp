// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and their gradients; SoftmaxCrossEntropyLoss and its gradient.
//
// The losses let ATen make the (log-)softmax and pick from it themselves. Invariant: an ignored
// label adds nothing; any other label outside the classes ends the run with its position and value
// before anything is read with it.
#include <ATen/Parallel.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>

#include "backends/common/tensor_access.hpp"
#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

int64_t softmax_axis(const NodeSpec& node) {
  return static_cast<int64_t>(node.get_axis("axis", node.inputs[0].rank(), -1));
}

template <class Function>
void add_softmax(host::KernelTable& table, const char* op, Function function) {
  const auto build = [function](const NodeSpec& node, Frame& f) -> Body {
    return [function, x = f.in(0), y = f.out(0), axis = softmax_axis(node)](const Call&) mutable {
      function(y, x, axis);
    };
  };
  add(table, op, claim_reals, build);
}

template <class Function>
void add_softmax_grad(host::KernelTable& table, const char* op, Function function) {
  const auto build = [function](const NodeSpec& node, Frame& f) -> Body {
    return [function, gy = f.in(0), y = f.in(1), gx = f.out(0),
            axis = softmax_axis(node)](const Call&) mutable { function(gx, gy, y, axis); };
  };
  add(table, op, claim_reals, build);
}

/// Scores as [N, classes, inner]; label r = n * inner + i belongs to the scores from start(r) on.
struct Loss {
  int64_t samples, classes, inner;
  size_t labels;
  bool mean, none, can_ignore, wide_labels;
  int64_t ignore;
  double smoothing;

  Loss(const NodeSpec& node, size_t scores) : labels(scores + 1) {
    const Dims& dims = node.inputs[scores].dims;
    samples = dims[0];
    classes = dims[1];
    inner = host::product(dims, 2, dims.size());
    mean = node.get_string("reduction") == "mean";
    none = node.get_string("reduction") == "none";
    can_ignore = node.has("ignore_index");
    ignore = node.get_int("ignore_index");
    wide_labels = node.inputs[labels].dtype == GR_INT64;
    smoothing = node.get_float("label_smoothing");
  }
  int64_t rows() const { return samples * inner; }
  int64_t start(int64_t row) const { return row / inner * classes * inner + row % inner; }
  at::Tensor view(const at::Tensor& scores) const { return scores.view({samples, classes, inner}); }
  int64_t label(const Call& call, int64_t row) const {
    const void* data = call.in[labels]->data;
    return wide_labels ? static_cast<const int64_t*>(data)[row]
                       : int64_t{static_cast<const int32_t*>(data)[row]};
  }
  bool ignored(int64_t label) const { return can_ignore && label == ignore; }

  /// Labels that count; refuses the first one outside the classes.
  int64_t count(const Call& call) const {
    int64_t counted = 0;
    for (int64_t row = 0; row < rows(); ++row) {
      const int64_t at_row = label(call, row);
      if (ignored(at_row)) continue;
      ++counted;
      if (at_row >= 0 && at_row < classes) continue;
      throw DataError(GR_OUT_OF_RANGE, "label " + std::to_string(at_row) + " at position " +
                                           std::to_string(row) + " is outside [0, " +
                                           std::to_string(classes) + ") and is not ignore_index");
    }
    return counted;
  }
};

/// (1 - s) * -log p[label] + s * mean over classes of -log p.
template <class T>
double row_loss(const Loss& s, const T* row, int64_t label) {
  const double likelihood = -static_cast<double>(row[label * s.inner]);
  if (s.smoothing == 0) return likelihood;
  double uniform = 0;
  for (int64_t c = 0; c < s.classes; ++c) uniform -= static_cast<double>(row[c * s.inner]);
  return (1 - s.smoothing) * likelihood + s.smoothing * uniform / static_cast<double>(s.classes);
}

template <class T>
void sum_losses(const Loss& s, const Call& call, const at::Tensor& log_softmax, int64_t counted) {
  const T* scores = log_softmax.const_data_ptr<T>();
  T* loss = static_cast<T*>(call.out[0]->data);
  double sum = 0;
  for (int64_t row = 0; row < s.rows(); ++row) {
    const int64_t label = s.label(call, row);
    const double each = s.ignored(label) ? 0.0 : row_loss(s, scores + s.start(row), label);
    if (s.none) loss[row] = static_cast<T>(each);
    sum += each;
  }
  if (s.mean && counted > 0) sum /= static_cast<double>(counted);
  if (!s.none) loss[0] = static_cast<T>(sum);
}

Body build_loss(const NodeSpec& node, Frame& f) {
  const Loss s(node, 0);
  at::Tensor made = f.scratch({s.samples, s.classes, s.inner}, f.in(0).scalar_type());
  return [s, made, scores = s.view(f.in(0))](const Call& call) mutable {
    const int64_t counted = s.count(call);
    if (scores.numel() > 0) at::_log_softmax_out(made, scores, 1, false);
    if (made.scalar_type() == at::kFloat) {
      sum_losses<float>(s, call, made, counted);
    } else {
      sum_losses<double>(s, call, made, counted);
    }
  };
}

/// g * (softmax - (1 - s) * one_hot - s / C) over the softmax in its place; 0 for ignored labels.
template <class T>
void finish_gradient(const Loss& s, const Call& call, int64_t counted) {
  constexpr int64_t kGrain = 16384;  // elements that are worth a thread
  const T* g = static_cast<const T*>(call.in[0]->data);
  T* gradient = static_cast<T*>(call.out[0]->data);
  const double over = s.mean ? static_cast<double>(counted) : 1.0;
  const T each = static_cast<T>(s.smoothing / static_cast<double>(s.classes));
  const T picked = static_cast<T>(1 - s.smoothing);
  const auto rows = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t label = s.label(call, row);
      T* values = gradient + s.start(row);
      const bool ignored = s.ignored(label);
      const T factor = static_cast<T>(static_cast<double>(g[s.none ? row : 0]) / over);
      if (!ignored) values[label * s.inner] -= picked;
      for (int64_t c = 0; c < s.classes; ++c) {
        T& value = values[c * s.inner];
        value = ignored ? T(0) : factor * (value - each);
      }
    }
  };
  at::parallel_for(0, s.rows(), std::max<int64_t>(1, kGrain / std::max<int64_t>(s.classes, 1)),
                   rows);
}

Body build_loss_grad(const NodeSpec& node, Frame& f) {
  const Loss s(node, 1);
  return [s, scores = s.view(f.in(1)), gradient = s.view(f.out(0))](const Call& call) mutable {
    const int64_t counted = s.count(call);
    if (scores.numel() == 0) return;
    at::_softmax_out(gradient, scores, 1, false);
    if (gradient.scalar_type() == at::kFloat) {
      finish_gradient<float>(s, call, counted);
    } else {
      finish_gradient<double>(s, call, counted);
    }
  };
}

}  // namespace

void add_softmax_kernels(host::KernelTable& table) {
  add_softmax(table, "Softmax", [](at::Tensor& y, const at::Tensor& x, int64_t axis) {
    at::_softmax_out(y, x, axis, false);
  });
  add_softmax(table, "LogSoftmax", [](at::Tensor& y, const at::Tensor& x, int64_t axis) {
    at::_log_softmax_out(y, x, axis, false);
  });
  add_softmax_grad(table, "gradrack.SoftmaxGrad",
                   [](at::Tensor& gx, const at::Tensor& gy, const at::Tensor& y, int64_t axis) {
                     at::_softmax_backward_data_out(gx, gy, y, axis, y.scalar_type());
                   });
  add_softmax_grad(table, "gradrack.LogSoftmaxGrad",
                   [](at::Tensor& gx, const at::Tensor& gy, const at::Tensor& y, int64_t axis) {
                     at::_log_softmax_backward_data_out(gx, gy, y, axis, y.scalar_type());
                   });
  add(table, "SoftmaxCrossEntropyLoss", claim_wide, build_loss);
  add(table, "gradrack.SoftmaxCrossEntropyLossGrad", claim_wide, build_loss_grad);
}

}  // namespace gradrack::libtorch
