// SPDX-License-Identifier: Apache-2.0
// Groups of nodes of the cpu backend against their nodes one by one, and what they refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "backends/common/group.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/tiles.hpp"
#include "gradrack/bfloat16.hpp"

namespace gradrack::cpu {
namespace {

using Dims = std::vector<int64_t>;

const Context& context() {
  static const Context instance(2);
  return instance;
}
const host::KernelTable& table() {
  static const host::KernelTable instance = [] {
    host::KernelTable t;
    add_all_kernels(t, context());
    return t;
  }();
  return instance;
}

/// Nodes in the order of a pattern, and values with contents.
class Scene {
 public:
  explicit Scene(gr_dtype_t dtype) : dtype_(dtype) {}

  gr_dtype_t dtype() const { return dtype_; }

  /// An input of the scene, of its dtype or another.
  gr_value_t input(Dims dims) { return input(std::move(dims), dtype_); }
  gr_value_t input(Dims dims, gr_dtype_t dtype) {
    const gr_value_t id = value(std::move(dims), dtype);
    std::minstd_rand random(static_cast<uint32_t>(id));
    Value& v = values_.at(id);
    for (int64_t k = 0; k < v.count; ++k) {
      set(v, k, static_cast<float>(random() % 2001) / 1000.0f - 1.0f);
    }
    return id;
  }

  gr_value_t product(gr_value_t a, gr_value_t b, bool trans_a = false, bool trans_b = false) {
    const Dims &da = values_.at(a).dims, &db = values_.at(b).dims;
    Dims y(da.begin(), da.end() - 2);
    y.push_back(da[da.size() - (trans_a ? 1 : 2)]);
    y.push_back(db[trans_b ? 0 : 1]);
    return node("FusedMatMul", "gradrack", {a, b}, y, values_.at(a).dtype,
                {attr("transA", trans_a), attr("transB", trans_b), attr("alpha", 1.0)});
  }
  gr_value_t cast(gr_value_t x, gr_dtype_t to) {
    return node("Cast", "", {x}, values_.at(x).dims, to, {attr("to", int64_t{to})});
  }
  gr_value_t binary(const char* op, gr_value_t a, gr_value_t b) {
    return node(op, "", {a, b}, values_.at(a).dims, values_.at(a).dtype, {});
  }
  gr_value_t swish(gr_value_t x) {
    return node("Swish", "", {x}, values_.at(x).dims, values_.at(x).dtype, {attr("alpha", 1.0)});
  }
  gr_value_t swish_grad(gr_value_t gy, gr_value_t x) {
    return node("SwishGrad", "gradrack", {gy, x}, values_.at(x).dims, values_.at(x).dtype,
                {attr("alpha", 1.0)});
  }

  /// The nodes as a group that gives `outputs`.
  host::GroupSpec group(const std::vector<gr_value_t>& outputs) const {
    host::GroupSpec spec;
    spec.nodes = nodes_;
    std::map<gr_value_t, bool> inside;
    for (const host::NodeSpec& n : nodes_) inside[n.outputs[0].id] = true;
    for (const host::NodeSpec& n : nodes_) {
      for (const host::TensorSpec& in : n.inputs) {
        if (inside.count(in.id) == 0 && spec.input(in.id) < 0) spec.inputs.push_back(in);
      }
    }
    for (const gr_value_t id : outputs) spec.outputs.push_back(tensor(id));
    return spec;
  }

  /// Runs the nodes one by one.
  void run_nodes() {
    for (const host::NodeSpec& n : nodes_) {
      std::string reason;
      const host::KernelEntry* entry = table().match(n, &reason);
      ASSERT_NE(entry, nullptr) << reason;
      std::vector<DLTensor> in, out;
      for (const host::TensorSpec& t : n.inputs) in.push_back(view(t.id));
      out.push_back(view(n.outputs[0].id));
      run(*entry->make(n), in, out);
    }
  }

