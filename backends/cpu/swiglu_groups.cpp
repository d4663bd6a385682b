// SPDX-License-Identifier: Apache-2.0
// SwiGLU around its products: forward, gate and up products give Swish(gate) and its product with
// up; backward, the product that gives the gradient of that gives those of gate and up.
//
// The elementwise nodes are done to each tile of sums while it is in the first cache.
#include <memory>

#include "backends/cpu/kernels.hpp"
#include "backends/cpu/product_groups.hpp"

namespace gradrack::cpu {
namespace {

using host::GroupSpec;
using host::Kernel;
using host::NodeSpec;

/// A matrix at the group's border; place -1: nothing outside reads it.
struct Border {
  int place = -1;
  bool narrow = false;
  int64_t columns = 0;
  bool stream = false;  // see RowMajor

  RowMajor of(const DLTensor* const* tensors) const {
    return {place < 0 ? nullptr : tensors[place]->data, narrow, columns, stream};
  }
};

Border result_of(const GroupSpec& group, const NodeSpec& node, int64_t columns) {
  return {group.output(node.outputs[0].id), node.outputs[0].dtype == GR_BFLOAT16, columns};
}

/// The shape of one product with parts for each of `nodes`, whose A is one.
ProductShape shape_of(const std::vector<const NodeSpec*>& nodes) {
  const NodeSpec& lead = *nodes[0];
  const gr_dtype_t dtype = lead.inputs[0].dtype;
  ProductShape shape;
  shape.narrow = dtype == GR_BFLOAT16;
  shape.rows = product_rows(lead);
  shape.terms.push_back({product_depth(lead), layout_a(lead, dtype), {}});
  for (const NodeSpec* node : nodes) {
    shape.terms[0].b.push_back(layout_b(*node, dtype));
    const int64_t columns = node->outputs[0].dims.back();
    shape.parts.push_back({columns, shape.narrow, columns});
  }
  shape.finish = true;
  return shape;
}

/// g = X Wg; s = Swish(g); u = X Wu; m = s u.
struct SwigluForward {
  explicit SwigluForward(const GroupSpec& group)
      : gate_(group.nodes[0]), swish_(group.nodes[1]), up_(group.nodes[2]), mul_(group.nodes[3]) {
    const int64_t n = gate_.outputs[0].dims.back();
    g = result_of(group, gate_, n);
    s = result_of(group, swish_, n);
    u = result_of(group, up_, n);
    m = result_of(group, mul_, n);
    a = {group.input(gate_.inputs[0].id)};
    b = {group.input(gate_.inputs[1].id), group.input(up_.inputs[1].id)};
    alpha = static_cast<float>(swish_.get_float("alpha", 1.0));
  }

  /// Where Swish of a tile waits for the tile of `up`: its own memory, or that of the product.
  Border waits() const { return s.place < 0 ? m : s; }

  std::string problem() const {
    for (const NodeSpec* node : {&gate_, &up_}) {
      std::string reason = refuse_product(*node);
      if (!reason.empty()) return reason;
    }
    if (gate_.outputs[0].dims != up_.outputs[0].dims) return "gate and up of unlike shapes";
    if (gate_.inputs[0].dims != up_.inputs[0].dims ||
        gate_.get_int("transA") != up_.get_int("transA")) {
      return "gate and up of different A";
    }
    if (swish_.outputs[0].dims != mul_.outputs[0].dims) return "a product of unlike shapes";
    return m.place < 0 ? "a result is not read" : "";
  }

  ProductShape shape() const {
    ProductShape shape = shape_of({&gate_, &up_});
    shape.paired = true;  // Swish of a tile is there before the tile of `up` beside it
    return shape;
  }

  std::vector<int> a, b;
  Border g, s, u, m;
  float alpha;

 private:
  const NodeSpec &gate_, &swish_, &up_, &mul_;
};

class ForwardFinish final : public ProductFinish {
 public:
  /// `s`: where Swish waits for `up`; may be m.
  ForwardFinish(const Simd& loops, float alpha, const RowMajor& g, const RowMajor& s,
                const RowMajor& u, const RowMajor& m)
      : loops_(loops), alpha_(alpha), g_(g), s_(s), u_(u), m_(m) {}

