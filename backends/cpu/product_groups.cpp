// SPDX-License-Identifier: Apache-2.0
// Groups of nodes around FusedMatMul that are one Product: products that share their A, sums of
// products, Casts of what they give and read, and the residual sum behind one.
//
// The nodes of a match are read as expressions: a product, a Cast of one, a sum of two. Invariant:
// values between the nodes stay in float32, so a result is as exact as its nodes' or more.
#include "backends/cpu/product_groups.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/kernels.hpp"

namespace gradrack::cpu {

using host::GroupSpec;
using host::Kernel;
using host::NodeSpec;
using host::TensorSpec;

std::string refuse_product(const NodeSpec& node) {
  const bool narrow = node.inputs[0].dtype == GR_BFLOAT16;
  std::string reason = host::refuse_reals_except(node, {narrow ? GR_BFLOAT16 : GR_FLOAT32});
  if (!reason.empty()) return reason;
  const host::Dims &a = node.inputs[0].dims, &b = node.inputs[1].dims;
  if (b.size() != 2) return "B has rank " + std::to_string(b.size());
  if (node.get_int("transA") != 0 && a.size() != 2) {
    return "A^T has rank " + std::to_string(a.size());
  }
  if (node.get_float("alpha", 1.0) != 1.0) return "alpha is not 1";
  return {};
}

int64_t product_rows(const NodeSpec& node) {
  const host::Dims& y = node.outputs[0].dims;
  return host::product(y, 0, y.size() - 1);
}

int64_t product_depth(const NodeSpec& node) {
  const host::Dims& a = node.inputs[0].dims;
  return a[a.size() - (node.get_int("transA") != 0 ? 2 : 1)];
}

FactorLayout layout_a(const NodeSpec& node, gr_dtype_t a) {
  const int64_t width = node.inputs[0].dims.back();
  const bool turned = node.get_int("transA") != 0;
  return {a == GR_BFLOAT16, turned ? 1 : width, turned ? width : 1};
}

FactorLayout layout_b(const NodeSpec& node, gr_dtype_t b) {
  const int64_t width = node.inputs[1].dims.back();
  const bool turned = node.get_int("transB") != 0;
  return {b == GR_BFLOAT16, turned ? 1 : width, turned ? width : 1};
}

void RowMajor::expect(const ProductTile& tile) const {
  constexpr int64_t kLine = 64;
  const int64_t element = narrow ? 2 : 4, bytes = tile.columns * element;
  const auto* row = static_cast<const char*>(at(tile));
  for (int64_t i = 0; i < tile.rows; ++i, row += columns * element) {
    for (int64_t k = 0; k < bytes; k += kLine) __builtin_prefetch(row + k);
    __builtin_prefetch(row + bytes - 1);
  }
}

void TileNumbers::take_sums() {
  tile_loops(false).get({tile_.sums, false, tile_.row_sums}, tile_.rows, tile_.columns, numbers_);
}

void TileNumbers::read(const RowMajor& from) {
  tile_loops(false).get({from.at(tile_), from.narrow, from.columns}, tile_.rows, tile_.columns,
                        numbers_);
}

void TileNumbers::write(const RowMajor& to) const {
  tile_loops(false).put(numbers_, tile_.columns, tile_.rows, tile_.columns,
                        {to.at(tile_), to.narrow, to.columns, 1.0f, nullptr, to.stream});
}

namespace {

/// What a value inside the group stands for.
struct Expression {
  std::vector<size_t> products;  // nodes, summed
  gr_dtype_t dtype = GR_FLOAT32;
  gr_value_t residual = GR_NO_VALUE;  // added to the sum
};

/// A match, read as one Product.
class Reading {
 public:
  explicit Reading(const GroupSpec& group) : group_(group) {
    for (size_t k = 0; k < group.nodes.size() && problem_.empty(); ++k) read(k);
    if (problem_.empty()) find_results();
    if (problem_.empty()) make_shape();
  }

