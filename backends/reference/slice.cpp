// SPDX-License-Identifier: Apache-2.0
// Kernels that cut and join: Slice, gradrack.SliceGrad, Pad, Concat, Split.
//
// They copy bytes, so every dtype is served. Bounds are constants by now; a symbolic bound that
// turned out to leave its axis is refused here, by comparing with the dims that the graph inferred.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "backends/reference/kernels.hpp"
#include "backends/reference/space.hpp"

namespace gradrack::reference {
namespace {

size_t item_bytes(const NodeSpec& node) {
  return static_cast<size_t>(gr_dtype_bytes(node.outputs[0].dtype));
}

/// First element and step of a slice along each axis of `whole`.
struct Cut {
  Dims first, step, count;
};

Cut read_cut(const NodeSpec& node, size_t input, const Dims& whole) {
  Cut cut{Dims(whole.size(), 0), Dims(whole.size(), 1), whole};
  std::vector<int64_t> starts, ends, axes, steps;
  node.known_ints(input, &starts);
  node.known_ints(input + 1, &ends);
  const bool has_axes = node.known_ints(input + 2, &axes);
  const bool has_steps = node.known_ints(input + 3, &steps);
  for (size_t k = 0; k < starts.size(); ++k) {
    int64_t axis = has_axes ? axes[k] : static_cast<int64_t>(k);
    if (axis < 0) axis += static_cast<int64_t>(whole.size());
    const auto at = static_cast<size_t>(axis);
    const int64_t size = whole[at], step = has_steps ? steps[k] : 1;
    const auto clamp = [&](int64_t n, int64_t low, int64_t high) {
      return std::min(std::max(n < 0 ? n + size : n, low), std::max(low, high));
    };
    const int64_t start = step > 0 ? clamp(starts[k], 0, size) : clamp(starts[k], 0, size - 1);
    // A far negative end of a backward slice means "past the first"; n + size must not overflow.
    const int64_t end =
        step > 0 ? clamp(ends[k], 0, size) : (ends[k] < -size ? -1 : clamp(ends[k], -1, size - 1));
    const int64_t length = step > 0 ? end - start : start - end;
    const int64_t stride = std::abs(step);
    cut.first[at] = start;
    cut.step[at] = step;
    cut.count[at] = size == 0 ? 0 : std::max<int64_t>(0, (length + stride - 1) / stride);
  }
  return cut;
}

/// The elements of `whole` that the cut takes, as a space; refuses a cut of other dims than
/// `taken`.
Space<1> cut_space(const NodeSpec& node, size_t input, const Dims& whole, const Dims& taken) {
  const Cut cut = read_cut(node, input, whole);
  if (cut.count != taken) {
    throw std::invalid_argument(node.op + ": a bound lies outside its axis for these dimensions");
  }
  Dims strides = host::row_major_strides(whole);
  int64_t base = 0;
  for (size_t k = 0; k < whole.size(); ++k) {
    base += cut.first[k] * strides[k];
    strides[k] *= cut.step[k];
  }
  return Space<1>(taken, {strides}, {base});
}

std::unique_ptr<Kernel> make_slice(const NodeSpec& node) {
  const Space<1> space = cut_space(node, 1, node.inputs[0].dims, node.outputs[0].dims);
  return make_kernel([space, size = item_bytes(node)](Inputs in, Outputs out, void*, gr_error_t*) {
    const char* x = host::data<char>(in[0]);
    char* y = host::data<char>(out[0]);
    space.each([&](const auto& at) {
      std::memcpy(y, x + size_t(at[0]) * size, size);
      y += size;
    });
    return int32_t{GR_OK};
  });
}

/// Writes input 0, front to back, to the places of `space` in the output.
void put(const Space<1>& space, size_t size, const DLTensor* from, DLTensor* to) {
  const char* x = host::data<char>(from);
  char* y = host::data<char>(to);
  space.each([&](const auto& at) {
    std::memcpy(y + size_t(at[0]) * size, x, size);
    x += size;
  });
}

std::unique_ptr<Kernel> make_slice_grad(const NodeSpec& node) {
  const Space<1> space = cut_space(node, 2, node.outputs[0].dims, node.inputs[0].dims);
  const size_t size = item_bytes(node), bytes = size_t(node.outputs[0].count) * size;
  return make_kernel([space, size, bytes](Inputs in, Outputs out, void*, gr_error_t*) {
    if (bytes > 0) std::memset(out[0]->data, 0, bytes);
    put(space, size, in[0], out[0]);
    return int32_t{GR_OK};
  });
}

std::unique_ptr<Kernel> make_pad(const NodeSpec& node) {
  std::vector<int64_t> pads, axes;
  node.known_ints(1, &pads);
  const bool has_axes = node.known_ints(3, &axes);
  const size_t count = has_axes ? axes.size() : node.inputs[0].rank();
  const Dims strides = host::row_major_strides(node.outputs[0].dims);
  int64_t base = 0;
  for (size_t k = 0; k < count; ++k) {
    int64_t axis = has_axes ? axes[k] : static_cast<int64_t>(k);
    if (axis < 0) axis += static_cast<int64_t>(strides.size());
    base += pads[k] * strides[size_t(axis)];
  }
  const Space<1> space(node.inputs[0].dims, {strides}, {base});
  const size_t size = item_bytes(node), total = size_t(node.outputs[0].count);
  const bool has_value = node.has_input(2);
  return make_kernel([=](Inputs in, Outputs out, void*, gr_error_t*) {
    const char zero[8] = {};
    const char* value = has_value ? host::data<char>(in[2]) : zero;
    char* y = host::data<char>(out[0]);
    for (size_t k = 0; k < total; ++k) std::memcpy(y + k * size, value, size);
    put(space, size, in[0], out[0]);
    return int32_t{GR_OK};
  });
}

/// Bytes per index of the outer dims that each part holds along the axis of a join.
std::vector<size_t> part_bytes(const std::vector<TensorSpec>& parts, size_t axis, size_t size) {
  std::vector<size_t> bytes;
  for (const TensorSpec& part : parts) {
    bytes.push_back(size_t(host::product(part.dims, axis, part.rank())) * size);
  }
  return bytes;
}

std::unique_ptr<Kernel> make_concat(const NodeSpec& node) {
  const size_t axis = node.get_axis("axis", node.outputs[0].rank());
  const int64_t outer = host::product(node.outputs[0].dims, 0, axis);
  const std::vector<size_t> bytes = part_bytes(node.inputs, axis, item_bytes(node));
  return make_kernel([outer, bytes](Inputs in, Outputs out, void*, gr_error_t*) {
    char* y = host::data<char>(out[0]);
    for (int64_t row = 0; row < outer; ++row) {
      for (size_t k = 0; k < bytes.size(); ++k) {
        if (bytes[k] == 0) continue;
        std::memcpy(y, host::data<char>(in[k]) + size_t(row) * bytes[k], bytes[k]);
        y += bytes[k];
      }
    }
    return int32_t{GR_OK};
  });
}

std::unique_ptr<Kernel> make_split(const NodeSpec& node) {
  const size_t axis = node.get_axis("axis", node.inputs[0].rank());
  const int64_t outer = host::product(node.inputs[0].dims, 0, axis);
  const std::vector<size_t> bytes = part_bytes(node.outputs, axis, item_bytes(node));
  return make_kernel([outer, bytes](Inputs in, Outputs out, void*, gr_error_t*) {
    const char* x = host::data<char>(in[0]);
    for (int64_t row = 0; row < outer; ++row) {
      for (size_t k = 0; k < bytes.size(); ++k) {
        if (bytes[k] == 0) continue;
        std::memcpy(host::data<char>(out[k]) + size_t(row) * bytes[k], x, bytes[k]);
        x += bytes[k];
      }
    }
    return int32_t{GR_OK};
  });
}

}  // namespace

void add_slice_kernels(host::KernelTable& table) {
  const auto from_1 = [](const NodeSpec& node) { return refuse_unknown_ints(node, 1); };
  table.add({"Slice", from_1, make_slice});
  table.add({"gradrack.SliceGrad", from_1, make_slice_grad});
  const auto pads_known = [](const NodeSpec& node) -> std::string {
    std::vector<int64_t> ignored;
    if (!node.known_ints(1, &ignored)) return "input 1 is not a constant";
    return refuse_unknown_ints(node, 3);
  };
  table.add({"Pad", pads_known, make_pad});
  table.add({"Concat", {}, make_concat});
  table.add({"Split", {}, make_split});
}

}  // namespace gradrack::reference
