// SPDX-License-Identifier: Apache-2.0
// Attention and its gradient on cpu against the formulas in double, on shapes that cross its
// blocks; the same bits each time; memory that grows with the length alone.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/attention_shape.hpp"
#include "backends/cpu/kernels.hpp"
#include "sdk/conformance/tolerance.hpp"
#include "tests/conformance/op_run.hpp"

namespace gradrack::conformance {
namespace {

constexpr uint64_t kSeed = 5;

enum class Mask { kNone, kBool, kFloat };

struct Sizes {
  int64_t batch, heads, kv, queries, keys, d, e;
  bool causal = false, packed = false;
  Mask mask = Mask::kNone;
  double softcap = 0;
};

std::vector<int64_t> dims(const Sizes& s, int64_t heads, int64_t length, int64_t size) {
  if (s.packed) return {s.batch, length, heads * size};
  return {s.batch, heads, length, size};
}

OpCase attention_case(const Sizes& s, gr_dtype_t dtype, bool gradient) {
  OpCase c;
  c.op = gradient ? "gradrack.AttentionGrad" : "Attention";
  if (gradient) c.inputs.push_back(f(dims(s, s.heads, s.queries, s.e)));
  c.inputs.push_back(f(dims(s, s.heads, s.queries, s.d)));
  c.inputs.push_back(f(dims(s, s.kv, s.keys, s.d)));
  c.inputs.push_back(f(dims(s, s.kv, s.keys, s.e)));
  if (s.mask == Mask::kBool) c.inputs.push_back(mask({s.batch, 1, s.queries, s.keys}));
  if (s.mask == Mask::kFloat) c.inputs.push_back(f({s.heads, 1, s.keys}));
  c.attrs = {{"is_causal", int64_t{s.causal}}, {"softcap", s.softcap}};
  if (s.packed) {
    c.attrs.set("q_num_heads", s.heads);
    c.attrs.set("kv_num_heads", s.kv);
  }
  c.outputs = gradient ? 3 : 1;
  return retype(std::move(c), dtype);
}

/// Attention written out, one query after another.
class Formula {
 public:
  Formula(const Sizes& sizes, const OpCase& c) : s_(sizes), in_(draw_contents(c, kSeed)) {
    const size_t q = c.op == "Attention" ? 0 : 1;
    gy_ = q == 1 ? &in_[0] : nullptr;
    q_ = &in_[q];
    k_ = &in_[q + 1];
    v_ = &in_[q + 2];
    mask_ = s_.mask == Mask::kNone ? nullptr : &in_[q + 3];
    y.resize(static_cast<size_t>(s_.batch * s_.heads * s_.queries * s_.e));
    gq.resize(q_->size());
    gk.resize(k_->size());
    gv.resize(v_->size());
    for (int64_t b = 0; b < s_.batch; ++b) {
      for (int64_t h = 0; h < s_.heads; ++h) {
        for (int64_t t = 0; t < s_.queries; ++t) query(b, h, t);
      }
    }
  }

  std::vector<double> y, gq, gk, gv;

 private:
  size_t at(int64_t heads, int64_t length, int64_t size, int64_t b, int64_t h, int64_t t) const {
    return static_cast<size_t>(s_.packed ? ((b * length + t) * heads + h) * size
                                         : ((b * heads + h) * length + t) * size);
  }
  double added(int64_t b, int64_t h, int64_t t, int64_t s) const {
    if (s_.causal && s > t) return -std::numeric_limits<double>::infinity();
    if (mask_ == nullptr) return 0;
    if (s_.mask == Mask::kFloat) return (*mask_)[static_cast<size_t>(h * s_.keys + s)];
    const bool seen = (*mask_)[static_cast<size_t>((b * s_.queries + t) * s_.keys + s)] != 0;
    return seen ? 0 : -std::numeric_limits<double>::infinity();
  }

  void query(int64_t b, int64_t h, int64_t t) {
    const int64_t kv = h / (s_.heads / s_.kv);
    const double scale = 1 / std::sqrt(static_cast<double>(s_.d));
    const double* q = q_->data() + at(s_.heads, s_.queries, s_.d, b, h, t);
    const auto keys = static_cast<size_t>(s_.keys);
    std::vector<double> p(keys), tanh(keys);
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t s = 0; s < s_.keys; ++s) {
      const double* k = k_->data() + at(s_.kv, s_.keys, s_.d, b, kv, s);
      double score = 0;
      for (int64_t i = 0; i < s_.d; ++i) score += q[i] * k[i] * scale;
      const auto n = static_cast<size_t>(s);
      if (s_.softcap != 0) {
        tanh[n] = std::tanh(score / s_.softcap);
        score = s_.softcap * tanh[n];
      }
      p[n] = score + added(b, h, t, s);
      most = std::max(most, p[n]);
    }
    for (double& x : p) sum += x = std::isinf(most) ? 0 : std::exp(x - most);
    for (double& x : p) x /= sum > 0 ? sum : 1;
    const size_t y_at = at(s_.heads, s_.queries, s_.e, b, h, t);
    for (int64_t s = 0; s < s_.keys; ++s) {
      const double* v = v_->data() + at(s_.kv, s_.keys, s_.e, b, kv, s);
      for (int64_t i = 0; i < s_.e; ++i) {
        y[y_at + static_cast<size_t>(i)] += p[static_cast<size_t>(s)] * v[i];
      }
    }
    if (gy_ != nullptr) gradients(b, h, t, kv, scale, p, tanh);
  }