  /// Runs them as the group `name`; outputs that may take an input's memory do if `in_place`.
  void run_group(const char* name, const std::vector<gr_value_t>& outputs, bool in_place) {
    const host::GroupSpec spec = group(outputs);
    for (const auto& entry : table().groups()) {
      if (entry->name != name) continue;
      ASSERT_EQ(entry->claim(spec), "");
      const auto kernel = entry->make(spec);
      std::vector<DLTensor> in, out;
      for (const host::TensorSpec& t : spec.inputs) in.push_back(view(t.id));
      for (size_t k = 0; k < outputs.size(); ++k) {
        const int shared = in_place ? kernel->in_place(static_cast<int>(k)) : -1;
        if (shared >= 0) {
          values_.at(outputs[k]).bytes =
              values_.at(spec.inputs[static_cast<size_t>(shared)].id).bytes;
          in[static_cast<size_t>(shared)].data = values_.at(outputs[k]).bytes.data();
        }
        out.push_back(view(outputs[k]));
      }
      return run(*kernel, in, out);
    }
    FAIL() << "no group " << name;
  }

  std::string refusal(const char* name, const std::vector<gr_value_t>& outputs) const {
    for (const auto& entry : table().groups()) {
      if (entry->name == name) return entry->claim(group(outputs));
    }
    return "no such group";
  }

  std::vector<float> numbers(gr_value_t id) const {
    const Value& v = values_.at(id);
    std::vector<float> all;
    for (int64_t k = 0; k < v.count; ++k) {
      if (v.dtype == GR_FLOAT32) {
        all.push_back(reinterpret_cast<const float*>(v.bytes.data())[k]);
      } else {
        all.push_back(sdk::from_bfloat16(reinterpret_cast<const uint16_t*>(v.bytes.data())[k]));
      }
    }
    return all;
  }

 private:
  struct Value {
    gr_dtype_t dtype;
    Dims dims;
    int64_t count = 1;
    std::vector<char> bytes;
  };

  static gr_attr_t attr(const char* name, int64_t i) {
    gr_attr_t a = {};
    a.name = name;
    a.type = GR_ATTR_INT;
    a.i = i;
    return a;
  }
  static gr_attr_t attr(const char* name, bool b) { return attr(name, int64_t{b}); }
  static gr_attr_t attr(const char* name, double f) {
    gr_attr_t a = {};
    a.name = name;
    a.type = GR_ATTR_FLOAT;
    a.f = f;
    return a;
  }

  gr_value_t value(Dims dims, gr_dtype_t dtype) {
    Value v{dtype, std::move(dims), 1, {}};
    for (const int64_t n : v.dims) v.count *= n;
    v.bytes.resize(static_cast<size_t>(v.count * gr_dtype_bytes(dtype)));
    values_.emplace(++last_, std::move(v));
    return last_;
  }

  gr_value_t node(const char* op, const char* domain, const std::vector<gr_value_t>& inputs,
                  Dims dims, gr_dtype_t dtype, const std::vector<gr_attr_t>& attrs) {
    const gr_value_t id = value(std::move(dims), dtype);
    gr_node_view_t n = {};
    n.struct_size = sizeof n;
    n.op = op;
    n.domain = domain;
    n.attrs = attrs.data();
    n.attr_count = static_cast<uint32_t>(attrs.size());
    host::NodeSpec spec(n);
    for (const gr_value_t in : inputs) spec.inputs.push_back(tensor(in));
    spec.outputs.push_back(tensor(id));
    nodes_.push_back(spec);
    return id;
  }

  host::TensorSpec tensor(gr_value_t id) const {
    const Value& v = values_.at(id);
    host::TensorSpec t;
    t.id = id;
    t.dtype = v.dtype;
    t.dims = v.dims;
    t.count = v.count;
    return t;
  }

  DLTensor view(gr_value_t id) {
    DLTensor t = {};
    t.data = values_.at(id).bytes.data();
    return t;
  }

