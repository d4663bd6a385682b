// SPDX-License-Identifier: Apache-2.0
// compare MINE.so REFERENCE.so: one node after the other on both, and the largest difference of
// each.
//
// What is done on the first days of a backend: a table of cases, a line for each, exit 1 when one
// is beyond its tolerance. gradrack-conform does it thoroughly later. GRADRACK_SEED repeats a run.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "rig.hpp"

namespace {

using rig::Attr;
using rig::Case;
using rig::Tensor;
using Dims = std::vector<int64_t>;

std::mt19937_64& random_numbers() {
  const char* seed = std::getenv("GRADRACK_SEED");
  static std::mt19937_64 numbers(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1);
  return numbers;
}

int64_t count_of(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

Tensor reals(Dims dims, gr_dtype_t dtype = GR_FLOAT32) {
  Tensor t{dtype, dims, {}, false};
  std::normal_distribution<double> normal;
  for (int64_t k = 0; k < count_of(dims); ++k) {
    t.values.push_back(static_cast<float>(normal(random_numbers())));
  }
  return t;
}
Tensor positive(Dims dims, gr_dtype_t dtype = GR_FLOAT32) {
  Tensor t = reals(dims, dtype);
  for (double& v : t.values) v = static_cast<float>(std::fabs(v) + 0.1);
  return t;
}
Tensor below(Dims dims, int64_t limit, gr_dtype_t dtype = GR_INT64) {
  Tensor t{dtype, dims, {}, false};
  for (int64_t k = 0; k < count_of(dims); ++k) {
    t.values.push_back(static_cast<double>(random_numbers()() % static_cast<uint64_t>(limit)));
  }
  return t;
}
Tensor known(std::vector<double> values) {
  return {GR_INT64, {static_cast<int64_t>(values.size())}, std::move(values), true};
}
Tensor out(Dims dims, gr_dtype_t dtype = GR_FLOAT32) { return {dtype, std::move(dims), {}, false}; }
Attr number(const char* name, int64_t i) { return {name, i, 0, "", {}, GR_ATTR_INT}; }
Attr real(const char* name, double f) { return {name, 0, f, "", {}, GR_ATTR_FLOAT}; }
Attr word(const char* name, const char* s) { return {name, 0, 0, s, {}, GR_ATTR_STRING}; }
Attr list(const char* name, Dims ints) { return {name, 0, 0, "", std::move(ints), GR_ATTR_INTS}; }

void add_elementwise(std::vector<Case>& cases) {
  for (const gr_dtype_t dtype : {GR_FLOAT32, GR_FLOAT64}) {
    for (const char* op :
         {"Neg", "Abs", "Sign", "Relu", "Exp", "Erf", "Tanh", "Floor", "Sigmoid"}) {
      cases.push_back({op, {reals({3, 257}, dtype)}, {out({3, 257}, dtype)}, {}});
    }
    for (const char* op : {"Sqrt", "Log"}) {
      cases.push_back({op, {positive({3, 257}, dtype)}, {out({3, 257}, dtype)}, {}});
    }
    for (const char* op : {"Add", "Sub", "Mul", "Max", "Min"}) {
      cases.push_back(
          {op, {reals({4, 1, 5}, dtype), reals({3, 1}, dtype)}, {out({4, 3, 5}, dtype)}, {}});
      cases.push_back({op, {reals({0, 5}, dtype), reals({5}, dtype)}, {out({0, 5}, dtype)}, {}});
    }
    for (const char* op : {"Div", "Pow"}) {
      cases.push_back(
          {op, {positive({7, 9}, dtype), positive({9}, dtype)}, {out({7, 9}, dtype)}, {}});
    }
    for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
      cases.push_back({op, {reals({7, 9}, dtype), reals({9}, dtype)}, {out({7, 9}, GR_BOOL)}, {}});
    }
    for (const gr_dtype_t to : {GR_FLOAT32, GR_FLOAT64, GR_INT32, GR_INT64, GR_BOOL, GR_INT8}) {
      cases.push_back({"Cast", {reals({130}, dtype)}, {out({130}, to)}, {number("to", to)}});
      cases.push_back({"Cast", {below({130}, 99, GR_INT32)}, {out({130}, to)}, {number("to", to)}});
    }
    cases.push_back({"Where",
                     {below({4, 1, 5}, 2, GR_BOOL), reals({3, 1}, dtype), reals({5}, dtype)},
                     {out({4, 3, 5}, dtype)},
                     {}});
  }
  for (const char* op : {"And", "Or", "Xor"}) {
    cases.push_back(
        {op, {below({33}, 2, GR_BOOL), below({33}, 2, GR_BOOL)}, {out({33}, GR_BOOL)}, {}});
  }
  for (const char* op : {"Add", "Sub", "Mul", "Max", "Div"}) {
    Tensor divisor = below({5}, 9);
    for (double& v : divisor.values) v -= 10;
    cases.push_back({op, {below({4, 5}, 100), divisor}, {out({4, 5}, GR_INT64)}, {}});
  }
}

void add_moves(std::vector<Case>& cases) {
  cases.push_back(
      {"Transpose", {reals({2, 3, 5, 7})}, {out({2, 5, 3, 7})}, {list("perm", {0, 2, 1, 3})}});
  cases.push_back({"Transpose", {reals({33, 65})}, {out({65, 33})}, {list("perm", {1, 0})}});
  cases.push_back({"Expand", {reals({3, 1}), known({2, 3, 4})}, {out({2, 3, 4})}, {}});
  cases.push_back({"gradrack.Copy", {reals({3, 5})}, {out({3, 5})}, {}});
  cases.push_back({"Slice",
                   {reals({6, 10}), known({4, 1}), known({-100, 9}), known({0, 1}), known({-2, 3})},
                   {out({3, 3})},
                   {}});
  cases.push_back(
      {"gradrack.SliceGrad",
       {reals({2, 3}), known({6, 10}), known({1, 1}), known({5, 9}), known({0, 1}), known({2, 3})},
       {out({6, 10})},
       {}});
  cases.push_back({"Pad", {reals({2, 3}), known({1, 0, 2, 3})}, {out({5, 6})}, {}});
  cases.push_back(
      {"Concat", {reals({2, 3, 4}), reals({2, 5, 4})}, {out({2, 8, 4})}, {number("axis", 1)}});
  cases.push_back({"Trilu", {reals({2, 5, 7})}, {out({2, 5, 7})}, {number("upper", 0)}});
  cases.push_back({"gradrack.CausalMask", {reals({2, 5, 7})}, {out({2, 5, 7})}, {}});
  cases.push_back(
      {"Gather", {reals({9, 4}), below({2, 3}, 9)}, {out({2, 3, 4})}, {number("axis", 0)}});
  cases.push_back({"gradrack.GatherGrad",
                   {reals({20, 4}), below({20}, 9), known({9, 4})},
                   {out({9, 4})},
                   {number("axis", 0)}});
  cases.push_back(
      {"GatherElements", {reals({5, 6}), below({5, 2}, 6)}, {out({5, 2})}, {number("axis", 1)}});
  for (const char* how : {"none", "add"}) {
    cases.push_back({"ScatterElements",
                     {reals({5, 6}), below({4, 6}, 5), reals({4, 6})},
                     {out({5, 6})},
                     {number("axis", 0), word("reduction", how)}});
  }
  cases.push_back({"gradrack.Dropout",
                   {reals({4, 33}), {GR_INT64, {3}, {1234567, 5, 1}, false}},
                   {out({4, 33}), out({4, 33}, GR_BOOL)},
                   {real("ratio", 0.3), number("stream", 7)}});
}

void add_reductions(std::vector<Case>& cases) {
  for (const char* op : {"ReduceSum", "ReduceMax"}) {
    cases.push_back({op, {reals({3, 4, 5}), known({0, 2})}, {out({4})}, {number("keepdims", 0)}});
    cases.push_back({op, {reals({100, 1000}), known({0, 1})}, {out({})}, {number("keepdims", 0)}});
    cases.push_back({op, {reals({3, 0}), known({1})}, {out({3})}, {number("keepdims", 0)}});
    cases.push_back({op,
                     {reals({2, 3000, 5}, GR_FLOAT64), known({1})},
                     {out({2, 5}, GR_FLOAT64)},
                     {number("keepdims", 0)}});
    cases.push_back(
        {op, {below({7, 9}, 50), known({1})}, {out({7}, GR_INT64)}, {number("keepdims", 0)}});
  }
  cases.push_back({"ArgMax",
                   {below({6, 9, 2}, 5, GR_INT32)},
                   {out({6, 2}, GR_INT64)},
                   {number("axis", 1), number("keepdims", 0)}});
}

void add_products(std::vector<Case>& cases) {
  for (const gr_dtype_t t : {GR_FLOAT32, GR_FLOAT64}) {
    for (int64_t ta : {0, 1}) {
      for (int64_t tb : {0, 1}) {
        const Dims a = ta ? Dims{2, 17, 33} : Dims{2, 33, 17};
        const Dims b = tb ? Dims{9, 17} : Dims{17, 9};
        cases.push_back({"gradrack.FusedMatMul",
                         {reals(a, t), reals(b, t)},
                         {out({2, 33, 9}, t)},
                         {number("transA", ta), number("transB", tb), real("alpha", 0.5)}});
      }
    }
  }
  cases.push_back({"gradrack.FusedMatMul",
                   {reals({600, 500}), reals({500, 700})},
                   {out({600, 700})},
                   {real("alpha", 1)}});
  cases.push_back({"gradrack.FusedMatMul",
                   {reals({3, 1, 20, 8}), reals({4, 8, 5})},
                   {out({3, 4, 20, 5})},
                   {real("alpha", 1)}});
  cases.push_back(
      {"gradrack.FusedMatMul", {reals({4, 0}), reals({0, 5})}, {out({4, 5})}, {real("alpha", 1)}});
}

void add_windows(std::vector<Case>& cases) {
  const std::vector<Attr> two = {list("strides", {2, 1}), list("pads", {1, 0, 2, 1}),
                                 list("dilations", {1, 2}), number("group", 2),
                                 list("kernel_shape", {3, 2})};
  const Tensor x = reals({2, 4, 9, 8}), w = reals({6, 2, 3, 2}), y = reals({2, 6, 5, 7});
  cases.push_back({"Conv", {x, w, reals({6})}, {out(y.dims)}, two});
  cases.push_back({"gradrack.ConvInputGrad", {y, w, known({2, 4, 9, 8})}, {out(x.dims)}, two});
  cases.push_back({"gradrack.ConvWeightGrad", {y, x, known({6, 2, 3, 2})}, {out(w.dims)}, two});
  const Dims pooled = {2, 4, 5, 4};
  for (int64_t padding : {0, 1}) {
    const std::vector<Attr> pool = {list("kernel_shape", {3, 3}), list("strides", {2, 2}),
                                    list("pads", {1, 1, 1, 1}),
                                    number("count_include_pad", padding)};
    cases.push_back({"MaxPool", {x}, {out(pooled)}, pool});
    cases.push_back({"gradrack.MaxPoolGrad", {reals(pooled), x}, {out(x.dims)}, pool});
    cases.push_back({"AveragePool", {x}, {out(pooled)}, pool});
    cases.push_back(
        {"gradrack.AveragePoolGrad", {reals(pooled), known({2, 4, 9, 8})}, {out(x.dims)}, pool});
  }
}

/// What must fail: an index out of range, a division of integers by zero.
std::vector<Case> failing_cases() {
  Tensor indices = below({2, 3}, 9), divisor = below({5}, 9);
  indices.values[4] = -10;
  for (double& v : divisor.values) v += 1;
  divisor.values[3] = 0;
  return {{"Gather", {reals({9, 4}), indices}, {out({2, 3, 4})}, {number("axis", 0)}},
          {"gradrack.GatherGrad",
           {reals({2, 3, 4}), indices, known({9, 4})},
           {out({9, 4})},
           {number("axis", 0)}},
          {"Div", {below({4, 5}, 100), divisor}, {out({4, 5}, GR_INT64)}, {}}};
}

/// Largest |got - want| over the largest |want|, and at least absolutely.
double distance(const rig::Answer& got, const rig::Answer& want) {
  double worst = 0;
  for (size_t k = 0; k < want.values.size(); ++k) {
    double scale = 1;
    for (const double v : want.values[k]) {
      if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
    }
    for (size_t i = 0; i < want.values[k].size(); ++i) {
      const double x = got.values[k][i], y = want.values[k][i];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double d = std::fabs(x - y) / scale;
      worst = std::max(worst, std::isnan(d) ? INFINITY : d);
    }
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: compare MINE.so REFERENCE.so\n");
    return 2;
  }
  rig::Backend mine(argv[1]), reference(argv[2]);
  if (!mine.ok() || !reference.ok()) {
    std::fprintf(stderr, "%s\n", (!mine.ok() ? mine : reference).message().c_str());
    return 3;
  }
  std::vector<Case> cases;
  add_elementwise(cases);
  add_moves(cases);
  add_reductions(cases);
  add_products(cases);
  add_windows(cases);
  int bad = 0;
  for (const Case& c : cases) {
    const rig::Answer got = mine.run(c), want = reference.run(c);
    const bool ran = got.status == GR_OK && want.status == GR_OK;
    const double d = ran ? distance(got, want) : INFINITY;
    const double allowed = 2e-6;
    if (!(d <= allowed)) ++bad;
    std::printf("%-28s %-9.2g %s %s\n", c.op.c_str(), d, d <= allowed ? "ok" : "BAD",
                ran ? "" : (got.message + want.message).c_str());
  }
  for (const Case& c : failing_cases()) {
    const rig::Answer got = mine.run(c), want = reference.run(c);
    const bool same =
        got.status != GR_OK && got.status == want.status && got.message == want.message;
    if (!same) ++bad;
    std::printf("%-28s %s error: %s\n", c.op.c_str(), same ? "same" : "BAD", got.message.c_str());
  }
  std::printf("%zu cases, %d bad\n", cases.size(), bad);
  return bad == 0 ? 0 : 1;
}