  void take(const ProductTile& tile) const override {
    TileNumbers x(tile), y(tile);
    x.take_sums();
    if (tile.part == 0) {
      if (g_.data != nullptr) x.write(g_);
      loops_.unary[static_cast<int>(Unary::kSwish)](x.data(), y.data(), x.count(), alpha_);
      y.write(s_);
      return;
    }
    if (u_.data != nullptr) x.write(u_);
    y.read(s_);
    loops_.binary[static_cast<int>(Binary::kMul)](x.data(), 1, y.data(), 1, x.data(), x.count(), 0);
    x.write(m_);
  }

 private:
  const Simd& loops_;
  float alpha_;
  RowMajor g_, s_, u_, m_;
};

class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(const SwigluForward& group, const Context& context)
      : context_(context),
        a_(group.a),
        b_(group.b),
        g_(group.g),
        s_(group.waits()),
        u_(group.u),
        m_(group.m),
        alpha_(group.alpha),
        product_(group.shape(), context.pool.threads()) {
    const ProductShape shape = group.shape();
    const bool large = shape.parts[0].outgrows_caches(shape.rows);
    for (Border* result : {&g_, &u_, &m_}) result->stream = large;
    s_.stream = large && group.s.place >= 0;
  }

  int64_t workspace_bytes() const override { return product_.workspace_bytes(); }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    const ProductPointers pointers(in, out, a_, b_, {});
    const ForwardFinish finish(context_.loops, alpha_, g_.of(out), s_.of(out), u_.of(out),
                               m_.of(out));
    product_.run(context_.pool, pointers.data(&finish), workspace);
    return GR_OK;
  }

 private:
  const Context& context_;
  std::vector<int> a_, b_;
  Border g_, s_, u_, m_;
  float alpha_;
  Product product_;
};

/// dm = dY W^T; ds = dm u; s = Swish(g), made again; du = dm s; dg = SwishGrad(ds, g).
struct SwigluBackward {
  explicit SwigluBackward(const GroupSpec& group)
      : product_(group.nodes[0]),
        gate_(group.nodes[1]),
        remade_(group.nodes[2]),
        up_(group.nodes[3]),
        swish_(group.nodes[4]) {
    const int64_t n = product_.outputs[0].dims.back();
    const gr_value_t dm = product_.outputs[0].id, ds = gate_.outputs[0].id;
    const auto factor = [&](const NodeSpec& node, gr_value_t known) {
      const host::TensorSpec& other = node.inputs[node.inputs[0].id == known ? 1 : 0];
      return Border{group.input(other.id), other.dtype == GR_BFLOAT16, n};
    };
    u = factor(gate_, dm);
    g = factor(swish_, ds);
    du = result_of(group, up_, n);
    dg = result_of(group, swish_, n);
    kept_ =
        group.output(dm) >= 0 || group.output(ds) >= 0 || group.output(remade_.outputs[0].id) >= 0;
    a = {group.input(product_.inputs[0].id)};
    b = {group.input(product_.inputs[1].id)};
    alpha = static_cast<float>(swish_.get_float("alpha", 1.0));
  }

  std::string problem() const {
    std::string reason = refuse_product(product_);
    if (!reason.empty()) return reason;
    if (kept_) return "a value within is read outside too";
    for (const NodeSpec* node : {&gate_, &up_, &swish_}) {
      if (node->inputs[0].dims != node->inputs[1].dims) return node->op + " of unlike shapes";
    }
    if (remade_.get_float("alpha", 1.0) != swish_.get_float("alpha", 1.0)) {
      return "Swish and its gradient of different alpha";
    }
    if (u.place < 0 || g.place < 0) return "a factor is made within the group";
    return du.place < 0 || dg.place < 0 ? "a result is not read" : "";
  }

  ProductShape shape() const { return shape_of({&product_}); }

  std::vector<int> a, b;
  Border u, g, du, dg;
  float alpha;

