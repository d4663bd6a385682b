// SPDX-License-Identifier: Apache-2.0
// Gather and its gradient, GatherElements, ScatterElements: elements found by int32 or int64
// indices.
//
// Invariant: every index is checked before anything is read or written; one out of range is an
// error that names position and value. Additions happen in the order of indices.
#include <cstring>
#include <memory>

#include "backends/common/group.hpp"
#include "backends/common/tensor_access.hpp"
#include "backends/cpu/index_check.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Dims;
using host::Kernel;
using host::NodeSpec;

/// data [outer, axis, inner] with indices [count].
struct GatherShape {
  GatherShape(const Dims& data, int64_t index_count, size_t at)
      : outer(host::product(data, 0, at)),
        axis(data[at]),
        inner(host::product(data, at + 1, data.size())),
        count(index_count) {}
  int64_t outer, axis, inner, count;
};

class GatherKernel final : public Kernel {
 public:
  GatherKernel(const NodeSpec& node, const Context& context)
      : context_(context),
        shape_(node.inputs[0].dims, node.inputs[1].count,
               node.get_axis("axis", node.inputs[0].rank())),
        index_(node.inputs[1].dtype),
        bytes_(gr_dtype_bytes(node.inputs[0].dtype)) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*,
              gr_error_t* err) const override {
    const GatherShape& s = shape_;
    const Indices indices(in[1], index_);
    if (!indices.check(s.count, s.axis, "Gather", err)) return err->code;
    const auto* from = static_cast<const char*>(in[0]->data);
    auto* to = static_cast<char*>(out[0]->data);
    const int64_t run = s.inner * bytes_;
    const int64_t grain = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, run));
    context_.pool.parallel(s.outer * s.count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t row = k / s.count * s.axis + indices.at(k % s.count, s.axis);
        std::memcpy(to + k * run, from + row * run, static_cast<size_t>(run));
      }
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  GatherShape shape_;
  gr_dtype_t index_;
  int64_t bytes_;
};

/// gx[index] += gy for each index, [outer, axis, inner] and [outer, count, inner]. Each thread owns
/// a range of columns, so each sum has one order.
void add_gathered(const Context& context, const GatherShape& s, const Indices& indices,
                  const float* gy, float* gx) {
  const int64_t width = std::max<int64_t>(16, (s.inner + 3) / 4),
                cuts = (s.inner + width - 1) / width;
  const int64_t work = std::max<int64_t>(1, s.count * width);
  context.pool.parallel(
      s.outer * cuts, std::max<int64_t>(1, kPlainGrain / work), [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const int64_t from = k % cuts * width, n = std::min(width, s.inner - from);
          const int64_t o = k / cuts;
          for (int64_t i = 0; i < s.count; ++i) {
            const int64_t row = o * s.axis + indices.at(i, s.axis);
            context.loops.add_scaled(gy + (o * s.count + i) * s.inner + from, 1.0f,
                                     gx + row * s.inner + from, n);
          }
        }
      });
}

/// gy, indices, shape -> gx.
class GatherGradKernel final : public Kernel {
 public:
  GatherGradKernel(const NodeSpec& node, const Context& context)
      : context_(context),
        shape_(node.outputs[0].dims, node.inputs[1].count,
               node.get_axis("axis", node.outputs[0].rank())),
        index_(node.inputs[1].dtype) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*,
              gr_error_t* err) const override {
    const GatherShape& s = shape_;
    const Indices indices(in[1], index_);
    if (!indices.check(s.count, s.axis, "GatherGrad", err)) return err->code;
    float* const gx = host::data<float>(out[0]);
    context_.pool.parallel(s.outer * s.axis * s.inner, kPlainGrain, [&](int64_t from, int64_t to) {
      std::memset(gx + from, 0, static_cast<size_t>(to - from) * sizeof(float));
    });
    add_gathered(context_, s, indices, host::data<float>(in[0]), gx);
    return GR_OK;
  }

 private:
  const Context& context_;
  GatherShape shape_;
  gr_dtype_t index_;
};

/// A gradient plus that of a Gather from the same table, in the memory of the first where it may.
class GatherGradSumKernel final : public Kernel {
 public:
  GatherGradSumKernel(const host::GroupSpec& group, const Context& context)
      : context_(context),
        shape_(group.nodes[0].outputs[0].dims, group.nodes[0].inputs[1].count,
               group.nodes[0].get_axis("axis", group.nodes[0].outputs[0].rank())),
        index_(group.nodes[0].inputs[1].dtype),
        gy_(group.input(group.nodes[0].inputs[0].id)),
        indices_(group.input(group.nodes[0].inputs[1].id)) {
    for (const host::TensorSpec& term : group.nodes[1].inputs) {
      if (term.id != group.nodes[0].outputs[0].id) sum_ = group.input(term.id);
    }
  }
  int in_place(int) const override { return sum_; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*,
              gr_error_t* err) const override {
    const GatherShape& s = shape_;
    const Indices indices(in[indices_], index_);
    if (!indices.check(s.count, s.axis, "GatherGrad", err)) return err->code;
    const float* const sum = host::data<float>(in[sum_]);
    float* const gx = host::data<float>(out[0]);
    if (gx != sum) {
      context_.pool.parallel(
          s.outer * s.axis * s.inner, kPlainGrain, [&](int64_t from, int64_t to) {
            std::memcpy(gx + from, sum + from, static_cast<size_t>(to - from) * sizeof(float));
          });
    }
    add_gathered(context_, s, indices, host::data<float>(in[gy_]), gx);
    return GR_OK;
  }

 private:
  const Context& context_;
  GatherShape shape_;
  gr_dtype_t index_;
  int gy_, indices_, sum_ = -1;
};

