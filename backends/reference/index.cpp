// SPDX-License-Identifier: Apache-2.0
// Kernels that pick and place by index: Gather, gradrack.GatherGrad, GatherElements,
// ScatterElements.
//
// Every index is checked before anything is read or written; one out of range is an error with its
// position and value. Sums are made in a wide workspace, in the order of indices.
#include <cstring>

#include "backends/reference/kernels.hpp"
#include "backends/reference/space.hpp"

namespace gradrack::reference {
namespace {

/// Indices of either dtype as numbers in [0, size).
class Indices {
 public:
  Indices(const TensorSpec& spec, int64_t size)
      : wide_(spec.dtype == GR_INT64), count_(spec.count), size_(size) {}

  int64_t at(const DLTensor* tensor, int64_t k) const {
    const int64_t index = raw(tensor, k);
    return index < 0 ? index + size_ : index;
  }
  int64_t count() const { return count_; }

  int32_t check(const DLTensor* tensor, const char* op, gr_error_t* err) const {
    for (int64_t k = 0; k < count_; ++k) {
      const int64_t index = at(tensor, k);
      if (index >= 0 && index < size_) continue;
      const std::string text = "index " + std::to_string(raw(tensor, k)) + " at position " +
                               std::to_string(k) + " is out of range for an axis of " +
                               std::to_string(size_);
      return gr_fail(err, GR_OUT_OF_RANGE, op, text.c_str());
    }
    return GR_OK;
  }

 private:
  int64_t raw(const DLTensor* tensor, int64_t k) const {
    return wide_ ? host::data<int64_t>(tensor)[k] : int64_t{host::data<int32_t>(tensor)[k]};
  }