  const std::string& problem() const { return problem_; }
  const ProductShape& shape() const { return shape_; }
  std::vector<int> a, b, c;  // border places
  int residual = -1;         // of what is added, or -1

 private:
  void read(size_t k) {
    const NodeSpec& node = group_.nodes[k];
    const gr_value_t id = node.outputs[0].id;
    if (node.op == "gradrack.FusedMatMul") {
      problem_ = refuse_product(node);
      values_[id] = {{k}, node.outputs[0].dtype, GR_NO_VALUE};
      for (const TensorSpec& input : node.inputs) use(input.id);
    } else if (node.op == "Cast") {
      read_cast(node);
    } else {
      read_sum(node);
    }
  }

  void read_cast(const NodeSpec& node) {
    const TensorSpec &from = node.inputs[0], &to = node.outputs[0];
    const auto known = values_.find(from.id);
    use(from.id);
    if (known != values_.end()) {
      if (to.dtype != GR_FLOAT32) problem_ = "a product is cast to " + host::dtype_text(to.dtype);
      values_[to.id] = known->second;
      values_[to.id].dtype = to.dtype;
    } else if (from.dtype == GR_FLOAT32 && to.dtype == GR_BFLOAT16) {
      if (!tile_loops(true).narrow) problem_ = "this processor has no products of bfloat16";
      casts_[to.id] = from.id;
    } else {
      problem_ = "a factor is cast from " + host::dtype_text(from.dtype);
    }
  }

  void read_sum(const NodeSpec& node) {
    const gr_value_t left = node.inputs[0].id, right = node.inputs[1].id;
    const bool left_known = values_.count(left) != 0, right_known = values_.count(right) != 0;
    if (node.inputs[0].dims != node.inputs[1].dims) problem_ = "a sum of unlike shapes";
    Expression sum = values_[left_known ? left : right];
    if (left_known && right_known) {
      const Expression& other = values_[right];
      sum.products.insert(sum.products.end(), other.products.begin(), other.products.end());
      if (sum.residual != GR_NO_VALUE || other.residual != GR_NO_VALUE) problem_ = "a sum of sums";
    } else {
      if (sum.residual != GR_NO_VALUE) problem_ = "two sums behind a product";
      if (sum.dtype != GR_FLOAT32) problem_ = "a sum in " + host::dtype_text(sum.dtype);
      sum.residual = left_known ? right : left;
    }
    use(left);
    use(right);
    values_[node.outputs[0].id] = sum;
  }

  void use(gr_value_t id) { used_.insert(id); }

  /// Every value inside is used up by the group or a result of it, not both.
  void find_results() {
    for (const auto& [id, from] : casts_) {
      if (group_.output(id) >= 0) problem_ = "a factor's Cast is read outside the group too";
    }
    for (const NodeSpec& node : group_.nodes) {
      const gr_value_t id = node.outputs[0].id;
      const bool outside = group_.output(id) >= 0;
      if (casts_.count(id) != 0) continue;
      if (used_.count(id) != 0 && outside) problem_ = "a value within is read outside too";
      if (used_.count(id) == 0) results_.push_back(id);
    }
  }

  void make_shape() {
    const Expression& first = values_[results_[0]];
    const NodeSpec& lead = group_.nodes[first.products[0]];
    shape_.narrow = lead.inputs[0].dtype == GR_BFLOAT16;
    shape_.rows = product_rows(lead);
    if (results_.size() == 1) {
      for (const size_t k : first.products) add_term(group_.nodes[k]);
      if (first.residual != GR_NO_VALUE) {
        residual = group_.input(first.residual);
        shape_.finish = true;
      }
    } else {
      add_term(lead);
      for (size_t j = 1; j < results_.size(); ++j) add_part(values_[results_[j]], lead);
    }
    for (const gr_value_t id : results_) {
      const NodeSpec& node = group_.nodes[values_[id].products[0]];
      const int64_t columns = node.outputs[0].dims.back();
      shape_.parts.push_back({columns, values_[id].dtype == GR_BFLOAT16, columns});
      c.push_back(group_.output(id));
      if (c.back() < 0) problem_ = "a result is not read";
    }
    const size_t most = ProductPointers::kMost;
    if (b.size() > most) problem_ = "more than " + std::to_string(most) + " products";
  }