  static void run(const host::Kernel& kernel, std::vector<DLTensor>& in,
                  std::vector<DLTensor>& out) {
    std::vector<const DLTensor*> from;
    std::vector<DLTensor*> to;
    for (const DLTensor& t : in) from.push_back(&t);
    for (DLTensor& t : out) to.push_back(&t);
    std::vector<char> space(static_cast<size_t>(kernel.workspace_bytes()) + 64);
    const auto at = (reinterpret_cast<uintptr_t>(space.data()) + 63) / 64 * 64;
    gr_error_t err = {};
    ASSERT_EQ(kernel.run(from.data(), to.data(), reinterpret_cast<void*>(at), &err), GR_OK);
  }

  static void set(Value& v, int64_t k, float x) {
    if (v.dtype == GR_FLOAT32) {
      reinterpret_cast<float*>(v.bytes.data())[k] = x;
    } else {
      reinterpret_cast<uint16_t*>(v.bytes.data())[k] = sdk::to_bfloat16(x);
    }
  }

  gr_dtype_t dtype_;
  gr_value_t last_ = 0;
  std::map<gr_value_t, Value> values_;
  std::vector<host::NodeSpec> nodes_;
};

/// The group gives what its nodes give, within roundings of the scene's dtype.
void check(Scene& scene, const char* name, const std::vector<gr_value_t>& outputs) {
  scene.run_nodes();
  std::vector<std::vector<float>> want;
  for (const gr_value_t id : outputs) want.push_back(scene.numbers(id));
  for (const bool in_place : {false, true}) {
    Scene copy = scene;
    copy.run_group(name, outputs, in_place);
    if (testing::Test::HasFatalFailure()) return;
    for (size_t k = 0; k < outputs.size(); ++k) {
      const std::vector<float> got = copy.numbers(outputs[k]);
      float largest = 0;
      for (const float x : want[k]) largest = std::max(largest, std::abs(x));
      const float slack = largest * (scene.dtype() == GR_BFLOAT16 ? 0.02f : 1e-5f);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], want[k][i], slack)
            << name << ", result " << k << " at " << i << (in_place ? ", in place" : "");
      }
    }
  }
}

/// Shapes with and without ends that fill no tile: rows, depth, columns.
const std::vector<Dims> kShapes = {{64, 64, 96}, {37, 50, 45}, {1, 7, 3}, {300, 33, 130}};
constexpr gr_dtype_t kDtypes[] = {GR_FLOAT32, GR_BFLOAT16};

TEST(CpuGroup, ProductsOfOneFactor) {
  for (const gr_dtype_t dtype : kDtypes) {
    for (const Dims& d : kShapes) {
      for (const bool trans : {false, true}) {
        Scene s(dtype);
        const gr_value_t x = s.input(trans ? Dims{d[1], d[0]} : Dims{d[0], d[1]});
        const auto w = [&](int64_t n) { return s.input({d[1], n}); };
        const gr_value_t p = w(d[2]), q = w(d[2] + 5), r = w(8);
        std::vector<gr_value_t> y = {s.product(x, p, trans), s.product(x, q, trans)};
        check(s, "products2", y);
        y.push_back(s.product(x, r, trans));
        check(s, "products3", y);
      }
    }
  }
}

TEST(CpuGroup, CastsAroundProductsOfOneFactor) {
  for (const Dims& d : kShapes) {
    for (const bool of_cast : {false, true}) {
      if (of_cast && !tile_loops(true).narrow) continue;
      Scene s(GR_BFLOAT16);
      gr_value_t x = s.input({d[1], d[0]}, of_cast ? GR_FLOAT32 : GR_BFLOAT16);
      if (of_cast) x = s.cast(x, GR_BFLOAT16);
      std::vector<gr_value_t> y;
      for (int k = 0; k < 3; ++k) {
        const gr_value_t w = s.input({d[1], d[2] + k});
        y.push_back(s.cast(s.product(x, w, true), GR_FLOAT32));
        if (k == 1) check(s, of_cast ? "products2_of_cast" : "products2_cast", y);
        if (k == 0 && !of_cast) check(s, "product_cast", y);
      }
      check(s, of_cast ? "products3_of_cast" : "products3_cast", y);
    }
  }
}

