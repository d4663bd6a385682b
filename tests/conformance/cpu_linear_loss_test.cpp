// SPDX-License-Identifier: Apache-2.0
// LinearLoss against its formulas in double.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <tuple>
#include <vector>

#include "backends/cpu/linear_loss.hpp"
#include "gradrack/bfloat16.hpp"

namespace gradrack::conformance {
namespace {

using cpu::LinearLoss;
using cpu::LinearLossData;
using cpu::LinearLossShape;

const cpu::Context& context() {
  static const cpu::Context instance(2);
  return instance;
}

struct Storage {
  explicit Storage(size_t bytes) : bytes_(bytes + 64) {}
  void* data() {
    const auto at = reinterpret_cast<uintptr_t>(bytes_.data());
    return bytes_.data() + (64 - at % 64) % 64;
  }
  std::vector<char> bytes_;
};

/// A matrix in the dtype asked for, and its values in double.
struct Matrix {
  Matrix(int64_t count, bool bfloat16)
      : narrow(bfloat16), storage(count * (bfloat16 ? 2 : 4)), values(count) {}
  void fill(std::mt19937& random, double scale) {
    std::normal_distribution<double> normal(0, scale);
    for (size_t k = 0; k < values.size(); ++k) {
      const auto x = static_cast<float>(normal(random));
      if (narrow) {
        auto* to = static_cast<uint16_t*>(storage.data());
        to[k] = sdk::to_bfloat16(x);
        values[k] = sdk::from_bfloat16(to[k]);
      } else {
        static_cast<float*>(storage.data())[k] = x;
        values[k] = static_cast<double>(x);
      }
    }
  }
  double stored(size_t k) {
    if (narrow) return sdk::from_bfloat16(static_cast<uint16_t*>(storage.data())[k]);
    return static_cast<double>(static_cast<float*>(storage.data())[k]);
  }
  bool narrow;
  Storage storage;
  std::vector<double> values;
};

struct Answer {
  double loss = 0;
  std::vector<double> grad_x, grad_w;
};

Answer formulas(const LinearLossShape& s, const Matrix& x, const Matrix& w,
                const std::vector<int32_t>& labels, double scale) {
  Answer out;
  out.grad_x.assign(x.values.size(), 0);
  out.grad_w.assign(w.values.size(), 0);
  const auto weight = [&](int64_t d, int64_t v) {
    return static_cast<size_t>(s.by_class ? v * s.inner + d : d * s.classes + v);
  };
  std::vector<double> scores(s.classes);
  for (int64_t row = 0; row < s.rows; ++row) {
    if (labels[row] < 0) continue;
    double largest = -1e300, sum = 0;
    for (int64_t v = 0; v < s.classes; ++v) {
      scores[v] = 0;
      for (int64_t d = 0; d < s.inner; ++d) {
        scores[v] += x.values[row * s.inner + d] * w.values[weight(d, v)];
      }
      largest = std::max(largest, scores[v]);
    }
    for (const double score : scores) sum += std::exp(score - largest);
    out.loss += largest + std::log(sum) - scores[labels[row]];
    for (int64_t v = 0; v < s.classes; ++v) {
      const double hit = v == labels[row] ? 1.0 : 0.0;
      const double grade = scale * (std::exp(scores[v] - largest) / sum - hit);
      for (int64_t d = 0; d < s.inner; ++d) {
        out.grad_x[row * s.inner + d] += grade * w.values[weight(d, v)];
        out.grad_w[weight(d, v)] += grade * x.values[row * s.inner + d];
      }
    }
  }
  return out;
}

double worst(Matrix& got, const std::vector<double>& want) {
  double most = 0, off = 0;
  for (const double x : want) most = std::max(most, std::abs(x));
  for (size_t k = 0; k < want.size(); ++k) off = std::max(off, std::abs(got.stored(k) - want[k]));
  return off / std::max(most, 1e-30);
}

void expect_formulas(const LinearLossShape& shape) {
  std::mt19937 random(7);
  Matrix x(shape.rows * shape.inner, shape.x_narrow);
  Matrix w(shape.inner * shape.classes, shape.weight_narrow);
  x.fill(random, 1.0);
  w.fill(random, 0.3);
  std::vector<int32_t> labels(shape.rows);
  for (int32_t& label : labels) {
    label = random() % 5 == 0 ? -1 : static_cast<int32_t>(random() % shape.classes);
  }
  const LinearLoss loss(shape, context());
  Storage workspace(loss.workspace_bytes());
  Matrix grad_x(shape.rows * shape.inner, shape.grad_x_narrow);
  Matrix grad_w(shape.inner * shape.classes, shape.grad_w_narrow);
  const LinearLossData data{x.storage.data(),      w.storage.data(),     labels.data(), 0.25f,
                            grad_x.storage.data(), grad_w.storage.data()};
  const double got = loss.run(data, workspace.data());
  const Answer want = formulas(shape, x, w, labels, 0.25);
  const double limit = shape.narrow ? 2e-2 : 1e-5;
  EXPECT_NEAR(got, want.loss, limit * std::abs(want.loss) + 1e-6);
  if (!shape.gradients) return;
  EXPECT_LT(worst(grad_x, want.grad_x), limit);
  EXPECT_LT(worst(grad_w, want.grad_w), limit);
  const Storage first_x = grad_x.storage, first_w = grad_w.storage;
  EXPECT_EQ(loss.run(data, workspace.data()), got);
  EXPECT_EQ(first_x.bytes_, grad_x.storage.bytes_);
  EXPECT_EQ(first_w.bytes_, grad_w.storage.bytes_);
}

TEST(CpuLinearLoss, GivesWhatItsFormulasSay) {
  const std::tuple<int, int, int> sizes[] = {{1, 1, 1},      {3, 5, 2},      {33, 16, 84},
                                             {70, 40, 1000}, {17, 24, 3001}, {64, 8, 512}};
  for (const auto& [rows, inner, classes] : sizes) {
    for (const bool narrow : {false, true}) {
      for (const bool by_class : {true, false}) {
        SCOPED_TRACE(::testing::Message()
                     << rows << " rows, " << inner << " wide, " << classes << " classes"
                     << (narrow ? ", bfloat16" : "") << (by_class ? "" : ", weight by input"));
        LinearLossShape shape{rows, inner, classes, narrow, narrow, narrow, by_class};
        expect_formulas(shape);
        shape.grad_x_narrow = shape.grad_w_narrow = narrow;
        shape.x_narrow = shape.weight_narrow = false;
        expect_formulas(shape);
        shape.gradients = false;
        expect_formulas(shape);
      }
    }
  }
}

// More scores than are kept: those of the later slabs are made a second time.
TEST(CpuLinearLoss, MakesScoresAgainThatAreNotKept) {
  expect_formulas({1200, 4, 9000, false, false, false, true});
  expect_formulas({1200, 4, 9000, false, false, false, false});
  expect_formulas({600, 4, 9000, true, true, true, true});
}

TEST(CpuLinearLoss, IgnoredRowsHaveNoGradientWhateverTheirScores) {
  const LinearLossShape shape{2, 2, 3};
  float x[] = {1, 2, INFINITY, NAN}, w[] = {1, 0, 0, 1, 1, 1};
  const int32_t labels[] = {2, -1};
  const LinearLoss loss(shape, context());
  Storage workspace(loss.workspace_bytes());
  float grad_x[4], grad_w[6];
  const double got = loss.run({x, w, labels, 1.0f, grad_x, grad_w}, workspace.data());
  EXPECT_TRUE(std::isfinite(got));
  EXPECT_EQ(grad_x[2], 0.0f);
  EXPECT_EQ(grad_x[3], 0.0f);
}

}  // namespace
}  // namespace gradrack::conformance