  void gradients(int64_t b, int64_t h, int64_t t, int64_t kv, double scale,
                 const std::vector<double>& p, const std::vector<double>& tanh) {
    const size_t q_at = at(s_.heads, s_.queries, s_.d, b, h, t);
    const double* gy = gy_->data() + at(s_.heads, s_.queries, s_.e, b, h, t);
    std::vector<double> gp(p.size());
    double dot = 0;
    for (int64_t s = 0; s < s_.keys; ++s) {
      const size_t n = static_cast<size_t>(s), v = at(s_.kv, s_.keys, s_.e, b, kv, s);
      for (size_t i = 0; i < static_cast<size_t>(s_.e); ++i) {
        gp[n] += gy[i] * (*v_)[v + i];
        gv[v + i] += p[n] * gy[i];
      }
      dot += p[n] * gp[n];
    }
    for (int64_t s = 0; s < s_.keys; ++s) {
      const size_t n = static_cast<size_t>(s), k = at(s_.kv, s_.keys, s_.d, b, kv, s);
      double gs = scale * p[n] * (gp[n] - dot);
      if (s_.softcap != 0) gs *= 1 - tanh[n] * tanh[n];
      for (size_t i = 0; i < static_cast<size_t>(s_.d); ++i) {
        gq[q_at + i] += gs * (*k_)[k + i];
        gk[k + i] += gs * (*q_)[q_at + i];
      }
    }
  }

