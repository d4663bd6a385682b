// SPDX-License-Identifier: Apache-2.0
// The table, and comparison by it: see tolerance.hpp.
#include "sdk/conformance/tolerance.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

namespace gradrack::conform {
namespace {

/// In float32. Others than those named: 4e-7, about 3 roundings.
const std::map<std::string, double> kFloat32 = {
    {"gradrack.FusedMatMul", 2e-6},  // sums of K products in float32
    {"Conv", 2e-6},
    {"gradrack.ConvInputGrad", 2e-6},
    {"gradrack.ConvWeightGrad", 6e-6},  // sums of thousands: positions of a whole batch
    {"gradrack.GatherGrad", 1e-6},      // sums in float32 in the order of indices
    {"ScatterElements", 1e-6},
    // Of functions, what OpenCL 1.2 (table 7.1) lets a device's library miss: 16 ulp of erf and
    // pow, 5 of tanh, 3 of exp and log.
    {"Erf", 1e-6},
    {"Pow", 1e-6},
    {"Gelu", 1e-6},
    {"Sigmoid", 1e-6},
    {"Softplus", 1e-6},
    {"Swish", 1e-6},
    {"Tanh", 1e-6},
    {"gradrack.GeluGrad", 2e-6},  // differences of two near terms
    {"gradrack.SwishGrad", 1e-6},
    {"gradrack.AdamW", 1e-6},
    {"gradrack.LayerNormalizationGrad", 1e-6},
    {"gradrack.RMSNormalizationGrad", 1e-6},
    {"gradrack.BatchNormalizationGrad", 1e-6},
    // Made of the above.
    {"Attention", 4e-6},
    {"gradrack.AttentionGrad", 8e-6},
    {"Gemm", 2e-6},
    {"MatMul", 2e-6},
    {"GroupNormalization", 1e-6},
    {"InstanceNormalization", 1e-6},
    {"ConvTranspose", 2e-6},
    {"Einsum", 2e-6},
    {"LSTM", 4e-6},
    {"Resize", 2e-6},
};

/// A dtype's rounding step over float32's, with some room in float64 for what is summed.
double scale_of(gr_dtype_t dtype) {
  switch (dtype) {
    case GR_FLOAT64:
      return 0x1p-26;
    case GR_FLOAT16:
      return 0x1p13;
    case GR_BFLOAT16:
      return 0x1p16;
    default:
      return 1.0;
  }
}

bool is_real_dtype(gr_dtype_t dtype) {
  return dtype == GR_FLOAT32 || dtype == GR_FLOAT64 || dtype == GR_FLOAT16 || dtype == GR_BFLOAT16;
}

std::string difference(int64_t k, double got, double want, double allowed) {
  char text[160];
  (void)std::snprintf(text, sizeof text, "element %lld: got %.9g, reference %.9g, allowed %.3g",
                      static_cast<long long>(k), got, want, allowed);
  return text;
}

std::string compare_shapes(const HostArray& got, const HostArray& want) {
  return got.dims == want.dims ? "" : "another shape than wanted";
}

}  // namespace

double tolerance(const std::string& op, gr_dtype_t dtype) {
  const auto found = kFloat32.find(op);
  return (found != kFloat32.end() ? found->second : 4e-7) * scale_of(dtype);
}

Specials defined_specials(const std::string& op, size_t k, gr_dtype_t to) {
  // ONNX leaves the conversion of NaN and Inf to integers open.
  if (op == "Cast" && !is_real_dtype(to) && to != GR_BOOL) return Specials::kNone;
  // Padding is 0 times a weight, or nothing at all: both are right.
  if (op == "Conv" && k == 1) return Specials::kNone;
  if (op == "gradrack.ConvWeightGrad" && k == 0) return Specials::kNone;
  if (op == "gradrack.ConvInputGrad" && k == 1) return Specials::kNone;
  // Matrix units take channels by the group: what lies behind the last one has weights of 0.
  const bool conv = op == "Conv" || op.starts_with("gradrack.Conv");
  if (conv && to == GR_BFLOAT16) return Specials::kNone;
  // So is what a query may not see.
  if (op == "gradrack.AttentionGrad" || (op == "Attention" && k == 2)) return Specials::kNone;
  // Inf - Inf and 0 * Inf in the middle, depending on the formula.
  if (op == "gradrack.GeluGrad" || op == "gradrack.SoftmaxCrossEntropyLossGrad" ||
      op == "Attention" || op == "Gelu" || op == "BatchNormalization" ||
      op == "GroupNormalization" || op == "gradrack.LayerNormalizationGrad" ||
      op == "gradrack.AdamW") {
    return Specials::kNaN;
  }
  return Specials::kAll;
}

std::string compare(const HostArray& got, const HostArray& want, double most) {
  std::string shapes = compare_shapes(got, want);
  if (!shapes.empty()) return shapes;
  const std::vector<double> a = got.numbers(), b = want.numbers();
  double scale = 1.0;
  for (const double v : b) {
    if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
  }
  const double allowed = is_real_dtype(got.dtype) ? most * scale : 0.0;
  for (size_t k = 0; k < a.size(); ++k) {
    const bool same =
        a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k])) || std::fabs(a[k] - b[k]) <= allowed;
    if (!same) return difference(static_cast<int64_t>(k), a[k], b[k], allowed);
  }
  return "";
}

std::string compare_bits(const HostArray& first, const HostArray& second) {
  std::string shapes = compare_shapes(second, first);
  if (!shapes.empty()) return shapes;
  const auto width = static_cast<size_t>(gr_dtype_bytes(first.dtype));
  for (size_t k = 0; k * width < first.bytes.size(); ++k) {
    if (std::memcmp(first.bytes.data() + k * width, second.bytes.data() + k * width, width) == 0) {
      continue;
    }
    const auto at = static_cast<int64_t>(k);
    char text[160];
    (void)std::snprintf(text, sizeof text, "element %zu: first %.9g, then %.9g", k,
                        first.number(at), second.number(at));
    return text;
  }
  return "";
}

}  // namespace gradrack::conform
