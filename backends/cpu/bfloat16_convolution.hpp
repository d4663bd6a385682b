// SPDX-License-Identifier: Apache-2.0
// oneDNN's bfloat16 convolutions for a node and a number of samples: descriptions, primitives, and
// the changes of layout around them.
//
// Used by bfloat16_conv.cpp alone. Invariant: layouts are oneDNN's choice; outside, tensors are
// dense and row-major.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/onednn.hpp"
#include "backends/cpu/window.hpp"

namespace gradrack::cpu::bfloat16_conv {

using dnnl::memory;
using host::Dims;
using host::NodeSpec;

inline constexpr auto kNarrow = memory::data_type::bf16;
inline constexpr auto kWide = memory::data_type::f32;

/// Shapes of X, W and Y, whichever of the three operators the node is.
struct ConvDims {
  explicit ConvDims(const NodeSpec& node) {
    const Dims &a = node.inputs[0].dims, &b = node.inputs[1].dims, &out = node.outputs[0].dims;
    x = node.op == "Conv" ? a : node.op == "gradrack.ConvInputGrad" ? out : b;
    w = node.op == "gradrack.ConvWeightGrad" ? out : b;
    y = node.op == "Conv" ? out : a;
    group = node.get_int("group", 1);
  }
  Dims x, w, y;
  int64_t group = 1;
};

/// oneDNN's words for a convolution of `samples` samples; layouts are left to it.
struct Convolution {
  Convolution(const NodeSpec& node, int64_t samples, std::string* why) {
    const ConvDims d(node);
    const size_t axes = d.w.size() - 2;
    const Window window = read_window(node, d.x, d.y, {d.w.begin() + 2, d.w.end()}, why);
    if (!why->empty()) return;
    for (size_t k = 0; k < axes; ++k) {
      const size_t at = Window::kAxes - axes + k;
      const int64_t reach = (window.out[at] - 1) * window.stride[at] +
                            (window.kernel[at] - 1) * window.dilation[at] + 1;
      strides.push_back(window.stride[at]);
      dilates.push_back(window.dilation[at] - 1);
      before.push_back(window.pad[at]);
      after.push_back(reach - window.in[at] - window.pad[at]);
    }
    x = d.x;
    y = d.y;
    x[0] = y[0] = samples;
    w = d.w;
    if (d.group > 1) {
      w[0] /= d.group;
      w.insert(w.begin(), d.group);
    }
    bias = node.op == "Conv" && node.has_input(2);
  }

  static memory::desc any(const Dims& dims, memory::data_type type = kNarrow) {
    return memory::desc(dims, type, memory::format_tag::any);
  }
  static memory::desc plain(const Dims& dims, memory::data_type type = kNarrow) {
    return memory::desc(dims, type, host::row_major_strides(dims));
  }

  dnnl::convolution_forward::primitive_desc forward() const {
    const auto kind = dnnl::prop_kind::forward_training;
    const auto how = dnnl::algorithm::convolution_direct;
    if (bias) {
      const Dims filters{w.size() > x.size() ? w[0] * w[1] : w[0]};
      return {{kind, how, any(x), any(w), plain(filters), any(y), strides, dilates, before, after},
              onednn_attr(),
              onednn_engine()};
    }
    return {{kind, how, any(x), any(w), any(y), strides, dilates, before, after},
            onednn_attr(),
            onednn_engine()};
  }
  dnnl::convolution_backward_data::primitive_desc input_grad() const {
    return {{dnnl::algorithm::convolution_direct, any(x), any(w), any(y), strides, dilates, before,
             after},
            onednn_attr(),
            onednn_engine(),
            forward()};
  }
  dnnl::convolution_backward_weights::primitive_desc weight_grad() const {
    return {{dnnl::algorithm::convolution_direct, any(x), any(w, kWide), any(y), strides, dilates,
             before, after},
            onednn_attr(),
            onednn_engine(),
            forward()};
  }

