// SPDX-License-Identifier: Apache-2.0
// Precision `bf16`: products in bfloat16, all that sums, normalises or decides in float32.
//
// Parameters, gradients, buffers and optimizer state stay in float32. Invariant: what this file
// does not name computes in float32, so an operator of a later minor is never narrowed by accident.
#include <algorithm>
#include <span>
#include <string_view>

#include "gradrack/precision.hpp"

namespace {

using std::string_view;

/// Products: inputs are rounded to bfloat16, sums are float32 inside the kernel. (The softmax
/// between Attention's two products is float32 by the operator's own rule.)
constexpr string_view kProducts[] = {"MatMul", "Gemm", "Conv", "Attention"};
constexpr string_view kOwnProducts[] = {"AttentionGrad", "FusedMatMul", "ConvInputGrad",
                                        "ConvWeightGrad"};

/// Operators that move numbers or change each by itself: they keep bfloat16 where all that comes in
/// is, and never make it.
constexpr string_view kFollowers[] = {
    "Abs",       "Add",   "Clip",      "Concat",    "Dropout", "Expand",          "Flatten",
    "Gather",    "Gelu",  "Identity",  "LeakyRelu", "Max",     "MaxPool",         "Min",
    "Mul",       "Neg",   "Pad",       "Relu",      "Reshape", "RotaryEmbedding", "Sigmoid",
    "Sign",      "Slice", "Split",     "Squeeze",   "Sub",     "Swish",           "Tanh",
    "Transpose", "Trilu", "Unsqueeze", "Where"};
constexpr string_view kOwnFollowers[] = {"Copy",        "Dropout",   "GeluGrad",
                                         "MaxPoolGrad", "SliceGrad", "SwishGrad"};

template <size_t N>
bool has(const string_view (&names)[N], string_view name) {
  return std::find(names, names + N, name) != names + N;
}

/// Some input comes as bfloat16 and none as anything else.
bool all_narrow(std::span<const gr_dtype_t> inputs) {
  const auto wide = [](gr_dtype_t dtype) { return dtype != 0 && dtype != GR_BFLOAT16; };
  return std::find(inputs.begin(), inputs.end(), GR_BFLOAT16) != inputs.end() &&
         std::none_of(inputs.begin(), inputs.end(), wide);
}

class MixedPrecision : public gradrack::sdk::ByInputs<MixedPrecision> {
 public:
  static constexpr const char* kName = "bf16";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp =
      "Products in bfloat16, the rest and what is kept in float32.";

  explicit MixedPrecision(const gradrack::sdk::Options&) {}

  gr_dtype_t storage_dtype() const { return GR_FLOAT32; }
  /// For a host that does not say what comes in: nothing follows.
  gr_dtype_t node_dtype(const gr_precision_node_t& node) const { return node_dtype(node, {}); }
  gr_dtype_t node_dtype(const gr_precision_node_t& node, std::span<const gr_dtype_t> inputs) const {
    const string_view domain = node.domain, op = node.op;
    const bool own = domain == "gradrack";
    if (!own && !domain.empty()) return GR_FLOAT32;
    if (own ? has(kOwnProducts, op) : has(kProducts, op)) return GR_BFLOAT16;
    const bool follows = own ? has(kOwnFollowers, op) : has(kFollowers, op);
    return follows && all_narrow(inputs) ? GR_BFLOAT16 : GR_FLOAT32;
  }
};

}  // namespace

GRADRACK_PLUGIN("gradrack.bf16_precision", "1.0.0", gradrack::sdk::Precision<MixedPrecision>)
