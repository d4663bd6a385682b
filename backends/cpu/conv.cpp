// SPDX-License-Identifier: Apache-2.0
// Conv and its two gradients on float32: windows unrolled into a matrix (im2col), then one product.
//
// A sample at a time: columns [C/group * kernel, outputs]. Samples are spread over the pool; each
// thread's piece has its own columns in the workspace. The weight gradient adds samples in blocks
// that depend on the shapes alone, so its bits do not depend on the number of threads.
#include <atomic>
#include <cstring>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/gemm.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"
#include "backends/cpu/window.hpp"

namespace gradrack::cpu {
namespace {

using host::Dims;
using host::Kernel;
using host::NodeSpec;

/// X [batch, group * channels, in], W [group * filters, channels, kernel], Y [batch, group *
/// filters, out].
struct ConvShape {
  ConvShape(const NodeSpec& node, const Dims& x, const Dims& w, const Dims& y, std::string* why)
      : window(read_window(node, x, y, {w.begin() + 2, w.end()}, why)),
        batch(x[0]),
        group(node.get_int("group", 1)),
        channels(w[1]),
        filters(w[0] / std::max<int64_t>(1, group)),
        depth(channels * window.kernel_count) {}

  int64_t x_group() const { return channels * window.in_count; }
  int64_t y_group() const { return filters * window.out_count; }
  int64_t w_group() const { return filters * depth; }
  int64_t column_count() const { return depth * window.out_count; }
  /// A 1x1 kernel with nothing around it: the input is its own matrix of columns.
  bool direct() const {
    return window.kernel_count == 1 && window.in == window.out && window.pad == Window::Sizes{} &&
           window.stride == Window::Sizes{1, 1, 1};
  }
  /// Rows of the input and of the output are as long and step by one (see each_run).
  bool rows_match() const {
    return window.stride[1] == 1 && window.stride[2] == 1 && window.in[2] == window.out[2];
  }

  Window window;
  int64_t batch, group, channels, filters, depth;
};

/// The outputs of a plane [rows, row] that one kernel place has inputs for.
struct Edges {
  int64_t top = 0, bottom = 0, left = 0, right = 0;  // [top, bottom) and [left, right)

