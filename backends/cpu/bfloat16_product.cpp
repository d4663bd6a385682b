// SPDX-License-Identifier: Apache-2.0
// gradrack.FusedMatMul on bfloat16: oneDNN's matmul, sums in float32, rounded once.
//
// A product is cut into pieces over the pool when the kernel is made; each distinct size of piece
// has a primitive. Invariant: the sum over k is never cut, and how the rest is depends on the
// shapes and the number of threads alone.
#include <array>
#include <atomic>
#include <map>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/onednn.hpp"

namespace gradrack::cpu {
namespace {

using dnnl::memory;
using host::Dims;
using host::Kernel;
using host::NodeSpec;

/// `batch` products C[m, n] = alpha op(A)[m, k] op(B)[k, n]; strides in elements.
struct ProductShape {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  int64_t batch_a = 0, batch_b = 0;  // from one product's factor to the next
  int64_t row_a = 0, column_a = 0, row_b = 0, column_b = 0, row_c = 0;
  int64_t batch_c = 0;
  float alpha = 1.0f;
};

/// Where a piece of the work begins, and which primitive it runs.
struct Piece {
  int64_t a, b, c;
  size_t primitive;
};

/// One matrix, or `batch` of them that are `apart` elements apart.
memory::desc matrix(int64_t batch, int64_t rows, int64_t columns, int64_t apart, int64_t row,
                    int64_t column) {
  constexpr auto kType = memory::data_type::bf16;
  if (batch == 1) return memory::desc({rows, columns}, kType, Dims{row, column});
  return memory::desc({batch, rows, columns}, kType, Dims{apart, row, column});
}

dnnl::matmul::primitive_desc describe(const ProductShape& s) {
  dnnl::primitive_attr attr = onednn_attr();
  if (s.alpha != 1.0f) {
    dnnl::post_ops scale;
    scale.append_eltwise(1.0f, dnnl::algorithm::eltwise_linear, s.alpha, 0.0f);
    attr.set_post_ops(scale);
  }
  const memory::desc a = matrix(s.batch, s.m, s.k, s.batch_a, s.row_a, s.column_a);
  const memory::desc b = matrix(s.batch, s.k, s.n, s.batch_b, s.row_b, s.column_b);
  const memory::desc c = matrix(s.batch, s.m, s.n, s.batch_c, s.row_c, 1);
  return {dnnl::matmul::desc(a, b, c), attr, onednn_engine()};
}

/// The product of one matrix pair, or of a run of them, that a node asks for.
ProductShape product_shape(const NodeSpec& node) {
  const Dims &a = node.inputs[0].dims, &b = node.inputs[1].dims, &y = node.outputs[0].dims;
  const bool ta = node.get_int("transA") != 0, tb = node.get_int("transB") != 0;
  ProductShape s;
  s.m = y[y.size() - 2];
  s.n = y.back();
  s.k = a[a.size() - (ta ? 2 : 1)];
  s.row_a = ta ? 1 : a.back();
  s.column_a = ta ? a.back() : 1;
  s.row_b = tb ? 1 : b.back();
  s.column_b = tb ? b.back() : 1;
  s.row_c = s.n;
  s.batch_c = s.m * s.n;
  s.alpha = static_cast<float>(node.get_float("alpha", 1.0));
  return s;
}

/// The node's products as runs with constant strides.
class Products {
 public:
  explicit Products(const NodeSpec& node) : shape_(product_shape(node)) {
    const Dims &a = node.inputs[0].dims, &b = node.inputs[1].dims, &y = node.outputs[0].dims;
    const Dims batch(y.begin(), y.end() - 2), batch_a(a.begin(), a.end() - 2);
    const Dims batch_b(b.begin(), b.end() - 2);
    if (node.get_int("transA") == 0 && host::product(batch_b) == 1 && batch_a == batch) {
      shape_.m *= host::product(batch);  // one B for all: the batch is more rows
      shape_.batch_c = shape_.m * shape_.n;
      offsets_ = {{0, 0}};
    } else {
      const int64_t size_a = a.back() * a[a.size() - 2], size_b = b.back() * b[b.size() - 2];
      for (host::Walk walk(batch, {host::broadcast_strides(batch_a, batch),
                                   host::broadcast_strides(batch_b, batch)});
           walk.more(); walk.next()) {
        offsets_.push_back({walk.offset(0) * size_a, walk.offset(1) * size_b});
      }
    }
    shape_.batch_a = shape_.m * shape_.k;
    shape_.batch_b = shape_.k * shape_.n;
    uniform_ = offsets_.size() > 1;
    for (size_t k = 1; k < offsets_.size(); ++k) {
      const Offset &last = offsets_[k - 1], &at = offsets_[k];
      uniform_ &= at.a - last.a == shape_.batch_a && at.b - last.b == shape_.batch_b;
    }
  }

  const ProductShape& shape() const { return shape_; }
  int64_t count() const { return static_cast<int64_t>(offsets_.size()); }
  bool empty() const { return count() * shape_.m * shape_.n * shape_.k == 0; }

  /// add(piece shape, offset in a, in b, in c) for pieces for `threads` threads.
  template <class Add>
  void cut(int threads, const Add& add) const {
    if (count() >= 2 * threads && uniform_) return cut_batch(threads, add);
    for (size_t k = 0; k < offsets_.size(); ++k) {
      const int64_t to = static_cast<int64_t>(k) * shape_.batch_c;
      const int each = count() >= threads ? 1 : threads;
      cut_matrix(each, [&](const ProductShape& part, int64_t a, int64_t b, int64_t c) {
        add(part, offsets_[k].a + a, offsets_[k].b + b, to + c);
      });
    }
  }

