// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding on float32 and bfloat16: one pass, in place where that is allowed. Its gradient
// is the same operator with -sin.
//
// Angles of bfloat16 are widened once a position; products and sums are float32 and rounded once.
#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/common/group.hpp"
#include "backends/common/tensor_access.hpp"
#include "backends/cpu/bfloat16.hpp"
#include "backends/cpu/index_check.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

/// Pairs (a, b) become (a cos - b sin, a sin + b cos), with angles by position.
class RotaryKernel final : public Kernel {
 public:
  /// Where the launch has its inputs.
  struct Places {
    size_t x = 0, cos = 1, sin = 2;
  };
  /// `node` has the shapes; `dtype` is that of the data in memory.
  RotaryKernel(const NodeSpec& node, gr_dtype_t dtype, Places places, const Context& context)
      : context_(context),
        places_(places),
        bfloat16_(dtype == GR_BFLOAT16),
        narrow_angles_(node.inputs[1].dtype == GR_BFLOAT16) {
    const host::Dims& x = node.inputs[0].dims;
    const bool packed = x.size() == 3;
    batch_ = x[0];
    length_ = packed ? x[1] : x[2];
    const int64_t heads = packed ? node.get_int("num_heads") : x[1];
    size_ = packed ? x[2] / heads : x[3];
    // Heads side by side share a position; otherwise a row of memory is one head.
    side_by_side_ = packed ? heads : 1;
    apart_ = packed ? 1 : heads;
    const int64_t rotated = node.get_int("rotary_embedding_dim");
    half_ = (rotated == 0 ? size_ : rotated) / 2;
    interleaved_ = node.get_int("interleaved") != 0;
    by_position_ = node.has_input(3);
    positions_ = by_position_ ? node.inputs[1].dims[0] : 0;
    cache_batch_ = by_position_ || node.inputs[1].dims[0] == 1 ? 0 : length_ * half_;
  }
  int in_place(int) const override { return static_cast<int>(places_.x); }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*,
              gr_error_t* err) const override {
    const Indices positions(in[by_position_ ? 3 : 0], by_position_ ? GR_INT64 : 0);
    if (by_position_ && !positions.check(batch_ * length_, positions_, "RotaryEmbedding", err)) {
      return err->code;
    }
    const int64_t row_size = side_by_side_ * size_;
    const int64_t grain = std::max<int64_t>(1, kPlainGrain / std::max<int64_t>(1, row_size));
    context_.pool.parallel(batch_ * apart_ * length_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t b = row / (apart_ * length_), t = row % length_;
        const int64_t angle = by_position_ ? positions.at(b * length_ + t, positions_) * half_
                                           : b * cache_batch_ + t * half_;
        if (bfloat16_) {
          rotate_narrow(in, out[0], row * row_size, angle);
        } else {
          rotate(in, out[0], row * row_size, angle);
        }
      }
    });
    return GR_OK;
  }

 private:
  /// The heads of one position from element `at` on.
  void rotate(const DLTensor* const* in, DLTensor* out, int64_t at, int64_t angle) const {
    const float* cos = host::data<float>(in[places_.cos]) + angle;
    const float* sin = host::data<float>(in[places_.sin]) + angle;
    const auto loop = interleaved_ ? context_.loops.rotate_pairs : context_.loops.rotate_halves;
    for (int64_t h = 0; h < side_by_side_; ++h, at += size_) {
      const float* x = host::data<float>(in[places_.x]) + at;
      float* y = host::data<float>(out) + at;
      loop(x, cos, sin, y, half_);
      keep_rest(x, y);
    }
  }
  void rotate_narrow(const DLTensor* const* in, DLTensor* out, int64_t at, int64_t angle) const {
    const Simd& loops = context_.loops;
    WideBlock cos_block, sin_block, block;
    const float* cos = angles(in[places_.cos], angle, &cos_block);
    const float* sin = angles(in[places_.sin], angle, &sin_block);
    for (int64_t h = 0; h < side_by_side_; ++h, at += size_) {
      const uint16_t* x = host::data<uint16_t>(in[places_.x]) + at;
      uint16_t* y = host::data<uint16_t>(out) + at;
      if (interleaved_) {
        const float* wide = block.read(loops, x, 1, 0, 2 * half_);
        loops.rotate_pairs(wide, cos, sin, block.numbers(), half_);
        loops.to_bfloat16(block.numbers(), y, 2 * half_);
      } else {
        loops.rotate_halves_bfloat16(x, cos, sin, y, half_);
      }
      keep_rest(x, y);
    }
  }
  const float* angles(const DLTensor* cache, int64_t at, WideBlock* block) const {
    if (!narrow_angles_) return host::data<float>(cache) + at;
    return block->read(context_.loops, host::data<uint16_t>(cache), 1, at, half_);
  }
  /// Features past the rotated ones stay.
  template <class T>
  void keep_rest(const T* x, T* y) const {
    const int64_t rest = size_ - 2 * half_;
    if (x == y || rest == 0) return;
    std::memcpy(y + 2 * half_, x + 2 * half_, static_cast<size_t>(rest) * sizeof(T));
  }

  const Context& context_;
  const Places places_;
  const bool bfloat16_, narrow_angles_;
  bool interleaved_, by_position_;
  int64_t batch_, length_, side_by_side_, apart_, size_, half_, positions_, cache_batch_;
};