  bool empty() const { return top >= bottom || left >= right; }
  /// From the first of them to the last, as they lie in the plane.
  int64_t begin(const Window& w) const { return top * w.out[2] + left; }
  int64_t end(const Window& w) const { return (bottom - 1) * w.out[2] + right; }
};

/// Zeroes what is outside of the edges.
void clear_edges(const Window& w, const Edges& e, float* plane) {
  const int64_t row = w.out[2], count = w.out[1] * row;
  if (e.empty()) {
    std::fill_n(plane, count, 0.0f);
    return;
  }
  std::fill_n(plane, e.begin(w), 0.0f);
  for (int64_t j = e.top; j + 1 < e.bottom; ++j) {
    for (int64_t p = j * row + e.right; p < (j + 1) * row + e.left; ++p) plane[p] = 0.0f;
  }
  std::fill_n(plane + e.end(w), count - e.end(w), 0.0f);
}

/// Calls body(row pointer in columns, first, last, input offset of output `first`) for each line of
/// outputs along the innermost axis at each kernel place of one channel.
template <class Body>
void each_line(const Window& w, const Body& body) {
  int64_t line = 0;
  for (int64_t a = 0; a < w.kernel[0]; ++a) {
    for (int64_t b = 0; b < w.kernel[1]; ++b) {
      for (int64_t c = 0; c < w.kernel[2]; ++c) {
        const int64_t first = w.first_output(2, c), last = w.last_output(2, c);
        for (int64_t i = 0; i < w.out[0]; ++i) {
          for (int64_t j = 0; j < w.out[1]; ++j, ++line) {
            const int64_t y = w.input_at(0, i, a), z = w.input_at(1, j, b);
            const bool inside = y >= 0 && y < w.in[0] && z >= 0 && z < w.in[1];
            const int64_t from = (y * w.in[1] + z) * w.in[2] + w.input_at(2, first, c);
            body(line * w.out[2], inside ? first : 0, inside ? last : 0, from);
          }
        }
      }
    }
  }
}

/// Calls body(row pointer in columns, first, last, input offset of output `first`) for each plane
/// of outputs at each kernel place of one channel, where rows of x and of outputs are as long and
/// step by one: outputs [first, last) of a plane then lie in one run, as their inputs do, but for
/// the ends of rows that see the padding.
template <class Body>
void each_run(const Window& w, const Body& body) {
  int64_t place = 0;
  for (int64_t a = 0; a < w.kernel[0]; ++a) {
    for (int64_t b = 0; b < w.kernel[1]; ++b) {
      for (int64_t c = 0; c < w.kernel[2]; ++c) {
        const Edges edges = {w.first_output(1, b), w.last_output(1, b), w.first_output(2, c),
                             w.last_output(2, c)};
        for (int64_t i = 0; i < w.out[0]; ++i, ++place) {
          const int64_t y = w.input_at(0, i, a);
          const bool inside = y >= 0 && y < w.in[0] && !edges.empty();
          const int64_t from =
              (y * w.in[1] + w.input_at(1, edges.top, b)) * w.in[2] + w.input_at(2, edges.left, c);
          body(place * w.out[1] * w.out[2], inside ? edges : Edges{}, from);
        }
      }
    }
  }
}

/// columns[channel * kernel place][output] = what that place sees of x, 0 in the padding.
void unroll(const ConvShape& s, const float* x, float* columns) {
  const Window& w = s.window;
  for (int64_t c = 0; c < s.channels; ++c) {
    const float* from = x + c * w.in_count;
    float* to = columns + c * w.kernel_count * w.out_count;
    if (s.rows_match()) {
      each_run(w, [&](int64_t at, const Edges& e, int64_t source) {
        float* plane = to + at;
        if (!e.empty()) {
          std::memcpy(plane + e.begin(w), from + source,
                      static_cast<size_t>(e.end(w) - e.begin(w)) * sizeof(float));
        }
        clear_edges(w, e, plane);
      });
      continue;
    }
    each_line(w, [&](int64_t at, int64_t first, int64_t last, int64_t source) {
      float* line = to + at;
      for (int64_t p = 0; p < first; ++p) line[p] = 0.0f;
      for (int64_t p = first; p < last; ++p) line[p] = from[source + (p - first) * w.stride[2]];
      for (int64_t p = last; p < w.out[2]; ++p) line[p] = 0.0f;
    });
  }
}

/// The adjoint: adds columns to the places of x they came from. Clears what columns hold of the
/// padding, so that whole runs can be added.
void roll_up(const ConvShape& s, BinaryLoop add, float* columns, float* x) {
  const Window& w = s.window;
  for (int64_t c = 0; c < s.channels; ++c) {
    float* to = x + c * w.in_count;
    float* from = columns + c * w.kernel_count * w.out_count;
    if (s.rows_match()) {
      each_run(w, [&](int64_t at, const Edges& e, int64_t target) {
        if (e.empty()) return;
        clear_edges(w, e, from + at);
        const int64_t count = e.end(w) - e.begin(w);
        add(to + target, 1, from + at + e.begin(w), 1, to + target, count, 0.0f);
      });
      continue;
    }
    each_line(w, [&](int64_t at, int64_t first, int64_t last, int64_t target) {
      for (int64_t p = first; p < last; ++p) to[target + (p - first) * w.stride[2]] += from[at + p];
    });
  }
}

/// What the three kernels share: pieces of samples, and a matrix of columns for each piece.
class ConvKernel : public Kernel {
 public:
  ConvKernel(const Context& context, const ConvShape& shape) : context_(context), shape_(shape) {
    const int64_t work = shape.column_count() * shape.filters * shape.group;
    const int64_t least = std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(1, work));
    samples_ = std::max(least, (shape.batch + kMostPieces - 1) / kMostPieces);
    pieces_ = (shape.batch + samples_ - 1) / samples_;
  }

