// SPDX-License-Identifier: Apache-2.0
// AttentionShape: see attention_shape.hpp.
#include "backends/cpu/attention_shape.hpp"

#include <cmath>

namespace gradrack::cpu {
namespace {

MaskLayout read_mask(const host::NodeSpec& node, size_t k, const host::Dims& scores) {
  MaskLayout mask;
  if (!node.has_input(k)) return mask;
  const host::TensorSpec& tensor = node.inputs[k];
  mask.kind = tensor.dtype == GR_BOOL       ? MaskLayout::Kind::kBool
              : tensor.dtype == GR_BFLOAT16 ? MaskLayout::Kind::kBfloat16
                                            : MaskLayout::Kind::kFloat32;
  const host::Dims strides = host::broadcast_strides(tensor.dims, scores);
  mask.sample = strides[0];
  mask.head = strides[1];
  mask.row = strides[2];
  mask.column = strides[3];
  return mask;
}

}  // namespace

HeadLayout::HeadLayout(const host::Dims& dims, int64_t packed_heads) {
  const bool packed = dims.size() == 3;
  batch = dims[0];
  heads = packed ? packed_heads : dims[1];
  length = packed ? dims[1] : dims[2];
  size = packed ? dims[2] / heads : dims[3];
  row = packed ? dims[2] : size;
  head = packed ? size : length * size;
}

AttentionShape::AttentionShape(const host::NodeSpec& node, size_t first)
    : q(node.inputs[first].dims, node.get_int("q_num_heads", 1)),
      k(node.inputs[first + 1].dims, node.get_int("kv_num_heads", 1)),
      v(node.inputs[first + 2].dims, node.get_int("kv_num_heads", 1)),
      y(first == 0 ? node.outputs[0].dims : node.inputs[0].dims, node.get_int("q_num_heads", 1)),
      group(q.heads / k.heads),
      causal(node.get_int("is_causal") != 0),
      bfloat16(node.inputs[first].dtype == GR_BFLOAT16),
      scale(node.get_float("scale", 1.0 / std::sqrt(static_cast<double>(q.size)))),
      softcap(node.get_float("softcap")),
      mask(read_mask(node, first + 3, {q.batch, q.heads, q.length, k.length})) {}

}  // namespace gradrack::cpu