 private:
  const NodeSpec &product_, &gate_, &remade_, &up_, &swish_;
  bool kept_ = false;
};

class BackwardFinish final : public ProductFinish {
 public:
  struct Matrices {
    RowMajor u, g, du, dg;
  };
  BackwardFinish(const Simd& loops, float alpha, const Matrices& matrices)
      : loops_(loops), alpha_(alpha), all_(matrices) {}

  void expect(const ProductTile& tile) const override {
    for (const RowMajor* factor : {&all_.u, &all_.g}) factor->expect(tile);
  }
  void take(const ProductTile& tile) const override {
    const auto multiply = loops_.binary[static_cast<int>(Binary::kMul)];
    TileNumbers dm(tile), x(tile), g(tile);
    const int64_t count = dm.count();
    dm.take_sums();
    g.read(all_.g);
    loops_.unary[static_cast<int>(Unary::kSwish)](g.data(), x.data(), count, alpha_);
    multiply(dm.data(), 1, x.data(), 1, x.data(), count, 0);
    TileNumbers u(tile);
    u.read(all_.u);  // before du is written, which may be in its memory
    x.write(all_.du);
    multiply(dm.data(), 1, u.data(), 1, dm.data(), count, 0);
    loops_.binary[static_cast<int>(Binary::kSwishGrad)](dm.data(), 1, g.data(), 1, x.data(), count,
                                                        alpha_);
    x.write(all_.dg);
  }

 private:
  const Simd& loops_;
  float alpha_;
  Matrices all_;
};

class BackwardKernel final : public Kernel {
 public:
  BackwardKernel(const SwigluBackward& group, const Context& context)
      : context_(context),
        a_(group.a),
        b_(group.b),
        u_(group.u),
        g_(group.g),
        du_(group.du),
        dg_(group.dg),
        alpha_(group.alpha),
        product_(group.shape(), context.pool.threads()) {}

  int64_t workspace_bytes() const override { return product_.workspace_bytes(); }

  /// The gradients may take the memory of what they are gradients of.
  int in_place(int output) const override {
    if (a_[0] == u_.place || a_[0] == g_.place || u_.place == g_.place) return -1;
    if (output == du_.place && u_.narrow == du_.narrow) return u_.place;
    return output == dg_.place && g_.narrow == dg_.narrow ? g_.place : -1;
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    const ProductPointers pointers(in, out, a_, b_, {});
    const BackwardFinish finish(context_.loops, alpha_,
                                {u_.of(in), g_.of(in), du_.of(out), dg_.of(out)});
    product_.run(context_.pool, pointers.data(&finish), workspace);
    return GR_OK;
  }

 private:
  const Context& context_;
  std::vector<int> a_, b_;
  Border u_, g_, du_, dg_;
  float alpha_;
  Product product_;
};

template <class Group, class Made>
void add_group(host::KernelTable& table, const Context& context, const char* name, const char* help,
               const char* pattern) {
  host::GroupEntry entry;
  entry.name = name;
  entry.help = help;
  entry.pattern = pattern;
  entry.claim = [](const GroupSpec& group) { return Group(group).problem(); };
  entry.make = [&context](const GroupSpec& group) -> std::unique_ptr<Kernel> {
    return std::make_unique<Made>(Group(group), context);
  };
  table.add_group(std::move(entry));
}

}  // namespace

void add_swiglu_groups(host::KernelTable& table, const Context& context) {
  add_group<SwigluForward, ForwardKernel>(
      table, context, "swiglu",
      "gate and up products read their A once; Swish and the product of both while at it",
      "g = gradrack.FusedMatMul(x, p); s = Swish(g); u = gradrack.FusedMatMul(x, q); m = Mul(s, "
      "u)");
  add_group<SwigluBackward, BackwardKernel>(
      table, context, "swiglu_grad",
      "the gradients of gate and up from the sums of the product before them",
      "m = gradrack.FusedMatMul(y, w); s = Mul(m, u); r = Swish(z); v = Mul(m, r); "
      "g = gradrack.SwishGrad(s, z)");
}

}  // namespace gradrack::cpu
