// SPDX-License-Identifier: Apache-2.0
// Groups of a linear layer and the cross-entropy of its scores, forward and backward in one kernel:
// LinearLoss (linear_loss.hpp) as the host's graphs hold it.
//
// A tied head reads W [classes, inner] and makes its gradient from (grades, x); a head of its own
// reads W [inner, classes] and makes it from (x, grades). In bfloat16 casts stand between the
// products and the loss, and around the group. Invariant: claimed only where nothing outside reads
// the scores or their gradient.
#include <memory>
#include <vector>

#include "backends/common/group.hpp"
#include "backends/common/tensor_access.hpp"
#include "backends/cpu/index_check.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/linear_loss.hpp"

namespace gradrack::cpu {
namespace {

using host::GroupSpec;
using host::Kernel;
using host::NodeSpec;

/// One form of the pattern, and at which statement each of its nodes stands; -1: not in this form.
struct Form {
  std::string name, expression;
  bool tied = false, narrow = false, gradients = true;
  int scores = -1, loss = -1, loss_grad = -1, grad_x = -1, grad_w = -1;
  int cast_scores = -1, cast_grades = -1, cast_weight = -1, cast_grad_w = -1;
};

/// Writes statements and counts them.
class FormWriter {
 public:
  int add(const std::string& statement) {
    text_ += (text_.empty() ? "" : "; ") + statement;
    return count_++;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int count_ = 0;
};

/// Which casts between float32 and bfloat16 at the border belong to the form.
struct Casts {
  bool weight, grad_w;
};

Form make_form(bool tied, bool narrow, bool gradients, Casts casts) {
  Form f;
  f.tied = tied;
  f.narrow = narrow;
  f.gradients = gradients;
  f.name = std::string("linear_cross_entropy") + (tied ? "_tied" : "") + (narrow ? "_bf16" : "") +
           (gradients ? "" : "_loss") + (casts.weight ? "_weight" : "") +
           (casts.grad_w ? "_grad" : "");
  FormWriter w;
  if (casts.weight) f.cast_weight = w.add("v = Cast(w)");
  const std::string weight = casts.weight ? "v" : "w", scores = narrow ? "s" : "y";
  f.scores = w.add("y = gradrack.FusedMatMul(x, " + weight + ")");
  if (narrow) f.cast_scores = w.add("s = Cast(y)");
  f.loss = w.add("l = SoftmaxCrossEntropyLoss(" + scores + ", t)");
  if (gradients) {
    const std::string grades = narrow ? "e" : "d";
    f.loss_grad = w.add("d = gradrack.SoftmaxCrossEntropyLossGrad(g, " + scores + ", t)");
    if (narrow) f.cast_grades = w.add("e = Cast(d)");
    f.grad_x = w.add("p = gradrack.FusedMatMul(" + grades + ", " + weight + ")");
    f.grad_w = w.add("q = gradrack.FusedMatMul(" + (tied ? grades + ", x)" : "x, " + grades + ")"));
    if (casts.grad_w) f.cast_grad_w = w.add("r = Cast(q)");
  }
  f.expression = w.text();
  return f;
}

const NodeSpec& node_at(const GroupSpec& group, int statement) {
  return group.nodes[static_cast<size_t>(statement)];
}

std::string claim_product(const NodeSpec& node, bool trans_a, bool trans_b) {
  if ((node.get_int("transA") != 0) != trans_a || (node.get_int("transB") != 0) != trans_b) {
    return "a product is transposed in another way";
  }
  if (node.get_float("alpha", 1.0) != 1.0) return "a product has alpha";
  if (node.inputs[0].rank() != 2 || node.inputs[1].rank() != 2) return "a product has batches";
  return {};
}

std::string claim_loss(const NodeSpec& node, size_t scores) {
  if (node.inputs[scores].rank() != 2) return "scores are not [N, C]";
  if (node.get_string("reduction", "mean") == "none") return "reduction none";
  if (node.get_float("label_smoothing", 0.0) != 0.0) return "label_smoothing";
  const gr_dtype_t labels = node.inputs[scores + 1].dtype;
  if (labels != GR_INT64 && labels != GR_INT32) return "labels are " + host::dtype_text(labels);
  return {};
}

/// Empty: what is read outside is the loss and both gradients, where there are any, alone.
std::string claim_border(const Form& f, const GroupSpec& group) {
  for (const int inside : {f.cast_weight, f.scores, f.cast_scores, f.loss_grad, f.cast_grades,
                           f.cast_grad_w < 0 ? -1 : f.grad_w}) {
    if (inside < 0) continue;
    if (group.output(node_at(group, inside).outputs[0].id) >= 0) {
      return "the result of " + node_at(group, inside).op + " is read outside";
    }
  }
  for (const int made : {f.grad_x, f.cast_grad_w < 0 ? f.grad_w : f.cast_grad_w}) {
    if (made >= 0 && group.output(node_at(group, made).outputs[0].id) < 0) {
      return "a gradient is not read";
    }
  }
  return {};
}

/// The value of the loss's gradient, a scalar, must be float32 and come from outside.
std::string claim_scale(const Form& f, const GroupSpec& group) {
  const host::TensorSpec& scale = node_at(group, f.loss_grad).inputs[0];
  if (group.input(scale.id) < 0) return "the gradient of the loss is made inside";
  if (scale.dtype != GR_FLOAT32) return "the gradient of the loss is " + host::type_text(scale);
  return {};
}

std::string claim_dtypes(const Form& f, const GroupSpec& group) {
  const NodeSpec& scores = node_at(group, f.scores);
  const gr_dtype_t wanted = f.narrow ? GR_BFLOAT16 : GR_FLOAT32;
  if (scores.inputs[0].dtype != wanted || scores.inputs[1].dtype != wanted ||
      scores.outputs[0].dtype != wanted) {
    return "the scores' product is not in " + host::dtype_text(wanted);
  }
  if (node_at(group, f.loss).inputs[0].dtype != GR_FLOAT32) return "the loss is not in float32";
  for (const host::TensorSpec& tensor : group.inputs) {
    if (tensor.dtype == GR_FLOAT64 || tensor.dtype == GR_FLOAT16) {
      return "an input is " + host::dtype_text(tensor.dtype);
    }
  }
  for (const host::TensorSpec& tensor : group.outputs) {
    if (tensor.dtype != GR_FLOAT32 && tensor.dtype != GR_BFLOAT16) {
      return "a result is " + host::dtype_text(tensor.dtype);
    }
  }
  return {};
}

std::string claim(const Form& f, const GroupSpec& group) {
  std::string reason = claim_dtypes(f, group);
  if (reason.empty()) reason = claim_border(f, group);
  if (reason.empty()) reason = claim_product(node_at(group, f.scores), false, f.tied);
  if (reason.empty()) reason = claim_loss(node_at(group, f.loss), 0);
  if (!reason.empty() || !f.gradients) return reason;
  reason = claim_loss(node_at(group, f.loss_grad), 1);
  if (reason.empty()) reason = claim_scale(f, group);
  if (reason.empty()) reason = claim_product(node_at(group, f.grad_x), false, !f.tied);
  if (reason.empty()) reason = claim_product(node_at(group, f.grad_w), true, false);
  return reason;
}

class LinearLossKernel final : public Kernel {
 public:
  LinearLossKernel(const Form& f, const GroupSpec& group, const Context& context)
      : places_(f, group), shape_(shape_of(f, group)), loss_(shape_, context) {
    const NodeSpec& node = node_at(group, f.loss);
    label_dtype_ = node.inputs[1].dtype;
    has_ignore_ = node.has("ignore_index");
    ignore_ = node.get_int("ignore_index");
    mean_ = node.get_string("reduction", "mean") == "mean";
    labels_bytes_ = (shape_.rows * int64_t{sizeof(int32_t)} + 63) / 64 * 64;
  }

