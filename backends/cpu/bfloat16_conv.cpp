// SPDX-License-Identifier: Apache-2.0
// Conv and its two gradients on bfloat16: oneDNN's convolutions, sums in float32, rounded once.
//
// Samples are cut into pieces over the pool; each piece puts its samples into the layout that
// oneDNN likes (channels last, mostly), convolves, and puts the answer back. The weight gradient
// sums a piece in float32 and the pieces in their order. Invariant: pieces depend on the shapes
// alone, so bits do not depend on the number of threads.
#include <atomic>
#include <memory>
#include <unordered_map>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/bfloat16_convolution.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using namespace bfloat16_conv;
using host::Kernel;

/// What the three kernels share: pieces of whole samples with one primitive for all but a shorter
/// last one, which gets its own; memory for each piece.
template <class Work>
class PiecesKernel : public Kernel {
 public:
  PiecesKernel(const NodeSpec& node, const Context& context, int64_t most_pieces)
      : context_(context), dims_(node) {
    const OneOpenMpThread one;
    const int64_t batch = dims_.x[0];
    samples_ = (batch + most_pieces - 1) / most_pieces;
    pieces_ = (batch + samples_ - 1) / samples_;
    work_.emplace_back(node, samples_);
    const int64_t rest = batch - (pieces_ - 1) * samples_;
    if (rest != samples_) work_.emplace_back(node, rest);
    for (const Work& work : work_) piece_bytes_ = std::max(piece_bytes_, work.bytes());
  }

  int64_t workspace_bytes() const override { return pieces_ * piece_bytes_; }

 protected:
  /// body(work, first sample, memory of the piece); an error of oneDNN comes back.
  template <class Body>
  int32_t each_piece(void* workspace, gr_error_t* err, const Body& body) const {
    std::atomic<bool> ok{true};
    context_.pool.run_pieces(pieces_, [&](int64_t k) {
      try {
        body(k + 1 == pieces_ ? work_.back() : work_.front(), k * samples_,
             static_cast<char*>(workspace) + k * piece_bytes_);
      } catch (const std::exception&) {
        ok = false;  // the pool's functions do not throw
      }
    });
    return ok ? int32_t{GR_OK} : gr_fail(err, GR_INTERNAL, "Conv", "oneDNN's convolution failed");
  }
  static int64_t sample(const Dims& dims) { return host::product(dims, 1, dims.size()); }

  const Context& context_;
  ConvDims dims_;
  int64_t samples_ = 1, pieces_ = 1, piece_bytes_ = 0;
  std::vector<Work> work_;
};

/// Parts of a piece's memory, handed out one after the other.
class Parts {
 public:
  explicit Parts(char* base) : next_(base) {}
  void* take(int64_t bytes) {
    void* part = next_;
    next_ += bytes;
    return part;
  }

 private:
  char* next_;
};

/// In the layout of a primitive, in a part of the piece's memory where that is another.
const void* laid_out(const Relayout& relayout, const void* from, Parts& parts, void* scratch) {
  if (!relayout.needed()) return from;
  void* to = parts.take(relayout.bytes());
  relayout.run(from, to, scratch);
  return to;
}

class ConvForward final : public PiecesKernel<ForwardWork> {
 public:
  ConvForward(const NodeSpec& node, const Context& context)
      : PiecesKernel(node, context, kMostPieces), bias_(node.has_input(2)) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    const auto* x = host::data<uint16_t>(in[0]);
    auto* y = host::data<uint16_t>(out[0]);
    return each_piece(workspace, err, [&](const ForwardWork& work, int64_t n, char* piece) {
      Parts parts(piece);
      void* scratch = parts.take(work.scratch);
      void* to = y + n * sample(dims_.y);
      const void* src = laid_out(work.first, x + n * sample(dims_.x), parts, scratch);
      const void* weights = laid_out(work.second, in[1]->data, parts, scratch);
      void* dst = work.result.needed() ? parts.take(work.result.from_bytes()) : to;
      std::unordered_map<int, memory> args = {
          {DNNL_ARG_SRC, at(work.desc.src_desc(), src)},
          {DNNL_ARG_WEIGHTS, at(work.desc.weights_desc(), weights)},
          {DNNL_ARG_DST, at(work.desc.dst_desc(), dst)},
          {DNNL_ARG_SCRATCHPAD, at(work.desc.scratchpad_desc(), scratch)}};
      if (bias_) args.insert({DNNL_ARG_BIAS, at(work.desc.bias_desc(), in[2]->data)});
      work.primitive.execute(stream_of_thread(), args);
      if (work.result.needed()) work.result.run(dst, to, scratch);
    });
  }

  static constexpr int64_t kMostPieces = 16;

 private:
  bool bias_;
};

