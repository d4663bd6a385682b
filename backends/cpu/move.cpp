// SPDX-License-Identifier: Apache-2.0
// Transpose, Expand, Copy, Concat and Split: elements of any dtype moved, none computed.
#include <cstring>
#include <memory>
#include <numeric>

#include "backends/cpu/kernels.hpp"
#include "backends/cpu/strided_copy.hpp"

namespace gradrack::cpu {
namespace {

using host::Dims;
using host::Kernel;
using host::NodeSpec;

/// Copies number k reads input inputs[k] and writes output outputs[k].
class MoveKernel final : public Kernel {
 public:
  struct Move {
    size_t input, output;
    StridedCopy copy;
  };
  MoveKernel(const Context& context, std::vector<Move> moves)
      : context_(context), moves_(std::move(moves)) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    for (const Move& move : moves_) {
      move.copy.run(context_.pool, in[move.input]->data, out[move.output]->data);
    }
    return GR_OK;
  }

 private:
  const Context& context_;
  std::vector<Move> moves_;
};

int64_t bytes_of(const NodeSpec& node) { return gr_dtype_bytes(node.inputs[0].dtype); }

StridedCopy transpose_copy(const NodeSpec& node) {
  const Dims& from = node.inputs[0].dims;
  std::vector<int64_t> perm = node.get_ints("perm");
  if (perm.empty()) {
    for (size_t k = from.size(); k-- > 0;) perm.push_back(static_cast<int64_t>(k));
  }
  const Dims dense = host::row_major_strides(from);
  Dims strides;
  for (const int64_t axis : perm) strides.push_back(dense[static_cast<size_t>(axis)]);
  const Dims& to = node.outputs[0].dims;
  return StridedCopy(to, {0, strides}, {0, host::row_major_strides(to)}, bytes_of(node));
}

StridedCopy expand_copy(const NodeSpec& node) {
  const Dims& to = node.outputs[0].dims;
  return StridedCopy(to, {0, host::broadcast_strides(node.inputs[0].dims, to)},
                     {0, host::row_major_strides(to)}, bytes_of(node));
}

/// Concat: each piece into the whole; Split: the whole into each piece.
std::vector<MoveKernel::Move> joined(const NodeSpec& node, bool concat) {
  const host::TensorSpec& whole = concat ? node.outputs[0] : node.inputs[0];
  const size_t axis = node.get_axis("axis", whole.rank());
  const Dims whole_strides = host::row_major_strides(whole.dims);
  std::vector<MoveKernel::Move> moves;
  int64_t at = 0;
  const size_t pieces = concat ? node.inputs.size() : node.outputs.size();
  for (size_t k = 0; k < pieces; ++k) {
    const host::TensorSpec& piece = concat ? node.inputs[k] : node.outputs[k];
    const StridedCopy::View part{0, host::row_major_strides(piece.dims)};
    const StridedCopy::View within{at * whole_strides[axis], whole_strides};
    moves.push_back(
        {concat ? k : 0, concat ? 0 : k,
         StridedCopy(piece.dims, concat ? part : within, concat ? within : part, bytes_of(node))});
    at += piece.dims[axis];
  }
  return moves;
}

/// All pieces must be there: a piece nobody reads still has a size that is needed.
std::string claim_split(const NodeSpec& node) {
  int64_t sum = 0;
  const size_t axis = node.get_axis("axis", node.inputs[0].rank());
  for (const host::TensorSpec& output : node.outputs) {
    if (!output.present()) return "an output is left out";
    sum += output.dims[axis];
  }
  return sum == node.inputs[0].dims[axis] ? std::string() : "the pieces do not add up";
}

class CopyKernel final : public Kernel {
 public:
  CopyKernel(const NodeSpec& node, const Context& context)
      : context_(context), bytes_(node.inputs[0].count * bytes_of(node)) {}
  bool cannot_fail() const override { return true; }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const auto* from = static_cast<const char*>(in[0]->data);
    auto* to = static_cast<char*>(out[0]->data);
    context_.pool.parallel(bytes_, 1 << 16, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  int64_t bytes_;
};

}  // namespace

void add_move_kernels(host::KernelTable& table, const Context& context) {
  table.add({"Transpose", nullptr, [&context](const NodeSpec& node) {
               return std::make_unique<MoveKernel>(
                   context, std::vector<MoveKernel::Move>{{0, 0, transpose_copy(node)}});
             }});
  table.add({"Expand", nullptr, [&context](const NodeSpec& node) {
               return std::make_unique<MoveKernel>(
                   context, std::vector<MoveKernel::Move>{{0, 0, expand_copy(node)}});
             }});
  table.add({"Concat", nullptr, [&context](const NodeSpec& node) {
               return std::make_unique<MoveKernel>(context, joined(node, true));
             }});
  table.add({"Split", claim_split, [&context](const NodeSpec& node) {
               return std::make_unique<MoveKernel>(context, joined(node, false));
             }});
  table.add({"gradrack.Copy", nullptr, [&context](const NodeSpec& node) {
               return std::make_unique<CopyKernel>(node, context);
             }});
}

}  // namespace gradrack::cpu