  int64_t workspace_bytes() const override { return labels_bytes_ + loss_.workspace_bytes(); }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    auto* const labels = static_cast<int32_t*>(workspace);
    const int64_t counted = read_labels(Indices(in[places_.labels], label_dtype_), labels, err);
    if (counted < 0) return err->code;
    const double share = mean_ ? 1.0 / static_cast<double>(std::max<int64_t>(counted, 1)) : 1.0;
    LinearLossData data;
    data.x = in[places_.x]->data;
    data.weight = in[places_.weight]->data;
    data.labels = labels;
    if (shape_.gradients) {
      data.scale = host::data<float>(in[places_.scale])[0] * static_cast<float>(share);
      data.grad_x = out[places_.grad_x]->data;
      data.grad_w = out[places_.grad_w]->data;
    }
    const double sum = loss_.run(data, static_cast<char*>(workspace) + labels_bytes_);
    if (places_.loss >= 0)
      host::data<float>(out[places_.loss])[0] = static_cast<float>(sum * share);
    return GR_OK;
  }

 private:
  /// Places at the group's border.
  struct Places {
    Places(const Form& f, const GroupSpec& group) {
      const NodeSpec& product = node_at(group, f.scores);
      const NodeSpec& from = node_at(group, f.cast_weight < 0 ? f.scores : f.cast_weight);
      x = group.input(product.inputs[0].id);
      weight = group.input(from.inputs[f.cast_weight < 0 ? 1 : 0].id);
      labels = group.input(node_at(group, f.loss).inputs[1].id);
      loss = group.output(node_at(group, f.loss).outputs[0].id);
      if (!f.gradients) return;
      scale = group.input(node_at(group, f.loss_grad).inputs[0].id);
      grad_x = group.output(node_at(group, f.grad_x).outputs[0].id);
      const int made = f.cast_grad_w < 0 ? f.grad_w : f.cast_grad_w;
      grad_w = group.output(node_at(group, made).outputs[0].id);
    }
    int x = -1, weight = -1, labels = -1, scale = -1, loss = -1, grad_x = -1, grad_w = -1;
  };

