// SPDX-License-Identifier: Apache-2.0
// gradrack.FusedMatMul on float32 and bfloat16: one product, or many small ones over broadcast
// leading dims. Sums are in float32 and rounded once. Few rows of float32 go to oneDNN, which reads
// B in place: packing it for them would cost more than the product.
#include <atomic>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/gemm.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/product.hpp"
#include "backends/cpu/tiles.hpp"

namespace gradrack::cpu {
namespace {

using host::Dims;
using host::Kernel;
using host::NodeSpec;

/// Where the factors of each product begin, in elements.
struct Offset {
  int64_t a, b;
};

class MatMulKernel final : public Kernel {
 public:
  MatMulKernel(const NodeSpec& node, const Context& context)
      : context_(context),
        offsets_(offsets(node)),
        many_(static_cast<int64_t>(offsets_.size()) >= 2 * context.pool.threads()),
        element_(gr_dtype_bytes(node.inputs[0].dtype)),
        size_(node.outputs[0].count / std::max<int64_t>(1, count())),
        product_(shape_of(node), many_ ? 1 : context.pool.threads()) {}

  /// The node's batch is one product.
  static bool is_one(const NodeSpec& node) {
    return one_b(node) || batch_of(node.outputs[0].dims) == 1;
  }

  /// One of the products that the node asks for.
  static ProductShape shape_of(const NodeSpec& node) {
    const Dims &a = node.inputs[0].dims, &b = node.inputs[1].dims, &y = node.outputs[0].dims;
    const bool ta = node.get_int("transA") != 0, tb = node.get_int("transB") != 0;
    const bool narrow = node.inputs[0].dtype == GR_BFLOAT16;
    ProductShape shape;
    shape.narrow = narrow;
    shape.rows = y[y.size() - 2] * (one_b(node) ? batch_of(y) : 1);
    shape.terms.push_back({a[a.size() - (ta ? 2 : 1)],
                           {narrow, ta ? 1 : a.back(), ta ? a.back() : 1},
                           {{narrow, tb ? 1 : b.back(), tb ? b.back() : 1}}});
    shape.parts.push_back({y.back(), narrow, y.back()});
    shape.alpha = static_cast<float>(node.get_float("alpha", 1.0));
    return shape;
  }

  int64_t workspace_bytes() const override {
    return product_.workspace_bytes() * (many_ ? context_.pool.threads() : 1);
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    if (!many_) {
      for (int64_t k = 0; k < count(); ++k) {
        with_data(in, out, k,
                  [&](const ProductData& data) { product_.run(context_.pool, data, workspace); });
      }
      return GR_OK;
    }
    std::atomic<int64_t> next{0};
    context_.pool.run_pieces(context_.pool.threads(), [&](int64_t worker) {
      char* const own = static_cast<char*>(workspace) + worker * product_.workspace_bytes();
      for (int64_t k = next.fetch_add(1); k < count(); k = next.fetch_add(1)) {
        with_data(in, out, k, [&](const ProductData& data) { product_.run_alone(data, own); });
      }
    });
    return GR_OK;
  }

 private:
  static int64_t batch_of(const Dims& dims) { return host::product(dims, 0, dims.size() - 2); }

  /// One B for all products, whose rows lie one below the other: the batch is more rows.
  static bool one_b(const NodeSpec& node) {
    const Dims &a = node.inputs[0].dims, &y = node.outputs[0].dims;
    return node.get_int("transA") == 0 && batch_of(node.inputs[1].dims) == 1 &&
           Dims(a.begin(), a.end() - 2) == Dims(y.begin(), y.end() - 2);
  }

  static std::vector<Offset> offsets(const NodeSpec& node) {
    if (one_b(node)) return {{0, 0}};
    const Dims &a = node.inputs[0].dims, &b = node.inputs[1].dims, &y = node.outputs[0].dims;
    const Dims batch(y.begin(), y.end() - 2);
    const auto strides = [&](const Dims& dims) {
      return host::broadcast_strides(Dims(dims.begin(), dims.end() - 2), batch);
    };
    const int64_t size_a = a.back() * a[a.size() - 2], size_b = b.back() * b[b.size() - 2];
    std::vector<Offset> all;
    for (host::Walk walk(batch, {strides(a), strides(b)}); walk.more(); walk.next()) {
      all.push_back({walk.offset(0) * size_a, walk.offset(1) * size_b});
    }
    return all;
  }

  int64_t count() const { return static_cast<int64_t>(offsets_.size()); }

  template <class Run>
  void with_data(const DLTensor* const* in, DLTensor* const* out, int64_t k, const Run& run) const {
    const Offset& at = offsets_[static_cast<size_t>(k)];
    const void* a = static_cast<const char*>(in[0]->data) + at.a * element_;
    const void* b = static_cast<const char*>(in[1]->data) + at.b * element_;
    void* y = static_cast<char*>(out[0]->data) + k * size_ * element_;
    run(ProductData{&a, &b, &y, nullptr});
  }

  const Context& context_;
  std::vector<Offset> offsets_;  // one a product
  bool many_;                    // so many that each is one thread's
  int64_t element_, size_;       // bytes of a number; elements of a product
  Product product_;
};

/// One product of few rows on float32.
class FewRowsKernel final : public Kernel {
 public:
  FewRowsKernel(const NodeSpec& node, const ProductShape& shape, const Context& context)
      : context_(context),
        shape_{node.get_int("transA") != 0,
               node.get_int("transB") != 0,
               shape.rows,
               shape.parts[0].columns,
               shape.terms[0].k,
               shape.alpha,
               0.0f,
               std::max<int64_t>(1, node.inputs[0].dims.back()),
               std::max<int64_t>(1, node.inputs[1].dims.back()),
               std::max<int64_t>(1, node.outputs[0].dims.back())} {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*,
              gr_error_t* err) const override {
    if (gemm_parallel(context_.pool, shape_, host::data<float>(in[0]), host::data<float>(in[1]),
                      host::data<float>(out[0]))) {
      return GR_OK;
    }
    return gr_fail(err, GR_INTERNAL, "FusedMatMul", "oneDNN's sgemm refused the product");
  }

 private:
  const Context& context_;
  GemmShape shape_;
};

std::unique_ptr<Kernel> make_matmul(const NodeSpec& node, const Context& context) {
  constexpr int64_t kFewRows = 16;
  if (node.inputs[0].dtype == GR_FLOAT32 && MatMulKernel::is_one(node)) {
    const ProductShape shape = MatMulKernel::shape_of(node);
    if (shape.rows <= kFewRows) return std::make_unique<FewRowsKernel>(node, shape, context);
  }
  return std::make_unique<MatMulKernel>(node, context);
}

template <gr_dtype_t kDtype>
std::string claim_matmul(const NodeSpec& node) {
  return host::refuse_reals_except(node, {kDtype});
}

}  // namespace

void add_matmul_kernels(host::KernelTable& table, const Context& context) {
  const auto make = [&context](const NodeSpec& node) { return make_matmul(node, context); };
  const bool native = tile_loops(true).narrow;
  table.add({"gradrack.FusedMatMul", claim_matmul<GR_BFLOAT16>, make,
             native ? "" : "bfloat16 computed in float32"});
  table.add({"gradrack.FusedMatMul", claim_matmul<GR_FLOAT32>, make});
}

}  // namespace gradrack::cpu