  /// Border place and dtype of a factor: what it is cast from, where it is.
  const TensorSpec& source(gr_value_t id, std::vector<int>* places) {
    const auto cast = casts_.find(id);
    places->push_back(group_.input(cast == casts_.end() ? id : cast->second));
    return group_.inputs[static_cast<size_t>(places->back())];
  }

  void add_term(const NodeSpec& node) {
    const NodeSpec& lead = group_.nodes[values_[results_[0]].products[0]];
    if (product_rows(node) != product_rows(lead) ||
        node.outputs[0].dims.back() != lead.outputs[0].dims.back()) {
      problem_ = "a sum of unlike products";
      return;
    }
    const gr_dtype_t from = source(node.inputs[0].id, &a).dtype;
    const gr_dtype_t with = source(node.inputs[1].id, &b).dtype;
    shape_.terms.push_back({product_depth(node), layout_a(node, from), {layout_b(node, with)}});
  }

  void add_part(const Expression& value, const NodeSpec& lead) {
    const NodeSpec& node = group_.nodes[value.products[0]];
    if (value.products.size() != 1 || value.residual != GR_NO_VALUE) {
      problem_ = "sums side by side";
    } else if (node.inputs[0].id != lead.inputs[0].id ||
               node.get_int("transA") != lead.get_int("transA") ||
               node.inputs[0].dims != lead.inputs[0].dims) {
      problem_ = "products of different A";
    } else {
      const gr_dtype_t with = source(node.inputs[1].id, &b).dtype;
      shape_.terms[0].b.push_back(layout_b(node, with));
    }
  }

  const GroupSpec& group_;
  std::map<gr_value_t, Expression> values_;
  std::map<gr_value_t, gr_value_t> casts_;  // of factors, and what they are cast from
  std::set<gr_value_t> used_;
  std::vector<gr_value_t> results_;
  ProductShape shape_;
  std::string problem_;
};

/// y = x + sums, in float32; y may be x.
class AddTo final : public ProductFinish {
 public:
  AddTo(const RowMajor& x, const RowMajor& y, const TileLoops& loops)
      : x_(x), y_(y), loops_(loops) {}

  void expect(const ProductTile& tile) const override { x_.expect(tile); }
  void take(const ProductTile& tile) const override {
    loops_.put(
        tile.sums, tile.row_sums, tile.rows, tile.columns,
        {y_.at(tile), false, y_.columns, 1.0f, static_cast<const float*>(x_.at(tile)), y_.stream});
  }

 private:
  RowMajor x_, y_;
  const TileLoops& loops_;
};

class ProductGroupKernel final : public Kernel {
 public:
  ProductGroupKernel(const Reading& reading, const Context& context)
      : context_(context),
        a_(reading.a),
        b_(reading.b),
        c_(reading.c),
        residual_(reading.residual),
        sum_(reading.shape().parts[0]),
        large_(sum_.outgrows_caches(reading.shape().rows)),
        product_(reading.shape(), context.pool.threads()) {}

  int64_t workspace_bytes() const override { return product_.workspace_bytes(); }

  int in_place(int output) const override {
    // What is added may become the result, unless it is a factor as well.
    const auto is_factor = [&](const std::vector<int>& places) {
      return std::find(places.begin(), places.end(), residual_) != places.end();
    };
    return output == c_[0] && !is_factor(a_) && !is_factor(b_) ? residual_ : -1;
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    const ProductPointers pointers(in, out, a_, b_, c_);
    if (residual_ < 0) {
      product_.run(context_.pool, pointers.data(), workspace);
      return GR_OK;
    }
    const RowMajor x{in[residual_]->data, false, sum_.columns};
    void* const y = out[c_[0]]->data;
    const AddTo finish(x, {y, false, sum_.columns, large_ && x.data != y}, tile_loops(false));
    product_.run(context_.pool, pointers.data(&finish), workspace);
    return GR_OK;
  }