  Sizes s_;
  std::vector<std::vector<double>> in_;
  const std::vector<double>*gy_, *q_, *k_, *v_, *mask_;
};

double largest(const std::vector<double>& x) {
  double most = 0;
  for (const double v : x) most = std::max(most, std::fabs(v));
  return most;
}

void expect_near(const OpOutput& got, const std::vector<double>& want, const OpCase& c) {
  ASSERT_EQ(got.values.size(), want.size());
  const double scale = largest(want);
  // float32: the table's. bfloat16: weights and the scores' gradients are rounded to 8 bits before
  // their sums, the result once more.
  const double most =
      got.dtype == GR_FLOAT32 ? tolerance(c.op, GR_FLOAT32) * std::max(1.0, scale) : 0x1p-7 * scale;
  for (size_t k = 0; k < want.size(); ++k) {
    const double near = got.dtype == GR_FLOAT32 ? most : most + 0x1p-8 * std::fabs(want[k]);
    ASSERT_LE(std::fabs(got.values[k] - want[k]), near)
        << "element " << k << ": got " << got.values[k] << ", formula " << want[k];
  }
}

host::KernelTable table_of(const cpu::Context& context) {
  host::KernelTable table;
  cpu::add_all_kernels(table, context);
  return table;
}

const host::KernelTable& one_thread() {
  static const cpu::Context context(1);
  static const host::KernelTable table = table_of(context);
  return table;
}

const host::KernelTable& three_threads() {
  static const cpu::Context context(3);
  static const host::KernelTable table = table_of(context);
  return table;
}

void check(const Sizes& s, gr_dtype_t dtype) {
  for (const bool gradient : {false, true}) {
    const OpCase c = attention_case(s, dtype, gradient);
    SCOPED_TRACE(c.text() + (s.causal ? " causal" : ""));
    const Formula want(s, c);
    const OpAnswer got = run_case(c, one_thread(), kSeed);
    ASSERT_EQ(got.refused, "");
    ASSERT_EQ(got.error.code, GR_OK) << got.error.message;
    const std::vector<const std::vector<double>*> all{gradient ? &want.gq : &want.y, &want.gk,
                                                      &want.gv};
    for (size_t k = 0; k < got.outputs.size(); ++k) {
      SCOPED_TRACE("output " + std::to_string(k));
      expect_near(got.outputs[k], *all[k], c);
      if (::testing::Test::HasFatalFailure()) return;
    }
    // Threads share heads, never a sum: the same bits.
    const OpAnswer again = run_case(c, three_threads(), kSeed);
    for (size_t k = 0; k < got.outputs.size(); ++k) {
      ASSERT_EQ(got.outputs[k].values, again.outputs[k].values) << "output " << k;
    }
  }
}

std::vector<Sizes> shapes() {
  std::vector<Sizes> out;
  for (const int64_t length : {1, 2, 15, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200}) {
    out.push_back({1, 2, 2, length, length, 32, 32, true});
  }
  for (const int64_t size : {1, 8, 16, 24, 31, 33, 64, 80, 128}) {
    out.push_back({1, 2, 1, 70, 70, size, size, true});
    out.push_back({1, 1, 1, 33, 47, size, size + 3});
  }
  out.push_back({2, 4, 2, 65, 65, 24, 40, true, true});  // groups of queries, packed heads
  out.push_back({2, 6, 6, 96, 96, 64, 64, true, true});
  out.push_back({1, 4, 1, 40, 100, 16, 16, false, true});
  out.push_back({1, 2, 2, 130, 60, 32, 32, true});  // more queries than keys, and the reverse
  out.push_back({1, 2, 2, 60, 130, 32, 32, true});
  out.push_back({1, 2, 1, 300, 300, 32, 32, true});
  return out;
}

void check_all(gr_dtype_t dtype) {
  for (const Sizes& s : shapes()) {
    check(s, dtype);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(CpuAttention, Float32IsTheFormula) { check_all(GR_FLOAT32); }
TEST(CpuAttention, Bfloat16IsTheFormula) { check_all(GR_BFLOAT16); }

TEST(CpuAttention, MasksAndSoftcapAreTheFormula) {
  for (const gr_dtype_t dtype : {GR_FLOAT32, GR_BFLOAT16}) {
    for (const bool causal : {false, true}) {
      for (const Mask mask : {Mask::kNone, Mask::kBool, Mask::kFloat}) {
        for (const double softcap : {0.0, 1.5}) {
          check({2, 4, 2, 65, 65, 24, 24, causal, true, mask, softcap}, dtype);
          check({2, 4, 2, 40, 70, 16, 8, causal, false, mask, softcap}, dtype);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

/// A case in which one number of an input is another.
OpCase filled(const OpCase& c, size_t input, double number) {
  OpCase out = c;
  out.inputs[input].fill = Fill::kNumber;
  out.inputs[input].number = number;
  return out;
}

TEST(CpuAttention, NaNInQueriesGivesNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const gr_dtype_t dtype : {GR_FLOAT32, GR_BFLOAT16}) {
    const Sizes s{1, 2, 2, 70, 70, 32, 32, true};
    for (const size_t input : {0, 1, 2}) {
      const OpAnswer y =
          run_case(filled(attention_case(s, dtype, false), input, nan), one_thread(), kSeed);
      for (const double v : y.outputs[0].values) ASSERT_TRUE(std::isnan(v)) << "input " << input;
    }
    const OpAnswer g =
        run_case(filled(attention_case(s, dtype, true), 0, nan), one_thread(), kSeed);
    for (const OpOutput& output : g.outputs) {
      for (const double v : output.values) ASSERT_TRUE(std::isnan(v));
    }
  }
}

TEST(CpuAttention, QueriesThatSeeNothingGiveZeros) {
  for (const gr_dtype_t dtype : {GR_FLOAT32, GR_BFLOAT16}) {
    const Sizes s{1, 2, 2, 40, 40, 16, 16, true, false, Mask::kBool};
    for (const bool gradient : {false, true}) {
      const OpCase c = attention_case(s, dtype, gradient);
      const OpAnswer got = run_case(filled(c, c.inputs.size() - 1, 0), one_thread(), kSeed);
      ASSERT_EQ(got.error.code, GR_OK) << got.error.message;
      for (const OpOutput& output : got.outputs) {
        for (const double v : output.values) ASSERT_EQ(v, 0);
      }
    }
  }
}

int64_t workspace_bytes(const Sizes& s, gr_dtype_t dtype, bool gradient) {
  const host::NodeSpec node = case_node(attention_case(s, dtype, gradient));
  std::string reason;
  const host::KernelEntry* entry = one_thread().match(node, &reason);
  EXPECT_NE(entry, nullptr) << reason;
  return entry->make(node)->workspace_bytes();
}

TEST(CpuAttention, WorkspaceGrowsWithTheLengthNotItsSquare) {
  for (const gr_dtype_t dtype : {GR_FLOAT32, GR_BFLOAT16}) {
    for (const bool gradient : {false, true}) {
      const auto bytes = [&](int64_t length) {
        return workspace_bytes({1, 2, 2, length, length, 64, 64, true}, dtype, gradient);
      };
      EXPECT_LE(bytes(16384), 9 * bytes(2048));
      EXPECT_LE(bytes(16384), 16384 * 64 * 64) << "beside 1 GiB of scores";
    }
  }
}

}  // namespace
}  // namespace gradrack::conformance
