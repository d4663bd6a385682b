// SPDX-License-Identifier: Apache-2.0
// TopK and ArgMax on float32, float64, int32 and int64: rows spread over the pool.
//
// The order is that of backends/common/top_k.hpp: by value, then by place, NaN above all.
#include <memory>

#include "backends/common/top_k.hpp"
#include "backends/cpu/kernels.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

constexpr int64_t kGrain = 1 << 14;  // elements that are worth a piece of their own

template <class T>
class TopKKernel final : public Kernel {
 public:
  TopKKernel(const NodeSpec& node, const Context& context) : context_(context), plan_(node) {
    const int64_t most = std::max<int64_t>(1, node.inputs[0].count / kGrain);
    pieces_ = std::min({most, int64_t{context.pool.threads()}, plan_.row_count()});
  }
  bool cannot_fail() const override { return true; }
  int64_t workspace_bytes() const override {
    return pieces_ * plan_.size() * int64_t{sizeof(int64_t)};
  }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    auto* scratch = static_cast<int64_t*>(workspace);
    const int64_t rows = plan_.row_count();
    if (rows == 0) return GR_OK;
    context_.pool.run_pieces(pieces_, [&](int64_t k) {
      plan_.template rows<T>(in, out, rows * k / pieces_, rows * (k + 1) / pieces_,
                             scratch + k * plan_.size());
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  host::TopK plan_;
  int64_t pieces_ = 1;
};

template <class T>
class ArgMaxKernel final : public Kernel {
 public:
  ArgMaxKernel(const NodeSpec& node, const Context& context)
      : context_(context), last_(node.get_int("select_last_index") != 0) {
    const host::Dims& dims = node.inputs[0].dims;
    const size_t axis = node.get_axis("axis", dims.size());
    size_ = dims[axis];
    inner_ = host::product(dims, axis + 1, dims.size());
    rows_ = host::product(dims, 0, axis) * inner_;
  }
  bool cannot_fail() const override { return true; }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const T* x = host::data<T>(in[0]);
    int64_t* y = host::data<int64_t>(out[0]);
    context_.pool.parallel(rows_, std::max<int64_t>(1, kGrain / size_), [&](int64_t b, int64_t e) {
      for (int64_t row = b; row < e; ++row) {
        y[row] = place(x + row / inner_ * size_ * inner_ + row % inner_);
      }
    });
    return GR_OK;
  }

 private:
  int64_t place(const T* x) const {
    int64_t best = 0;
    for (int64_t k = 1; k < size_; ++k) {
      const T top = x[best * inner_], value = x[k * inner_];
      const bool more = value != value ? top == top : value > top;
      if (more || (last_ && value == top)) best = k;
    }
    return best;
  }

  const Context& context_;
  bool last_;
  int64_t size_ = 1, rows_ = 0, inner_ = 1;
};

std::string claim_dtype(const NodeSpec& node) {
  const gr_dtype_t dtype = node.inputs[0].dtype;
  if (dtype == GR_FLOAT32 || dtype == GR_FLOAT64 || dtype == GR_INT32 || dtype == GR_INT64) {
    return {};
  }
  return "input 0 is " + host::dtype_text(dtype);
}

std::string claim_top_k(const NodeSpec& node) {
  std::vector<int64_t> ignored;
  if (!node.known_ints(1, &ignored)) return "K is not a constant";
  return claim_dtype(node);
}

template <template <class> class K>
std::unique_ptr<Kernel> make(const NodeSpec& node, const Context& context) {
  switch (node.inputs[0].dtype) {
    case GR_FLOAT32:
      return std::make_unique<K<float>>(node, context);
    case GR_FLOAT64:
      return std::make_unique<K<double>>(node, context);
    case GR_INT32:
      return std::make_unique<K<int32_t>>(node, context);
    default:
      return std::make_unique<K<int64_t>>(node, context);
  }
}

}  // namespace

void add_order_by_kernels(host::KernelTable& table, const Context& context) {
  table.add({"TopK", claim_top_k,
             [&context](const NodeSpec& node) { return make<TopKKernel>(node, context); }});
  table.add({"ArgMax", claim_dtype,
             [&context](const NodeSpec& node) { return make<ArgMaxKernel>(node, context); }});
}

}  // namespace gradrack::cpu