  bool wide_;
  int64_t count_, size_;
};

/// data seen as [outer, size, inner] around the axis.
struct Axis {
  int64_t outer, size, inner;
};

Axis axis_of(const NodeSpec& node, const Dims& dims) {
  const size_t axis = node.get_axis("axis", dims.size());
  return {host::product(dims, 0, axis), dims[axis], host::product(dims, axis + 1, dims.size())};
}

std::unique_ptr<Kernel> make_gather(const NodeSpec& node) {
  const Axis axis = axis_of(node, node.inputs[0].dims);
  const Indices indices(node.inputs[1], axis.size);
  const size_t bytes = size_t(axis.inner * gr_dtype_bytes(node.inputs[0].dtype));
  return make_kernel([axis, indices, bytes](Inputs in, Outputs out, void*, gr_error_t* err) {
    const int32_t status = indices.check(in[1], "Gather", err);
    if (status != GR_OK || bytes == 0) return status;
    char* y = host::data<char>(out[0]);
    for (int64_t o = 0; o < axis.outer; ++o) {
      for (int64_t k = 0; k < indices.count(); ++k, y += bytes) {
        const int64_t row = o * axis.size + indices.at(in[1], k);
        std::memcpy(y, host::data<char>(in[0]) + size_t(row) * bytes, bytes);
      }
    }
    return int32_t{GR_OK};
  });
}

template <class T>
std::unique_ptr<Kernel> gather_grad_kernel(const NodeSpec& node) {
  const Axis axis = axis_of(node, node.outputs[0].dims);
  const Indices indices(node.inputs[1], axis.size);
  const int64_t total = node.outputs[0].count;
  return make_kernel(
      [axis, indices, total](Inputs in, Outputs out, void* workspace, gr_error_t* err) {
        const int32_t status = indices.check(in[1], "GatherGrad", err);
        if (status != GR_OK) return status;
        auto* sum = static_cast<double*>(workspace);
        for (int64_t k = 0; k < total; ++k) sum[k] = 0;
        const T* gy = host::data<T>(in[0]);
        for (int64_t o = 0; o < axis.outer; ++o) {
          for (int64_t k = 0; k < indices.count(); ++k) {
            double* row = sum + (o * axis.size + indices.at(in[1], k)) * axis.inner;
            for (int64_t n = 0; n < axis.inner; ++n) row[n] += static_cast<double>(*gy++);
          }
        }
        for (int64_t k = 0; k < total; ++k) host::data<T>(out[0])[k] = static_cast<T>(sum[k]);
        return int32_t{GR_OK};
      },
      scratch(total));
}

/// For each place of indices, the offset in data of that place with coordinate 0 on the axis; and
/// the stride of data along the axis.
struct Places {
  Space<1> space;
  int64_t stride;
};

Places places_of(const NodeSpec& node) {
  Dims strides = host::row_major_strides(node.inputs[0].dims);
  const size_t axis = node.get_axis("axis", strides.size());
  const int64_t stride = strides[axis];
  strides[axis] = 0;
  return {Space<1>(node.inputs[1].dims, {strides}), stride};
}

std::unique_ptr<Kernel> make_gather_elements(const NodeSpec& node) {
  const Places places = places_of(node);
  const Indices indices(node.inputs[1], axis_of(node, node.inputs[0].dims).size);
  const size_t size = size_t(gr_dtype_bytes(node.inputs[0].dtype));
  return make_kernel([places, indices, size](Inputs in, Outputs out, void*, gr_error_t* err) {
    const int32_t status = indices.check(in[1], "GatherElements", err);
    if (status != GR_OK) return status;
    int64_t k = 0;
    char* y = host::data<char>(out[0]);
    places.space.each([&](const auto& at) {
      const int64_t from = at[0] + indices.at(in[1], k++) * places.stride;
      std::memcpy(y, host::data<char>(in[0]) + size_t(from) * size, size);
      y += size;
    });
    return int32_t{GR_OK};
  });
}

/// What a place becomes when an update meets it.
template <class W>
using Join = W (*)(W place, W update);

template <class W>
Join<W> join_of(const std::string& reduction) {
  if (reduction == "add") {
    if constexpr (std::is_same_v<W, double>) return [](W a, W b) { return a + b; };
    return [](W a, W b) { return W(uint64_t(a) + uint64_t(b)); };
  }
  if (reduction == "mul") {
    if constexpr (std::is_same_v<W, double>) return [](W a, W b) { return a * b; };
    return [](W a, W b) { return W(uint64_t(a) * uint64_t(b)); };
  }
  if (reduction == "max") return [](W a, W b) { return a != a || a >= b ? a : b; };
  if (reduction == "min") return [](W a, W b) { return a != a || a <= b ? a : b; };
  return [](W, W b) { return b; };
}

template <class T>
std::unique_ptr<Kernel> scatter_kernel(const NodeSpec& node) {
  using W = Wide<T>;
  const Places places = places_of(node);
  const Indices indices(node.inputs[1], axis_of(node, node.inputs[0].dims).size);
  const Join<W> join = join_of<W>(node.get_string("reduction"));
  const int64_t total = node.outputs[0].count;
  return make_kernel(
      [=](Inputs in, Outputs out, void* workspace, gr_error_t* err) {
        const int32_t status = indices.check(in[1], "ScatterElements", err);
        if (status != GR_OK) return status;
        W* sum = static_cast<W*>(workspace);
        for (int64_t k = 0; k < total; ++k) sum[k] = static_cast<W>(host::data<T>(in[0])[k]);
        int64_t k = 0;
        places.space.each([&](const auto& at) {
          W& place = sum[at[0] + indices.at(in[1], k) * places.stride];
          const W update = static_cast<W>(host::data<T>(in[2])[k++]);
          place = join(place, update);
        });
        for (int64_t n = 0; n < total; ++n) host::data<T>(out[0])[n] = static_cast<T>(sum[n]);
        return int32_t{GR_OK};
      },
      scratch(total));
}

}  // namespace

void add_index_kernels(host::KernelTable& table) {
  table.add({"Gather", {}, make_gather});
  table.add({"gradrack.GatherGrad", claim_reals, [](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_real(node.outputs[0].dtype, [&](auto zero) {
                 kernel = gather_grad_kernel<decltype(zero)>(node);
               });
               return kernel;
             }});
  table.add({"GatherElements", {}, make_gather_elements});
  table.add({"ScatterElements", claim_reals, [](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_any(node.outputs[0].dtype, [&](auto zero) {
                 kernel = scatter_kernel<decltype(zero)>(node);
               });
               return kernel;
             }});
}

}  // namespace gradrack::reference
