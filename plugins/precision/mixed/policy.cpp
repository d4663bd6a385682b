// SPDX-License-Identifier: Apache-2.0
// MixedPolicy: see policy.hpp.
#include "policy.hpp"

#include <algorithm>
#include <string_view>

namespace gradrack::mixed {

namespace {

using std::string_view;

/// Products: inputs are rounded to 16 bits, sums are float32 inside the kernel. (The softmax
/// between Attention's two products is float32 by the operator's own rule.)
constexpr string_view kProducts[] = {"MatMul", "Gemm", "Conv", "Attention"};
constexpr string_view kOwnProducts[] = {"AttentionGrad", "FusedMatMul", "ConvInputGrad",
                                        "ConvWeightGrad"};

/// Operators that move numbers or change each by itself: they keep 16 bits where all that comes in
/// has them, and never make them.
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

/// Some input comes as `narrow` and none as anything else.
bool all_narrow(std::span<const gr_dtype_t> inputs, gr_dtype_t narrow) {
  const auto wide = [narrow](gr_dtype_t dtype) { return dtype != 0 && dtype != narrow; };
  return std::find(inputs.begin(), inputs.end(), narrow) != inputs.end() &&
         std::none_of(inputs.begin(), inputs.end(), wide);
}

}  // namespace

gr_dtype_t MixedPolicy::node_dtype(const gr_precision_node_t& node,
                                   std::span<const gr_dtype_t> inputs) const {
  const string_view domain = node.domain, op = node.op;
  const bool own = domain == "gradrack";
  if (!own && !domain.empty()) return GR_FLOAT32;
  if (own ? has(kOwnProducts, op) : has(kProducts, op)) return narrow_;
  const bool follows = own ? has(kOwnFollowers, op) : has(kFollowers, op);
  return follows && all_narrow(inputs, narrow_) ? narrow_ : GR_FLOAT32;
}

}  // namespace gradrack::mixed