/// gy, W, shape -> gx.
class ConvInputGrad final : public PiecesKernel<InputGradWork> {
 public:
  ConvInputGrad(const NodeSpec& node, const Context& context)
      : PiecesKernel(node, context, ConvForward::kMostPieces) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    const auto* gy = host::data<uint16_t>(in[0]);
    auto* gx = host::data<uint16_t>(out[0]);
    return each_piece(workspace, err, [&](const InputGradWork& work, int64_t n, char* piece) {
      Parts parts(piece);
      void* scratch = parts.take(work.scratch);
      void* to = gx + n * sample(dims_.x);
      const void* diff = laid_out(work.first, gy + n * sample(dims_.y), parts, scratch);
      const void* weights = laid_out(work.second, in[1]->data, parts, scratch);
      void* dst = work.result.needed() ? parts.take(work.result.from_bytes()) : to;
      work.primitive.execute(stream_of_thread(),
                             {{DNNL_ARG_DIFF_DST, at(work.desc.diff_dst_desc(), diff)},
                              {DNNL_ARG_WEIGHTS, at(work.desc.weights_desc(), weights)},
                              {DNNL_ARG_DIFF_SRC, at(work.desc.diff_src_desc(), dst)},
                              {DNNL_ARG_SCRATCHPAD, at(work.desc.scratchpad_desc(), scratch)}});
      if (work.result.needed()) work.result.run(dst, to, scratch);
    });
  }
};

/// gy, X, shape -> gw.
class ConvWeightGrad final : public PiecesKernel<WeightGradWork> {
 public:
  // Fewer pieces: each has a float32 sum of the size of the weights.
  ConvWeightGrad(const NodeSpec& node, const Context& context) : PiecesKernel(node, context, 4) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    const auto* gy = host::data<uint16_t>(in[0]);
    const auto* x = host::data<uint16_t>(in[1]);
    const int32_t code =
        each_piece(workspace, err, [&](const WeightGradWork& work, int64_t n, char* piece) {
          Parts parts(piece);
          void* sum = parts.take(work.sum_bytes);
          void* scratch = parts.take(work.scratch);
          const void* src = laid_out(work.first, x + n * sample(dims_.x), parts, scratch);
          const void* diff = laid_out(work.second, gy + n * sample(dims_.y), parts, scratch);
          void* made = work.result.needed() ? parts.take(work.result.from_bytes()) : sum;
          work.primitive.execute(stream_of_thread(),
                                 {{DNNL_ARG_SRC, at(work.desc.src_desc(), src)},
                                  {DNNL_ARG_DIFF_DST, at(work.desc.diff_dst_desc(), diff)},
                                  {DNNL_ARG_DIFF_WEIGHTS, at(work.desc.diff_weights_desc(), made)},
                                  {DNNL_ARG_SCRATCHPAD, at(work.desc.scratchpad_desc(), scratch)}});
          if (work.result.needed()) work.result.run(made, sum, scratch);
        });
    if (code == GR_OK) join(static_cast<char*>(workspace), host::data<uint16_t>(out[0]));
    return code;
  }

 private:
  /// Adds the pieces' sums up, in their order, and rounds.
  void join(char* workspace, uint16_t* gw) const {
    auto* total = reinterpret_cast<float*>(workspace);
    context_.pool.parallel(work_.front().count, kPlainGrain, [&](int64_t begin, int64_t end) {
      for (int64_t piece = 1; piece < pieces_; ++piece) {
        const auto* sum = reinterpret_cast<const float*>(workspace + piece * piece_bytes_);
        context_.loops.add_scaled(sum + begin, 1.0f, total + begin, end - begin);
      }
      context_.loops.to_bfloat16(total + begin, gw + begin, end - begin);
    });
  }
};

bool empty(const NodeSpec& node) {
  const ConvDims d(node);
  return host::product(d.x) * host::product(d.w) * host::product(d.y) == 0;
}

/// Claims what `describe` (a member of Convolution) can be made for.
template <class Describe>
std::string claim_conv(const NodeSpec& node, const Describe& describe) {
  std::string reason = host::refuse_reals_except(node, {GR_BFLOAT16});
  if (!reason.empty()) return reason;
  if (empty(node)) return "an empty convolution";
  const Convolution convolution(node, 1, &reason);
  if (!reason.empty()) return reason;
  return refuse_slow("convolution", [&] { return describe(convolution); });
}

template <class K, class Describe>
void add(host::KernelTable& table, const Context& context, const char* op, Describe describe) {
  table.add({op, [describe](const NodeSpec& node) { return claim_conv(node, describe); },
             [&context](const NodeSpec& node) { return std::make_unique<K>(node, context); }});
}

}  // namespace

void add_bfloat16_conv_kernels(host::KernelTable& table, const Context& context) {
  add<ConvForward>(table, context, "Conv", [](const Convolution& c) { return c.forward(); });
  add<ConvInputGrad>(table, context, "gradrack.ConvInputGrad",
                     [](const Convolution& c) { return c.input_grad(); });
  add<ConvWeightGrad>(table, context, "gradrack.ConvWeightGrad",
                      [](const Convolution& c) { return c.weight_grad(); });
}

}  // namespace gradrack::cpu