/// bfloat16 is rotated in blocks on the stack.
std::string refuse_long_angles(const NodeSpec& node) {
  if (2 * node.inputs[1].dims.back() <= kBlock) return "";
  return "more than " + std::to_string(kBlock) + " rotated features of bfloat16";
}

std::string claim_rotary(const NodeSpec& node) {
  std::string reason = claim_loops(node);
  if (!reason.empty()) return reason;
  if (node.has_input(3) && node.inputs[3].dtype != GR_INT64) {
    return "position_ids are " + host::dtype_text(node.inputs[3].dtype);
  }
  return node.inputs[0].dtype == GR_BFLOAT16 ? refuse_long_angles(node) : "";
}

/// Cast, RotaryEmbedding in float32, Cast.
std::string claim_narrow_rotary(const host::GroupSpec& group) {
  const NodeSpec& rotary = group.nodes[1];
  if (group.nodes[0].inputs[0].dtype != GR_BFLOAT16 ||
      group.nodes[2].outputs[0].dtype != GR_BFLOAT16 || rotary.inputs[0].dtype != GR_FLOAT32) {
    return "not from bfloat16 over float32 to bfloat16";
  }
  if (group.outputs.size() != 1) return "a float32 value inside is read outside";
  return refuse_long_angles(rotary);
}

std::unique_ptr<Kernel> make_narrow_rotary(const host::GroupSpec& group, const Context& context) {
  const NodeSpec& rotary = group.nodes[1];
  const auto place = [&](gr_value_t id) { return static_cast<size_t>(group.input(id)); };
  const RotaryKernel::Places places{place(group.nodes[0].inputs[0].id), place(rotary.inputs[1].id),
                                    place(rotary.inputs[2].id)};
  return std::make_unique<RotaryKernel>(rotary, GR_BFLOAT16, places, context);
}

}  // namespace

void add_rotary_kernels(host::KernelTable& table, const Context& context) {
  table.add({"RotaryEmbedding", claim_rotary, [&context](const NodeSpec& node) {
               return std::make_unique<RotaryKernel>(node, node.inputs[0].dtype,
                                                     RotaryKernel::Places{}, context);
             }});
  host::GroupEntry narrow;
  narrow.name = "narrow_rotary";
  narrow.help = "RotaryEmbedding in float32 between two Casts: bfloat16 is read and written once.";
  narrow.pattern = "a = Cast(x); r = RotaryEmbedding(a, cos, sin); y = Cast(r)";
  narrow.claim = claim_narrow_rotary;
  narrow.make = [&context](const host::GroupSpec& group) {
    return make_narrow_rotary(group, context);
  };
  table.add_group(std::move(narrow));
}

}  // namespace gradrack::cpu