 protected:
  static constexpr int64_t kMostPieces = 16;

  int64_t columns_bytes() const {
    return shape_.direct() ? 0 : round_up(shape_.column_count() * int64_t{sizeof(float)});
  }
  static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  float* columns_of(void* workspace, int64_t piece) const {
    return reinterpret_cast<float*>(static_cast<char*>(workspace) + piece * columns_bytes());
  }
  /// body(piece, sample) for all samples, each piece in order on one thread.
  template <class Body>
  void each_sample(const Body& body) const {
    context_.pool.run_pieces(pieces_, [&](int64_t piece) {
      const int64_t end = std::min(shape_.batch, (piece + 1) * samples_);
      for (int64_t n = piece * samples_; n < end; ++n) body(piece, n);
    });
  }
  int32_t answer(bool ok, gr_error_t* err) const {
    return ok ? int32_t{GR_OK} : gr_fail(err, GR_INTERNAL, "Conv", "oneDNN's sgemm refused");
  }

  const Context& context_;
  ConvShape shape_;
  int64_t samples_ = 1, pieces_ = 0;  // of a piece; pieces
};

class ConvForward final : public ConvKernel {
 public:
  ConvForward(const NodeSpec& node, const Context& context, const ConvShape& shape)
      : ConvKernel(context, shape), bias_(node.has_input(2)) {}

  int64_t workspace_bytes() const override { return pieces_ * columns_bytes(); }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    const ConvShape& s = shape_;
    const float *x = host::data<float>(in[0]), *w = host::data<float>(in[1]);
    const float* bias = bias_ ? host::data<float>(in[2]) : nullptr;
    float* y = host::data<float>(out[0]);
    std::atomic<bool> ok{true};
    each_sample([&](int64_t piece, int64_t n) {
      for (int64_t g = 0; g < s.group; ++g) {
        const float* from = x + (n * s.group + g) * s.x_group();
        float* to = y + (n * s.group + g) * s.y_group();
        float* columns = columns_of(workspace, piece);
        if (!s.direct()) unroll(s, from, columns);
        for (int64_t m = 0; m < s.filters && bias != nullptr; ++m) {
          std::fill_n(to + m * s.window.out_count, s.window.out_count, bias[g * s.filters + m]);
        }
        const GemmShape product{false,
                                false,
                                s.filters,
                                s.window.out_count,
                                s.depth,
                                1.0f,
                                bias != nullptr ? 1.0f : 0.0f,
                                std::max<int64_t>(1, s.depth),
                                std::max<int64_t>(1, s.window.out_count),
                                std::max<int64_t>(1, s.window.out_count)};
        if (!gemm(product, w + g * s.w_group(), s.direct() ? from : columns, to)) ok = false;
      }
    });
    return answer(ok, err);
  }

 private:
  bool bias_;
};

/// gy, W, shape -> gx.
class ConvInputGrad final : public ConvKernel {
 public:
  using ConvKernel::ConvKernel;

  int64_t workspace_bytes() const override { return pieces_ * columns_bytes(); }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    const ConvShape& s = shape_;
    const float *gy = host::data<float>(in[0]), *w = host::data<float>(in[1]);
    float* gx = host::data<float>(out[0]);
    const BinaryLoop add = context_.loops.binary[static_cast<int>(Binary::kAdd)];
    std::atomic<bool> ok{true};
    each_sample([&](int64_t piece, int64_t n) {
      for (int64_t g = 0; g < s.group; ++g) {
        const float* from = gy + (n * s.group + g) * s.y_group();
        float* to = gx + (n * s.group + g) * s.x_group();
        float* columns = s.direct() ? to : columns_of(workspace, piece);
        const int64_t outputs = std::max<int64_t>(1, s.window.out_count);
        const GemmShape product{true,      false,  s.depth, s.window.out_count,
                                s.filters, 1.0f,   0.0f,    std::max<int64_t>(1, s.depth),
                                outputs,   outputs};
        if (!gemm(product, w + g * s.w_group(), from, columns)) ok = false;
        if (s.direct()) continue;
        std::memset(to, 0, static_cast<size_t>(s.x_group()) * sizeof(float));
        roll_up(s, add, columns, to);
      }
    });
    return answer(ok, err);
  }
};