 private:
  struct Offset {
    int64_t a, b;
  };

  template <class Add>
  void cut_batch(int threads, const Add& add) const {
    const int64_t pieces = std::min<int64_t>(count(), int64_t{2} * threads);
    for (int64_t k = 0; k < pieces; ++k) {
      const int64_t first = count() * k / pieces, last = count() * (k + 1) / pieces;
      ProductShape part = shape_;
      part.batch = last - first;
      const Offset& at = offsets_[static_cast<size_t>(first)];
      add(part, at.a, at.b, first * shape_.batch_c);
    }
  }

  /// Rows or columns, whichever are more, in at most `pieces` parts that are worth a thread.
  template <class Add>
  void cut_matrix(int pieces, const Add& add) const {
    constexpr int64_t kWorthwhile = 1 << 22;  // multiply-adds: 10 us or more
    const ProductShape& s = shape_;
    const bool rows = s.m >= s.n;
    const int64_t length = rows ? s.m : s.n;
    const int64_t most = std::min<int64_t>({pieces, s.m * s.n * s.k / kWorthwhile, length / 32});
    // Cuts at multiples of 32, which suit the tiles.
    const int64_t each = most <= 1 ? length : ((length + most - 1) / most + 31) / 32 * 32;
    for (int64_t at = 0; at < length; at += each) {
      ProductShape part = s;
      (rows ? part.m : part.n) = std::min(each, length - at);
      add(part, rows ? at * s.row_a : 0, rows ? 0 : at * s.column_b, rows ? at * s.row_c : at);
    }
  }

  ProductShape shape_;
  std::vector<Offset> offsets_;  // one a product
  bool uniform_ = false;         // factors lie one behind the other
};

class ProductKernel final : public Kernel {
 public:
  ProductKernel(const NodeSpec& node, const Context& context) : context_(context) {
    const OneOpenMpThread one;
    std::map<std::array<int64_t, 3>, size_t> made;  // by batch, rows, columns
    Products(node).cut(context.pool.threads(), [&](const ProductShape& part, int64_t a, int64_t b,
                                                   int64_t c) {
      const auto [at, is_new] = made.emplace(std::array{part.batch, part.m, part.n}, made.size());
      if (is_new) add_primitive(part);
      pieces_.push_back({a, b, c, at->second});
    });
  }

  int64_t workspace_bytes() const override {
    return scratch_bytes_ * static_cast<int64_t>(pieces_.size());
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    const auto* a = host::data<uint16_t>(in[0]);
    const auto* b = host::data<uint16_t>(in[1]);
    auto* c = host::data<uint16_t>(out[0]);
    std::atomic<bool> ok{true};
    context_.pool.run_pieces(static_cast<int64_t>(pieces_.size()), [&](int64_t k) {
      const Piece& piece = pieces_[static_cast<size_t>(k)];
      char* scratch = static_cast<char*>(workspace) + k * scratch_bytes_;
      if (!run_piece(piece, a + piece.a, b + piece.b, c + piece.c, scratch)) ok = false;
    });
    if (ok) return GR_OK;
    return gr_fail(err, GR_INTERNAL, "FusedMatMul", "oneDNN's matmul failed");
  }

 private:
  struct Made {
    dnnl::matmul::primitive_desc desc;
    dnnl::matmul primitive;
  };

  void add_primitive(const ProductShape& part) {
    const dnnl::matmul::primitive_desc desc = describe(part);
    primitives_.push_back({desc, dnnl::matmul(desc)});
    const auto bytes = static_cast<int64_t>(desc.scratchpad_desc().get_size());
    scratch_bytes_ = std::max(scratch_bytes_, (bytes + 63) / 64 * 64);
  }

  bool run_piece(const Piece& piece, const uint16_t* a, const uint16_t* b, uint16_t* c,
                 void* scratch) const {
    use_one_openmp_thread();
    const Made& made = primitives_[piece.primitive];
    const auto at = [](const memory::desc& desc, const void* data) {
      return memory(desc, onednn_engine(), const_cast<void*>(data));
    };
    try {
      thread_local dnnl::stream stream(onednn_engine());
      made.primitive.execute(stream,
                             {{DNNL_ARG_SRC, at(made.desc.src_desc(), a)},
                              {DNNL_ARG_WEIGHTS, at(made.desc.weights_desc(), b)},
                              {DNNL_ARG_DST, at(made.desc.dst_desc(), c)},
                              {DNNL_ARG_SCRATCHPAD, at(made.desc.scratchpad_desc(), scratch)}});
    } catch (const std::exception&) {
      return false;  // pieces run on the pool, whose functions do not throw
    }
    return true;
  }

  const Context& context_;
  std::vector<Made> primitives_;
  std::vector<Piece> pieces_;
  int64_t scratch_bytes_ = 0;
};

std::string claim_product(const NodeSpec& node) {
  std::string reason = host::refuse_reals_except(node, {GR_BFLOAT16});
  if (!reason.empty()) return reason;
  const Products products(node);
  if (products.empty()) return "an empty product";
  return refuse_slow("matmul", [&] { return describe(products.shape()); });
}

}  // namespace

void add_bfloat16_product_kernels(host::KernelTable& table, const Context& context) {
  table.add({"gradrack.FusedMatMul", claim_product, [&context](const NodeSpec& node) {
               return std::make_unique<ProductKernel>(node, context);
             }});
}

}  // namespace gradrack::cpu
