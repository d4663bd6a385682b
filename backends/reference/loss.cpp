// SPDX-License-Identifier: Apache-2.0
// SoftmaxCrossEntropyLoss, its gradient, and gradrack.CountTargets.
//
// Invariant: an ignored label adds nothing and its scores are not read; any other label outside the
// classes ends the run with its position and value, before anything is read with it.
#include "backends/reference/function_kernel.hpp"

namespace gradrack::reference {
namespace {

using host::NodeSpec;

/// Scores as [N, classes, inner]; label r = n * inner + i belongs to the scores from start(r) on.
struct LossSizes {
  int64_t rows, classes, inner;
  bool mean, none, can_ignore;
  int64_t ignore;
  double smoothing;

  LossSizes(const NodeSpec& node, size_t scores) {
    const host::Dims& dims = node.inputs[scores].dims;
    classes = dims[1];
    inner = host::product(dims, 2, dims.size());
    rows = dims[0] * inner;
    mean = node.get_string("reduction") == "mean";
    none = node.get_string("reduction") == "none";
    can_ignore = node.has("ignore_index");
    ignore = node.get_int("ignore_index");
    smoothing = node.get_float("label_smoothing");
  }
  int64_t start(int64_t row) const { return row / inner * classes * inner + row % inner; }
  bool ignored(int64_t label) const { return can_ignore && label == ignore; }

  /// Counts labels that are not ignored; refuses the first one outside the classes.
  template <class L>
  int32_t check(const L* labels, int64_t* count, gr_error_t* err) const {
    *count = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t label = static_cast<int64_t>(labels[r]);
      if (ignored(label)) continue;
      if (label < 0 || label >= classes) {
        const std::string text = "label " + std::to_string(label) + " at position " +
                                 std::to_string(r) + " is outside [0, " + std::to_string(classes) +
                                 ") and is not ignore_index";
        return gr_fail(err, GR_OUT_OF_RANGE, "SoftmaxCrossEntropyLoss", text.c_str());
      }
      ++*count;
    }
    return GR_OK;
  }
};

/// log of the sum of exp of a row.
template <class T>
double log_sum_exp(const LossSizes& s, const T* row) {
  double max = static_cast<double>(row[0]), sum = 0;
  for (int64_t c = 1; c < s.classes; ++c) {
    max = std::fmax(max, static_cast<double>(row[c * s.inner]));
  }
  for (int64_t c = 0; c < s.classes; ++c) {
    sum += std::exp(static_cast<double>(row[c * s.inner]) - max);
  }
  return max + std::log(sum);
}

/// (1 - s) * -log p[label] + s * mean over classes of -log p.
template <class T>
double row_loss(const LossSizes& s, const T* row, int64_t label) {
  const double log_sum = log_sum_exp(s, row);
  const double likelihood = log_sum - static_cast<double>(row[label * s.inner]);
  if (s.smoothing == 0) return likelihood;
  double uniform = 0;
  for (int64_t c = 0; c < s.classes; ++c)
    uniform += log_sum - static_cast<double>(row[c * s.inner]);
  return (1 - s.smoothing) * likelihood + s.smoothing * uniform / static_cast<double>(s.classes);
}

template <class T, class L>
std::unique_ptr<host::Kernel> make_loss(const NodeSpec& node) {
  const LossSizes s(node, 0);
  return make_kernel([s](Inputs in, Outputs out, double*, gr_error_t* err) -> int32_t {
    const T* scores = host::data<T>(in[0]);
    const L* labels = host::data<L>(in[1]);
    T* loss = host::data<T>(out[0]);
    int64_t count = 0;
    const int32_t status = s.check(labels, &count, err);
    if (status != GR_OK) return status;
    double sum = 0;
    for (int64_t r = 0; r < s.rows; ++r) {
      const int64_t label = static_cast<int64_t>(labels[r]);
      const double each = s.ignored(label) ? 0.0 : row_loss(s, scores + s.start(r), label);
      if (s.none) loss[r] = static_cast<T>(each);
      sum += each;
    }
    if (s.mean && count > 0) sum /= static_cast<double>(count);
    if (!s.none) loss[0] = static_cast<T>(sum);
    return GR_OK;
  });
}

template <class T, class L>
std::unique_ptr<host::Kernel> make_loss_grad(const NodeSpec& node) {
  const LossSizes s(node, 1);
  return make_kernel([s](Inputs in, Outputs out, double*, gr_error_t* err) -> int32_t {
    const T* scores = host::data<T>(in[1]);
    const L* labels = host::data<L>(in[2]);
    int64_t count = 0;
    const int32_t status = s.check(labels, &count, err);
    if (status != GR_OK) return status;
    for (int64_t r = 0; r < s.rows; ++r) {
      const int64_t label = static_cast<int64_t>(labels[r]);
      const T* row = scores + s.start(r);
      T* gradient = host::data<T>(out[0]) + s.start(r);
      double g = static_cast<double>(host::data<T>(in[0])[s.none ? r : 0]);
      if (s.mean) g /= static_cast<double>(count);
      const double log_sum = s.ignored(label) ? 0.0 : log_sum_exp(s, row);
      for (int64_t c = 0; c < s.classes; ++c) {
        double diff = std::exp(static_cast<double>(row[c * s.inner]) - log_sum);
        diff -= s.smoothing / static_cast<double>(s.classes);
        if (c == label) diff -= 1 - s.smoothing;
        gradient[c * s.inner] = s.ignored(label) ? T(0) : static_cast<T>(g * diff);
      }
    }
    return GR_OK;
  });
}

template <class T, class L>
std::unique_ptr<host::Kernel> make_count(const NodeSpec& node) {
  const int64_t count = node.inputs[0].count, ignore = node.get_int("ignore_index");
  const bool can_ignore = node.has("ignore_index");
  return make_kernel([=](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
      const bool ignored = can_ignore && static_cast<int64_t>(host::data<L>(in[0])[i]) == ignore;
      kept += ignored ? 0 : 1;
    }
    host::data<T>(out[0])[0] = static_cast<T>(kept);
    return GR_OK;
  });
}

/// The maker for labels of int64 or int32: maker(zero, label_zero, node).
template <class Maker>
auto with_labels(size_t labels, Maker maker) {
  return [labels, maker](auto zero, const NodeSpec& node) {
    if (node.inputs[labels].dtype == GR_INT32) return maker(zero, int32_t{0}, node);
    return maker(zero, int64_t{0}, node);
  };
}

}  // namespace

void add_loss_kernels(host::KernelTable& table) {
  add_real(table, "SoftmaxCrossEntropyLoss", 0,
           with_labels(1, [](auto zero, auto label, const NodeSpec& node) {
             return make_loss<decltype(zero), decltype(label)>(node);
           }));
  add_real(table, "gradrack.SoftmaxCrossEntropyLossGrad", 1,
           with_labels(2, [](auto zero, auto label, const NodeSpec& node) {
             return make_loss_grad<decltype(zero), decltype(label)>(node);
           }));
  const auto count = with_labels(0, [](auto zero, auto label, const NodeSpec& node) {
    return make_count<decltype(zero), decltype(label)>(node);
  });
  table.add({"gradrack.CountTargets", claim_reals, [count](const NodeSpec& node) {
               std::unique_ptr<host::Kernel> kernel;
               host::dispatch_real(node.outputs[0].dtype,
                                   [&](auto zero) { kernel = count(zero, node); });
               return kernel;
             }});
}

}  // namespace gradrack::reference