/// gy, X, shape -> gw.
class ConvWeightGrad final : public ConvKernel {
 public:
  using ConvKernel::ConvKernel;

  int64_t workspace_bytes() const override { return pieces_ * (columns_bytes() + sums_bytes()); }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    const ConvShape& s = shape_;
    const float *gy = host::data<float>(in[0]), *x = host::data<float>(in[1]);
    float* gw = host::data<float>(out[0]);
    char* sums = static_cast<char*>(workspace) + pieces_ * columns_bytes();
    std::atomic<bool> ok{true};
    each_sample([&](int64_t piece, int64_t n) {
      auto* mine = reinterpret_cast<float*>(sums + piece * sums_bytes());
      const bool first = n == piece * samples_;
      for (int64_t g = 0; g < s.group; ++g) {
        const float* from = x + (n * s.group + g) * s.x_group();
        float* columns = columns_of(workspace, piece);
        if (!s.direct()) unroll(s, from, columns);
        const int64_t outputs = std::max<int64_t>(1, s.window.out_count);
        const GemmShape product{false,
                                true,
                                s.filters,
                                s.depth,
                                s.window.out_count,
                                1.0f,
                                first ? 0.0f : 1.0f,
                                outputs,
                                outputs,
                                std::max<int64_t>(1, s.depth)};
        const float* factor = s.direct() ? from : columns;
        if (!gemm(product, gy + (n * s.group + g) * s.y_group(), factor, mine + g * s.w_group())) {
          ok = false;
        }
      }
    });
    const int64_t count = s.group * s.w_group();
    for (int64_t j = 0; j < count; ++j) {
      double sum = 0;
      for (int64_t piece = 0; piece < pieces_; ++piece) {
        sum += static_cast<double>(reinterpret_cast<const float*>(sums + piece * sums_bytes())[j]);
      }
      gw[j] = static_cast<float>(sum);
    }
    return answer(ok, err);
  }

 private:
  int64_t sums_bytes() const {
    return round_up(shape_.group * shape_.w_group() * int64_t{sizeof(float)});
  }
};

/// Shapes of X, W and Y for each of the three operators.
ConvShape conv_shape(const NodeSpec& node, std::string* why) {
  const Dims &a = node.inputs[0].dims, &b = node.inputs[1].dims, &out = node.outputs[0].dims;
  if (node.op == "Conv") return ConvShape(node, a, b, out, why);
  if (node.op == "gradrack.ConvInputGrad") return ConvShape(node, out, b, a, why);
  return ConvShape(node, b, out, a, why);
}

std::string claim_conv(const NodeSpec& node) {
  std::string reason = claim_float32(node);
  if (reason.empty()) conv_shape(node, &reason);
  return reason;
}

}  // namespace

void add_conv_kernels(host::KernelTable& table, const Context& context) {
  table.add({"Conv", claim_conv, [&context](const NodeSpec& node) {
               std::string why;
               return std::make_unique<ConvForward>(node, context, conv_shape(node, &why));
             }});
  table.add({"gradrack.ConvInputGrad", claim_conv, [&context](const NodeSpec& node) {
               std::string why;
               return std::make_unique<ConvInputGrad>(context, conv_shape(node, &why));
             }});
  table.add({"gradrack.ConvWeightGrad", claim_conv, [&context](const NodeSpec& node) {
               std::string why;
               return std::make_unique<ConvWeightGrad>(context, conv_shape(node, &why));
             }});
}

}  // namespace gradrack::cpu