/// Walks the places of `indices`; place k reads or writes data at offset(k).
class ElementPlaces {
 public:
  ElementPlaces(const NodeSpec& node)
      : dims_(node.inputs[1].dims),
        strides_(host::row_major_strides(node.inputs[0].dims)),
        axis_(node.get_axis("axis", node.inputs[0].rank())),
        size_(node.inputs[0].dims[axis_]),
        count_(node.inputs[1].count) {}

  int64_t count() const { return count_; }
  int64_t size() const { return size_; }
  int64_t offset(int64_t place, int64_t index) const {
    int64_t at = index * strides_[axis_];
    for (size_t k = dims_.size(); k-- > 0; place /= dims_[k]) {
      if (k != axis_) at += place % dims_[k] * strides_[k];
    }
    return at;
  }

 private:
  Dims dims_, strides_;
  size_t axis_;
  int64_t size_, count_;
};

template <class T>
class GatherElementsKernel final : public Kernel {
 public:
  GatherElementsKernel(const NodeSpec& node, const Context& context)
      : context_(context), places_(node), index_(node.inputs[1].dtype) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*,
              gr_error_t* err) const override {
    const Indices indices(in[1], index_);
    if (!indices.check(places_.count(), places_.size(), "GatherElements", err)) return err->code;
    const T* x = host::data<T>(in[0]);
    T* y = host::data<T>(out[0]);
    context_.pool.parallel(places_.count(), kFunctionGrain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        y[k] = x[places_.offset(k, indices.at(k, places_.size()))];
      }
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  ElementPlaces places_;
  gr_dtype_t index_;
};

template <class T>
class ScatterElementsKernel final : public Kernel {
 public:
  ScatterElementsKernel(const NodeSpec& node, const Context&)
      : places_(node),
        index_(node.inputs[1].dtype),
        bytes_(node.inputs[0].count * int64_t{sizeof(T)}),
        add_(node.get_string("reduction", "none") == "add") {}
  int in_place(int) const override { return 0; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*,
              gr_error_t* err) const override {
    const Indices indices(in[1], index_);
    if (!indices.check(places_.count(), places_.size(), "ScatterElements", err)) return err->code;
    const T* updates = host::data<T>(in[2]);
    T* y = host::data<T>(out[0]);
    if (y != in[0]->data) std::memcpy(y, in[0]->data, static_cast<size_t>(bytes_));
    for (int64_t k = 0; k < places_.count(); ++k) {
      T& target = y[places_.offset(k, indices.at(k, places_.size()))];
      target = add_ ? static_cast<T>(target + updates[k]) : updates[k];
    }
    return GR_OK;
  }

 private:
  ElementPlaces places_;
  gr_dtype_t index_;
  int64_t bytes_;
  bool add_;
};

std::string claim_indices(const NodeSpec& node) {
  const gr_dtype_t dtype = node.inputs[1].dtype;
  if (dtype == GR_INT64 || dtype == GR_INT32) return {};
  return "indices are " + host::dtype_text(dtype);
}

std::string claim_float_indices(const NodeSpec& node) {
  std::string reason = claim_float32(node);
  return reason.empty() ? claim_indices(node) : reason;
}

std::string claim_gather_grad_sum(const host::GroupSpec& group) {
  const NodeSpec &gather = group.nodes[0], &add = group.nodes[1];
  const std::string reason = claim_float_indices(gather);
  if (!reason.empty()) return reason;
  if (group.output(gather.outputs[0].id) >= 0) return "the gradient of Gather is read outside";
  if (add.inputs[0].id == add.inputs[1].id) return "both terms are the gradient of Gather";
  if (add.inputs[0].dims != add.inputs[1].dims) return "the sum broadcasts";
  return {};
}

std::string claim_elements(const NodeSpec& node) {
  const gr_dtype_t dtype = node.inputs[0].dtype;
  if (dtype != GR_FLOAT32 && dtype != GR_FLOAT64 && dtype != GR_INT64) {
    return "data is " + host::dtype_text(dtype);
  }
  const std::string how = node.get_string("reduction", "none");
  if (how != "none" && how != "add") return "reduction " + how;
  return claim_indices(node);
}

template <template <class> class K>
std::unique_ptr<Kernel> make_elements(const NodeSpec& node, const Context& context) {
  switch (node.inputs[0].dtype) {
    case GR_FLOAT32:
      return std::make_unique<K<float>>(node, context);
    case GR_FLOAT64:
      return std::make_unique<K<double>>(node, context);
    default:
      return std::make_unique<K<int64_t>>(node, context);
  }
}

}  // namespace

void add_index_kernels(host::KernelTable& table, const Context& context) {
  table.add({"Gather", claim_indices, [&context](const NodeSpec& node) {
               return std::make_unique<GatherKernel>(node, context);
             }});
  table.add({"gradrack.GatherGrad", claim_float_indices, [&context](const NodeSpec& node) {
               return std::make_unique<GatherGradKernel>(node, context);
             }});
  table.add_group({"gather_grad_sum", "adds the rows of a table's gradient to another in place",
                   "g = gradrack.GatherGrad(gy, i, ...); y = Add(g, x)", 0, claim_gather_grad_sum,
                   [&context](const host::GroupSpec& group) {
                     return std::make_unique<GatherGradSumKernel>(group, context);
                   }});
  table.add({"GatherElements", claim_elements, [&context](const NodeSpec& node) {
               return make_elements<GatherElementsKernel>(node, context);
             }});
  table.add({"ScatterElements", claim_elements, [&context](const NodeSpec& node) {
               return make_elements<ScatterElementsKernel>(node, context);
             }});
}

}  // namespace gradrack::cpu