  LinearLossShape shape_of(const Form& f, const GroupSpec& group) const {
    const auto narrow = [](const host::TensorSpec& t) { return t.dtype == GR_BFLOAT16; };
    const host::Dims& scores = node_at(group, f.scores).outputs[0].dims;
    LinearLossShape shape;
    shape.rows = scores[0];
    shape.classes = scores[1];
    shape.inner = node_at(group, f.scores).inputs[0].dims[1];
    shape.narrow = f.narrow;
    shape.by_class = f.tied;
    shape.gradients = f.gradients;
    shape.x_narrow = narrow(group.inputs[static_cast<size_t>(places_.x)]);
    shape.weight_narrow = narrow(group.inputs[static_cast<size_t>(places_.weight)]);
    if (!f.gradients) return shape;
    shape.grad_x_narrow = narrow(group.outputs[static_cast<size_t>(places_.grad_x)]);
    shape.grad_w_narrow = narrow(group.outputs[static_cast<size_t>(places_.grad_w)]);
    return shape;
  }

  /// Labels with -1 where they are ignored; how many are not, or -1 after an error.
  int64_t read_labels(const Indices& labels, int32_t* to, gr_error_t* err) const {
    int64_t counted = 0;
    for (int64_t row = 0; row < shape_.rows; ++row) {
      const int64_t label = labels.raw(row);
      to[row] = -1;
      if (has_ignore_ && label == ignore_) continue;
      if (label < 0 || label >= shape_.classes) {
        fail_label(label, row, shape_.classes, has_ignore_, err);
        return -1;
      }
      to[row] = static_cast<int32_t>(label);
      ++counted;
    }
    return counted;
  }

  Places places_;
  LinearLossShape shape_;
  LinearLoss loss_;
  gr_dtype_t label_dtype_ = GR_INT64;
  bool has_ignore_ = false, mean_ = false;
  int64_t ignore_ = 0, labels_bytes_ = 0;
};

void add_form(host::KernelTable& table, const Context& context, const Form& form) {
  host::GroupEntry entry;
  entry.name = form.name;
  entry.help = form.gradients ? "scores, loss and both gradients by blocks of classes: never whole"
                              : "scores and loss by blocks of classes: never whole";
  entry.pattern = form.expression;
  entry.flags = GR_PATTERN_ACROSS;
  entry.claim = [form](const GroupSpec& group) { return claim(form, group); };
  entry.make = [form, &context](const GroupSpec& group) {
    return std::make_unique<LinearLossKernel>(form, group, context);
  };
  table.add_group(std::move(entry));
}

}  // namespace

void add_linear_loss_groups(host::KernelTable& table, const Context& context) {
  for (const bool gradients : {true, false}) {
    for (const bool tied : {true, false}) {
      if (gradients) {
        for (const Casts casts :
             {Casts{true, true}, {false, true}, {true, false}, {false, false}}) {
          add_form(table, context, make_form(tied, true, true, casts));
        }
      } else {
        add_form(table, context, make_form(tied, true, false, {true, false}));
        add_form(table, context, make_form(tied, true, false, {false, false}));
      }
      add_form(table, context, make_form(tied, false, gradients, {false, false}));
    }
  }
}

}  // namespace gradrack::cpu
