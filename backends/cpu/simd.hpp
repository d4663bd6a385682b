// SPDX-License-Identifier: Apache-2.0
// Simd: the hot loops on float32, one table an instruction set, chosen once when the backend is
// made.
//
// Kernels call through simd(); simd_<set>.cpp fill the tables from the same source. Invariant: a
// loop knows nothing of threads or shapes; its result for one element does not depend on how a
// range is cut, and its sums have a fixed order.
#pragma once

#include <cstdint>
#include <string>

namespace gradrack::cpu {

enum class Unary {
  kNeg,
  kAbs,
  kSqrt,
  kExp,
  kLog,
  kErf,
  kTanh,
  kSigmoid,
  kRelu,
  kSign,
  kFloor,
  kGelu,
  kGeluTanh,
  kSwish,      // alpha
  kLeakyRelu,  // alpha
  kSoftplus,
  kReciprocal,
  kCount
};
enum class Binary {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kGeluGrad,  // of (gy, x), as the two below
  kGeluTanhGrad,
  kSwishGrad,  // alpha
  kCount
};
enum class Compare { kEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kCount };

/// A step is 1, or 0 where one number stands for all.
using UnaryLoop = void (*)(const float* x, float* y, int64_t n, float alpha);
using BinaryLoop = void (*)(const float* a, int64_t a_step, const float* b, int64_t b_step,
                            float* y, int64_t n, float alpha);
using CompareLoop = void (*)(const float* a, int64_t a_step, const float* b, int64_t b_step,
                             uint8_t* y, int64_t n);

/// One row of a normalisation; scale and bias may be null. `center` false: RMS.
struct RowNorm {
  double epsilon;
  bool center;
};
struct RowStatistics {
  double mean;
  double inverse;  // 1/sqrt(variance + epsilon)
};

/// Over a channel, or a part of it: sums, or means, of gy and of gy (x - mean) inverse.
struct ChannelSums {
  double gy = 0;
  double along = 0;
};

/// The constants of one AdamW step, in double where they come from scalars.
struct AdamStep {
  float beta1, beta2, one_minus_beta1, one_minus_beta2;
  float decay;         // 1 - lr * weight_decay
  float step_size;     // lr / (1 - beta1^t)
  float root_inverse;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float factor = 1.0f;  // of the gradient
};

/// Numbers of one gradrack.Dropout.
struct DropoutStep {
  uint64_t key;
  uint32_t counter[3];  // stream, step, microbatch
  uint32_t threshold;   // keep when the upper 24 bits of a number reach it
  float scale;
};

/// What a tile of Conv sums over: `taps` reads of each channel, at offsets from an output's place.
struct TapProduct {
  int64_t channels, plane;  // plane: from one channel to the next
  int64_t taps;
  const int64_t* offsets;
};

/// Pixels that a tile of Conv's weight gradient sums over: rows of x, and gy with its filters side
/// by side, `gy_step` from one pixel to the next.
struct PixelRun {
  int64_t rows, columns;
  int64_t x_row, gy_step;
};

/// Loops of Conv (simd_conv.hpp), and how large their tiles are.
struct ConvLoops {
  int lanes, filters, taps, vectors;
  /// y[f][p] = bias[f] + sum over channels and taps of w[channel][tap][f] x[channel][offset + p]:
  /// 1, 2, 4, ... or `filters` filters, up to `vectors` vectors of pixels. bias may be null.
  void (*tap_product)(const TapProduct& t, int filters, int vectors, const float* x, const float* w,
                      const float* bias, float* y, int64_t y_step);
  /// sums[t][f] += sum over pixels of x[offset t + pixel] gy[pixel][f]: `taps` taps, up to
  /// `vectors` vectors of filters.
  void (*pixel_product)(const PixelRun& r, int vectors, const float* x, const int64_t* offsets,
                        const float* gy, float* sums, int64_t sums_step);
  /// y[i] = x[2 i].
  void (*every_second)(const float* x, float* y, int64_t n);
  /// y[2 i] = a[i], y[2 i + 1] = b[i].
  void (*interleave)(const float* a, const float* b, float* y, int64_t n);
  /// y[i][r] = x[r][i] for `rows` x `columns` of x.
  void (*turn)(const float* x, int64_t x_step, int64_t rows, int64_t columns, float* y,
               int64_t y_step);
};

/// What of a product a causal mask leaves: of C, the columns below `diagonal` + row of a tile's end
/// (the rest is not written); or of k, what is below that, or from row - `diagonal` on.
enum class Triangle { kNone, kColumns, kDepthEnd, kDepthBegin };

/// C[m, n] (+)= A[m, k] B[k, n]. A has any strides. B lies in panels of Simd::panel columns, each
/// [k, panel] in one piece; columns of C are written up to the next multiple of half a panel.
struct PanelProduct {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_column = 1;
  int64_t b_panel = 0;  // elements from one panel to the next
  int64_t c_row = 0;
  bool add = false;
  Triangle triangle = Triangle::kNone;
  int64_t diagonal = 0;
};

struct Simd {
  const char* name;
  UnaryLoop unary[static_cast<int>(Unary::kCount)];
  BinaryLoop binary[static_cast<int>(Binary::kCount)];
  CompareLoop compare[static_cast<int>(Compare::kCount)];
  void (*select)(const uint8_t* c, int64_t c_step, const float* a, int64_t a_step, const float* b,
                 int64_t b_step, float* y, int64_t n);
  // Between bfloat16, by its bits, and float32: exact, and to nearest even.
  void (*from_bfloat16)(const uint16_t* x, float* y, int64_t n);
  void (*to_bfloat16)(const float* x, uint16_t* y, int64_t n);
  // The same for float16.
  void (*from_float16)(const uint16_t* x, float* y, int64_t n);
  void (*to_float16)(const float* x, uint16_t* y, int64_t n);
  /// There and back.
  void (*round_bfloat16)(const float* x, float* y, int64_t n);
  /// y += alpha * x.
  void (*add_scaled)(const float* x, float alpha, float* y, int64_t n);