 private:
  const Context& context_;
  std::vector<int> a_, b_, c_;
  int residual_;
  ProductShape::Part sum_;  // where a residual is added
  bool large_;
  Product product_;
};

struct Row {
  const char *name, *help, *pattern;
};

constexpr Row kRows[] = {
    {"products3_of_cast", "three products of one A read it once; its Cast and theirs while at it",
     "x = Cast(n); a = gradrack.FusedMatMul(x, p); c = Cast(a); d = gradrack.FusedMatMul(x, q); "
     "e = Cast(d); f = gradrack.FusedMatMul(x, r); g = Cast(f)"},
    {"products3_cast", "three products of one A read it once; Casts of what they give",
     "a = gradrack.FusedMatMul(x, p); c = Cast(a); d = gradrack.FusedMatMul(x, q); e = Cast(d); "
     "f = gradrack.FusedMatMul(x, r); g = Cast(f)"},
    {"products2_of_cast", "two products of one A read it once; its Cast and theirs while at it",
     "x = Cast(n); a = gradrack.FusedMatMul(x, p); c = Cast(a); d = gradrack.FusedMatMul(x, q); "
     "e = Cast(d)"},
    {"products2_cast", "two products of one A read it once; Casts of what they give",
     "a = gradrack.FusedMatMul(x, p); c = Cast(a); d = gradrack.FusedMatMul(x, q); e = Cast(d)"},
    {"products3", "three products of one A read it once",
     "a = gradrack.FusedMatMul(x, p); b = gradrack.FusedMatMul(x, q); "
     "c = gradrack.FusedMatMul(x, r)"},
    {"sum3_cast", "three products summed in registers; the Cast of the sum while at it",
     "a = gradrack.FusedMatMul(x, p); b = gradrack.FusedMatMul(y, q); s = Add(a, b); "
     "c = gradrack.FusedMatMul(z, r); t = Add(s, c); u = Cast(t)"},
    {"sum3", "three products summed in registers",
     "a = gradrack.FusedMatMul(x, p); b = gradrack.FusedMatMul(y, q); s = Add(a, b); "
     "c = gradrack.FusedMatMul(z, r); t = Add(s, c)"},
    {"sum2_cast", "two products summed in registers; the Cast of the sum while at it",
     "a = gradrack.FusedMatMul(x, p); b = gradrack.FusedMatMul(y, q); s = Add(a, b); u = Cast(s)"},
    {"sum2", "two products summed in registers",
     "a = gradrack.FusedMatMul(x, p); b = gradrack.FusedMatMul(y, q); s = Add(a, b)"},
    {"product_cast_add", "a product's Cast and the residual sum behind it",
     "p = gradrack.FusedMatMul(a, w); c = Cast(p); h = Add(r, c)"},
    {"product_add", "the residual sum behind a product",
     "p = gradrack.FusedMatMul(a, w); h = Add(r, p)"},
    {"products2", "two products of one A read it once",
     "a = gradrack.FusedMatMul(x, p); b = gradrack.FusedMatMul(x, q)"},
    {"product_cast", "a product in bfloat16 gives its sums in float32",
     "p = gradrack.FusedMatMul(a, w); c = Cast(p)"},
};

}  // namespace

void add_product_groups(host::KernelTable& table, const Context& context) {
  for (const Row& row : kRows) {
    host::GroupEntry entry;
    entry.name = row.name;
    entry.help = row.help;
    entry.pattern = row.pattern;
    entry.claim = [](const GroupSpec& group) { return Reading(group).problem(); };
    entry.make = [&context](const GroupSpec& group) -> std::unique_ptr<Kernel> {
      return std::make_unique<ProductGroupKernel>(Reading(group), context);
    };
    table.add_group(std::move(entry));
  }
}

}  // namespace gradrack::cpu
