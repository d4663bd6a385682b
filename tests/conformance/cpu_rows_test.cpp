// SPDX-License-Identifier: Apache-2.0
// Groups of the cpu backend that are one pass over rows: each gives the bits of its nodes run one
// by one, whatever the shapes, dtypes and ways of broadcasting.
#include "backends/cpu/kernels.hpp"
#include "tests/conformance/group_run.hpp"

namespace gradrack::conformance {
namespace {

constexpr gr_dtype_t F32 = GR_FLOAT32, BF16 = GR_BFLOAT16;
using Dims = std::vector<int64_t>;

const host::KernelTable& table() {
  static const cpu::Context context(2);
  static const host::KernelTable instance = [] {
    host::KernelTable t;
    cpu::add_all_kernels(t, context);
    return t;
  }();
  return instance;
}

void expect_same_bits(GroupCase& c, const std::string& entry) {
  for (const bool in_place : {false, true}) {
    SCOPED_TRACE(in_place ? "in place" : "apart");
    c.run(table(), entry, in_place);
    if (!::testing::Test::HasFailure()) c.expect_same_bits();
  }
}

/// Short rows, long ones, single elements, tails, more than a tile.
const std::vector<Dims> kShapes = {{1, 1},    {3, 5},     {7, 64},     {200, 256}, {130, 257},
                                   {5, 9000}, {1, 20001}, {4, 33, 96}, {2, 1, 384}};

TEST(CpuRows, ResidualOfAProductInBfloat16) {
  for (const Dims& dims : kShapes) {
    const Dims row = {dims.back()};
    GroupCase c;
    c.input("x", F32, dims, 2.0, 0.5).input("p", BF16, dims).input("w", F32, row, 0.2, 1.0);
    c.node("Cast", {"p"}, "c", F32, dims).node("Add", {"x", "c"}, "h", F32, dims);
    c.node("RMSNormalization", {"h", "w"}, "n", F32, dims).node("Cast", {"n"}, "b", BF16, dims);
    for (const std::vector<std::string>& shown :
         {std::vector<std::string>{"b"}, {"h", "b"}, {"c", "h", "n", "b"}}) {
      c.shown(shown);
      expect_same_bits(c, "rows");
    }
  }
}

TEST(CpuRows, LayerNormalizationWithABias) {
  for (const gr_dtype_t dtype : {F32, BF16}) {
    for (const Dims& dims : kShapes) {
      if (dtype == BF16 && dims.back() > 12000) continue;  // more than the scratch of a tile
      const Dims row = {dims.back()};
      GroupCase c;
      c.input("x", dtype, dims, 2.0, 30.0).input("y", dtype, dims);
      c.input("w", dtype, row, 0.2, 1.0).input("b", dtype, row);
      c.node("Add", {"x", "y"}, "h", dtype, dims);
      c.node("LayerNormalization", {"h", "w", "b"}, "n", dtype, dims);
      c.node("Gelu", {"n"}, "g", dtype, dims, {.texts = {{"approximate", "tanh"}}});
      c.shown({"h", "g"});
      expect_same_bits(c, "rows");
    }
  }
}

TEST(CpuRows, GatedActivationForwardAndBackward) {
  for (const gr_dtype_t dtype : {F32, BF16}) {
    for (const Dims& dims : kShapes) {
      GroupCase forward;
      forward.input("a", dtype, dims, 3.0).input("u", dtype, dims);
      forward.node("Swish", {"a"}, "s", dtype, dims).node("Mul", {"s", "u"}, "y", dtype, dims);
      forward.shown({"s", "y"});
      expect_same_bits(forward, "rows");
      GroupCase backward;
      backward.input("gy", dtype, dims).input("u", dtype, dims).input("s", dtype, dims);
      backward.input("a", dtype, dims, 3.0);
      backward.node("Mul", {"gy", "u"}, "gs", dtype, dims);
      backward.node("Mul", {"gy", "s"}, "gu", dtype, dims);
      backward.node("gradrack.SwishGrad", {"gs", "a"}, "ga", dtype, dims);
      backward.shown({"gu", "ga"});
      expect_same_bits(backward, "rows");
    }
  }
}

TEST(CpuRows, BroadcastRowsColumnsAndNumbers) {
  for (const gr_dtype_t dtype : {F32, BF16}) {
    for (const Dims& dims : kShapes) {
      Dims column(dims.size(), 1);
      for (size_t k = 0; k + 1 < dims.size(); ++k) column[k] = dims[k];
      GroupCase c;
      c.input("x", dtype, dims).input("row", dtype, {dims.back()}).input("column", dtype, column);
      c.number("factor", dtype, 0.37);
      c.node("Mul", {"row", "x"}, "a", dtype, dims).node("Sub", {"a", "column"}, "b", dtype, dims);
      c.node("Mul", {"b", "factor"}, "d", dtype, dims).node("Max", {"row", "d"}, "e", dtype, dims);
      c.node("Div", {"factor", "e"}, "f", dtype, dims).node("Abs", {"f"}, "g", dtype, dims);
      c.shown({"b", "g"});
      expect_same_bits(c, "rows");
    }
  }
}

TEST(CpuRows, BroadcastOverLeadingDimsOfSeveral) {
  GroupCase c;
  c.input("x", F32, {3, 20, 48}).input("position", F32, {20, 48}).input("y", F32, {3, 20, 48});
  c.node("Add", {"x", "position"}, "a", F32, {3, 20, 48});
  c.node("Mul", {"a", "y"}, "b", F32, {3, 20, 48}).shown({"b"});
  expect_same_bits(c, "rows");
}

TEST(CpuRows, CastsThereAndBack) {
  GroupCase c;
  c.input("x", F32, {40, 100}).input("y", BF16, {40, 100});
  c.node("Cast", {"x"}, "a", BF16, {40, 100}).node("Cast", {"a"}, "b", F32, {40, 100});
  c.node("Cast", {"y"}, "d", F32, {40, 100}).node("Add", {"b", "d"}, "e", F32, {40, 100});
  c.node("Cast", {"e"}, "f", BF16, {40, 100}).node("Mul", {"f", "y"}, "g", BF16, {40, 100});
  for (const std::vector<std::string>& shown :
       {std::vector<std::string>{"g"}, {"a", "b", "d", "e", "f", "g"}, {"b", "f"}}) {
    c.shown(shown);
    expect_same_bits(c, "rows");
  }
}

void norm_backward(const Dims& dims, bool center, bool widened, bool residual, bool narrowed) {
  const Dims row = {dims.back()};
  const std::string norm = center ? "gradrack.LayerNormalization" : "gradrack.RMSNormalization";
  GroupCase c;
  c.input("x", F32, dims, 2.0, 0.5).input("w", F32, row, 0.2, 1.0);
  if (residual) c.input("e", F32, dims);
  c.input(widened ? "a" : "c", widened ? BF16 : F32, dims);
  if (widened) c.node("Cast", {"a"}, "c", F32, dims);
  c.node(norm + "Grad", {"c", "x", "w"}, "g", F32, dims);
  c.node(norm + "ScaleGrad", {"c", "x"}, "s", F32, row);
  std::string last = "g";
  if (residual) c.node("Add", {"e", "g"}, last = "r", F32, dims);
  std::vector<std::string> shown = {"s", last};
  if (narrowed) c.node("Cast", {last}, "b", BF16, dims);
  if (narrowed) shown.push_back("b");
  c.shown(shown);
  std::string name = "norm_backward";
  if (widened) name += "_widened";
  if (residual) name += "_residual";
  if (narrowed) name += "_narrowed";
  expect_same_bits(c, name);
}

TEST(CpuRows, BothGradientsOfANormalization) {
  for (const Dims& dims : kShapes) {
    for (int bits = 0; bits < 16; ++bits) {
      norm_backward(dims, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0);
    }
  }
}

TEST(CpuUpdate, FactorAndCastBeforeAdamW) {
  for (const int64_t count : {1, 17, 1024, 70001}) {
    for (const bool widened : {false, true}) {
      for (const double ok : {1.0, 0.0}) {
        const Dims dims = {count};
        GroupCase c;
        c.input("p", F32, dims).input("m", F32, dims, 0.1);
        c.number("v", F32, 0.01, dims).number("lr", GR_FLOAT64, 1e-3);
        c.number("t", GR_FLOAT64, 7).number("ok", GR_BOOL, ok).number("f", F32, 0.3);
        c.input(widened ? "g" : "c", widened ? BF16 : F32, dims);
        if (widened) c.node("Cast", {"g"}, "c", F32, dims);
        c.node("Mul", {"c", "f"}, "y", F32, dims);
        c.node("gradrack.AdamW", {"p", "y", "m", "v", "lr", "t", "ok"},
               std::vector<std::string>{"p1", "m1", "v1"}, F32, dims,
               {.floats = {{"beta1", 0.9}, {"beta2", 0.99}, {"eps", 1e-8}, {"weight_decay", 0.1}}});
        c.shown({"p1", "m1", "v1"});
        expect_same_bits(c, widened ? "adamw_widened" : "adamw");
      }
    }
  }
}

TEST(CpuRows, RefusesWhatIsNoPassOverRows) {
  const auto refusal = [](GroupCase& c) {
    std::string reason;
    c.run(table(), "rows", false, &reason);
    return reason;
  };
  GroupCase wide;
  wide.input("x", GR_FLOAT64, {3, 4}).node("Neg", {"x"}, "a", GR_FLOAT64, {3, 4});
  wide.node("Abs", {"a"}, "b", GR_FLOAT64, {3, 4}).shown({"b"});
  EXPECT_EQ(refusal(wide), "Neg: it has float64");
  GroupCase middle;
  middle.input("x", F32, {2, 3, 4}).input("y", F32, {2, 1, 4});
  middle.node("Add", {"x", "y"}, "a", F32, {2, 3, 4}).node("Abs", {"a"}, "b", F32, {2, 3, 4});
  middle.shown({"b"});
  EXPECT_EQ(refusal(middle), "Add: an input repeats along dims that are no rows or columns");
  GroupCase lengths;
  lengths.input("x", F32, {2, 3, 4}).input("y", F32, {4}).input("z", F32, {3, 4});
  lengths.node("Add", {"x", "y"}, "a", F32, {2, 3, 4});
  lengths.node("Add", {"a", "z"}, "b", F32, {2, 3, 4}).shown({"b"});
  EXPECT_EQ(refusal(lengths), "Add: its rows are not as long as those of the others");
}

}  // namespace
}  // namespace gradrack::conformance