  // Sums in double, in a fixed order.
  double (*sum)(const float* x, int64_t n);
  double (*sum_squares)(const float* x, int64_t n);
  double (*dot)(const float* a, const float* b, int64_t n);
  /// NaN when a NaN is there; -infinity when n is 0.
  float (*max)(const float* x, int64_t n);
  void (*add_to_columns)(const float* x, double* sums, int64_t n);
  void (*max_of_columns)(const float* x, float* y, int64_t n);

  // One row each.
  void (*softmax)(const float* x, float* y, int64_t n);
  void (*log_softmax)(const float* x, float* y, int64_t n);
  void (*softmax_grad)(const float* gy, const float* y, float* gx, int64_t n);
  void (*log_softmax_grad)(const float* gy, const float* y, float* gx, int64_t n);
  /// max + log(sum(exp(x - max))).
  double (*log_sum_exp)(const float* x, int64_t n);
  /// y = exp(x - shift) * scale.
  void (*exp_shifted)(const float* x, double shift, float scale, float* y, int64_t n);
  RowStatistics (*statistics)(const float* x, int64_t n, RowNorm norm);
  void (*norm)(const float* x, RowStatistics s, const float* scale, const float* bias, float* y,
               int64_t n);
  void (*norm_grad)(const float* gy, const float* x, RowStatistics s, const float* scale,
                    bool center, float* gx, int64_t n);
  /// sums += gy * (x - mean) * inverse.
  void (*norm_scale_grad)(const float* gy, const float* x, RowStatistics s, double* sums,
                          int64_t n);

  // One plane of a channel each.
  /// Sum of (x - mean)^2.
  double (*squares_about)(const float* x, double mean, int64_t n);
  /// y = (x - mean) inverse factor + offset.
  void (*scale_channel)(const float* x, RowStatistics s, double factor, double offset, float* y,
                        int64_t n);
  ChannelSums (*channel_grad_sums)(const float* gy, const float* x, RowStatistics s, int64_t n);
  /// gx = factor (gy - mean.gy - (x - mean) inverse mean.along).
  void (*channel_input_grad)(const float* gy, const float* x, RowStatistics s, ChannelSums mean,
                             double factor, float* gx, int64_t n);

  /// Writes the new parameter and moments; outputs may be the inputs' memory.
  void (*adamw)(const AdamStep& step, const float* p, const float* g, const float* m,
                const float* v, float* p_out, float* m_out, float* v_out, int64_t n);
  // Attention (simd_panels.hpp, simd_attention.hpp).
  int64_t panel;  // columns
  void (*panel_product)(const PanelProduct& shape, const float* a, const float* b, float* c);
  /// Rows of x [rows, n] as the panels of B [rows, n], and of its transpose [n, rows]. What panels
  /// are longer than that becomes 0.
  void (*pack_rows)(const float* x, int64_t x_row, int64_t rows, int64_t n, float* panels,
                    int64_t b_panel);
  void (*pack_columns)(const float* x, int64_t x_row, int64_t rows, int64_t n, float* panels,
                       int64_t b_panel);
  /// x = exp(factor (x - max)), factor above 0; gives their sum, 0 where all were -infinity.
  float (*exp_weights)(float* x, float factor, int64_t n);
  /// With p = e inverse: e = p, g = p (g - sum(g p)).
  void (*weights_grad)(float* e, float* g, float inverse, int64_t n);
  /// Pairs of `half` features of one position, apart or neighbours, turned; y may be x.
  void (*rotate_halves)(const float* x, const float* cos, const float* sin, float* y, int64_t half);
  void (*rotate_halves_bfloat16)(const uint16_t* x, const float* cos, const float* sin, uint16_t* y,
                                 int64_t half);
  void (*rotate_pairs)(const float* x, const float* cos, const float* sin, float* y, int64_t half);

  /// Groups [first, last) of four elements of `count`; mask may be null.
  void (*dropout)(const DropoutStep& step, const float* x, float* y, uint8_t* mask, int64_t first,
                  int64_t last, int64_t count);

  ConvLoops conv;

  // One row of classes each, a column for every example (linear_loss.hpp).
  /// total += exp(x - largest).
  void (*add_exp_of_columns)(const float* x, const float* largest, float* total, int64_t n);
  /// y = scale exp(x - shift); 0 where the scale is 0, whatever x is.
  void (*softmax_of_columns)(const float* x, const float* shift, const float* scale, float* y,
                             int64_t n);
};

/// Sets of instructions, each with those before it.
enum class Isa { kScalar, kAvx2, kAvx512, kAmx };
/// GRADRACK_CPU_ISA does not ask for less (simd_select.cpp). [any]
bool isa_allows(Isa isa);
/// Why the value of GRADRACK_CPU_ISA is no set of instructions; empty: it is one, or not set. [any]
std::string isa_problem();

/// The best table for this processor. [any]
const Simd& simd();

// The tables, where compiled; null otherwise. For tests and for the choice in simd_select.cpp.
const Simd* simd_base();
const Simd* simd_avx2();
const Simd* simd_avx512();

}  // namespace gradrack::cpu