TEST(CpuGroup, SumsOfProducts) {
  for (const gr_dtype_t dtype : kDtypes) {
    for (const Dims& d : kShapes) {
      for (const bool cast : {false, true}) {
        Scene s(dtype);
        const auto next = [&](int64_t depth) {
          const gr_value_t x = s.input({d[0], depth}), w = s.input({d[2], depth});
          return s.product(x, w, false, true);
        };
        if (cast && dtype == GR_FLOAT32) continue;
        const gr_value_t a = next(d[1]), b = next(d[1] + 3);
        gr_value_t sum = s.binary("Add", a, b);
        if (!cast) check(s, "sum2", {sum});
        sum = s.binary("Add", sum, next(d[1]));
        if (!cast) check(s, "sum3", {sum});
        if (cast) check(s, "sum3_cast", {s.cast(sum, GR_FLOAT32)});
      }
    }
  }
}

TEST(CpuGroup, ResidualSumBehindAProduct) {
  for (const gr_dtype_t dtype : kDtypes) {
    for (const Dims& d : kShapes) {
      Scene s(dtype);
      const gr_value_t r = s.input({d[0], d[2]}, GR_FLOAT32);
      const gr_value_t a = s.input({d[0], d[1]}), w = s.input({d[1], d[2]});
      gr_value_t p = s.product(a, w);
      if (dtype == GR_BFLOAT16) p = s.cast(p, GR_FLOAT32);
      check(s, dtype == GR_BFLOAT16 ? "product_cast_add" : "product_add", {s.binary("Add", r, p)});
    }
  }
}

TEST(CpuGroup, SwigluForward) {
  for (const gr_dtype_t dtype : kDtypes) {
    for (const Dims& d : kShapes) {
      Scene s(dtype);
      const gr_value_t x = s.input({d[0], d[1]}), p = s.input({d[1], d[2]});
      const gr_value_t q = s.input({d[1], d[2]});
      const gr_value_t gate = s.product(x, p), act = s.swish(gate), up = s.product(x, q);
      const gr_value_t m = s.binary("Mul", act, up);
      check(s, "swiglu", {gate, act, up, m});
      check(s, "swiglu", {act, m});
      check(s, "swiglu", {gate, up, m});
    }
  }
}

TEST(CpuGroup, SwigluBackward) {
  for (const gr_dtype_t dtype : kDtypes) {
    for (const Dims& d : kShapes) {
      Scene s(dtype);
      const gr_value_t y = s.input({d[0], d[1]}), w = s.input({d[2], d[1]});
      const gr_value_t up = s.input({d[0], d[2]}), gate = s.input({d[0], d[2]});
      const gr_value_t dm = s.product(y, w, false, true), ds = s.binary("Mul", dm, up);
      const gr_value_t act = s.swish(gate);
      const gr_value_t du = s.binary("Mul", dm, act), dg = s.swish_grad(ds, gate);
      check(s, "swiglu_grad", {du, dg});
      EXPECT_EQ(s.refusal("swiglu_grad", {act, du, dg}), "a value within is read outside too");
      EXPECT_EQ(s.refusal("swiglu_grad", {dm, du, dg}), "a value within is read outside too");
    }
  }
}

TEST(CpuGroup, RefusalsSayWhatIsInTheWay) {
  Scene s(GR_FLOAT32);
  const gr_value_t a = s.input({4, 6}), w = s.input({6, 5}), r = s.input({4, 5});
  const gr_value_t p = s.product(a, w), h = s.binary("Add", r, p);
  EXPECT_EQ(s.refusal("product_add", {p, h}), "a value within is read outside too");
  Scene other(GR_FLOAT32);
  const gr_value_t row = other.input({1, 5});
  const gr_value_t q = other.product(other.input({4, 6}), other.input({6, 5}));
  EXPECT_EQ(other.refusal("product_add", {other.binary("Add", q, row)}), "a sum of unlike shapes");
  Scene wide(GR_FLOAT64);
  const gr_value_t x = wide.input({2, 3}), v = wide.input({3, 2});
  const gr_value_t y = wide.product(x, v);
  EXPECT_EQ(wide.refusal("products2", {y, wide.product(x, v)}), "input 0 is float64");
}

}  // namespace
}  // namespace gradrack::cpu