  Dims x, w, y, strides, dilates, before, after;
  bool bias = false;
};

inline int64_t aligned(size_t bytes) { return (static_cast<int64_t>(bytes) + 63) / 64 * 64; }

inline memory at(const memory::desc& desc, const void* data) {
  return memory(desc, onednn_engine(), const_cast<void*>(data));
}

inline dnnl::stream& stream_of_thread() {
  use_one_openmp_thread();
  thread_local dnnl::stream stream(onednn_engine());
  return stream;
}

/// A tensor between row-major order and the layout that a primitive wants; nothing to do where
/// they are the same.
class Relayout {
 public:
  Relayout(const memory::desc& from, const memory::desc& to) : from_(from), to_(to) {
    if (from == to) return;
    desc_.emplace(onednn_engine(), from, onednn_engine(), to, onednn_attr());
    reorder_.emplace(*desc_);
  }
  bool needed() const { return reorder_.has_value(); }
  int64_t bytes() const { return needed() ? aligned(to_.get_size()) : 0; }
  /// Of `from` when it is the primitive's side that needs room: see ConvInputGrad.
  int64_t from_bytes() const { return needed() ? aligned(from_.get_size()) : 0; }
  int64_t scratch_bytes() const {
    return needed() ? aligned(desc_->scratchpad_desc().get_size()) : 0;
  }
  void run(const void* from, void* to, void* scratch) const {
    reorder_->execute(stream_of_thread(),
                      {{DNNL_ARG_FROM, at(from_, from)},
                       {DNNL_ARG_TO, at(to_, to)},
                       {DNNL_ARG_SCRATCHPAD, at(desc_->scratchpad_desc(), scratch)}});
  }

 private:
  memory::desc from_, to_;
  std::optional<dnnl::reorder::primitive_desc> desc_;
  std::optional<dnnl::reorder> reorder_;
};

/// A convolution from two tensors to a third (Conv: X, W -> Y; its input gradient: gY, W -> gX).
template <class Desc, class Primitive>
struct TwoToOne {
  TwoToOne(const Desc& made, const memory::desc& first_desc, const memory::desc& second_desc,
           const memory::desc& result_desc, const memory::desc& plain_first,
           const memory::desc& plain_second, const memory::desc& plain_result)
      : desc(made),
        primitive(made),
        first(plain_first, first_desc),
        second(plain_second, second_desc),
        result(result_desc, plain_result) {
    scratch = aligned(desc.scratchpad_desc().get_size());
    for (const Relayout* each : {&first, &second, &result}) {
      scratch = std::max(scratch, each->scratch_bytes());
    }
  }
  int64_t bytes() const { return first.bytes() + second.bytes() + result.from_bytes() + scratch; }

  Desc desc;
  Primitive primitive;
  Relayout first, second, result;
  int64_t scratch = 0;
};

using ForwardDesc = dnnl::convolution_forward::primitive_desc;

struct ForwardWork : TwoToOne<ForwardDesc, dnnl::convolution_forward> {
  ForwardWork(const NodeSpec& node, int64_t samples) : ForwardWork(convolution(node, samples)) {}
  explicit ForwardWork(const Convolution& c) : ForwardWork(c, c.forward()) {}
  ForwardWork(const Convolution& c, const ForwardDesc& d)
      : TwoToOne(d, d.src_desc(), d.weights_desc(), d.dst_desc(), Convolution::plain(c.x),
                 Convolution::plain(c.w), Convolution::plain(c.y)) {}
  static Convolution convolution(const NodeSpec& node, int64_t samples) {
    std::string why;
    return Convolution(node, samples, &why);
  }
};

using InputGradDesc = dnnl::convolution_backward_data::primitive_desc;

struct InputGradWork : TwoToOne<InputGradDesc, dnnl::convolution_backward_data> {
  InputGradWork(const NodeSpec& node, int64_t samples)
      : InputGradWork(ForwardWork::convolution(node, samples)) {}
  explicit InputGradWork(const Convolution& c) : InputGradWork(c, c.input_grad()) {}
  InputGradWork(const Convolution& c, const InputGradDesc& d)
      : TwoToOne(d, d.diff_dst_desc(), d.weights_desc(), d.diff_src_desc(), Convolution::plain(c.y),
                 Convolution::plain(c.w), Convolution::plain(c.x)) {}
};

using WeightGradDesc = dnnl::convolution_backward_weights::primitive_desc;

struct WeightGradWork : TwoToOne<WeightGradDesc, dnnl::convolution_backward_weights> {
  WeightGradWork(const NodeSpec& node, int64_t samples)
      : WeightGradWork(ForwardWork::convolution(node, samples)) {}
  explicit WeightGradWork(const Convolution& c) : WeightGradWork(c, c.weight_grad()) {}
  WeightGradWork(const Convolution& c, const WeightGradDesc& d)
      : TwoToOne(d, d.src_desc(), d.diff_dst_desc(), d.diff_weights_desc(), Convolution::plain(c.x),
                 Convolution::plain(c.y), Convolution::plain(c.w, kWide)),
        count(host::product(c.w)),
        sum_bytes(aligned(static_cast<size_t>(count) * sizeof(float))) {}
  /// The row-major sum of a piece comes first.
  int64_t bytes() const { return sum_bytes + TwoToOne::bytes(); }

  int64_t count, sum_bytes;
};

}  // namespace gradrack::cpu::bfloat16_conv
