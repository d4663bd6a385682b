// SPDX-License-Identifier: Apache-2.0
// Every row of the table, in float64 on the reference backend: gradients against central
// differences, decompositions against direct kernels; and no differentiable operator without a row.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/autodiff/autodiff.hpp"
#include "core/base/text.hpp"
#include "core/graph/emitter.hpp"
#include "tests/grad/eager.hpp"
#include "tests/grad/grad_case.hpp"

namespace gradrack::test {

namespace {

Eager& reference() {
  static Eager* const eager = [] {
    auto made = Eager::open("reference");
    if (!made.ok()) std::fprintf(stderr, "%s\n", made.status().message().c_str());
    GR_CHECK(made.ok());
    return made->release();
  }();
  return *eager;
}

/// A row as a graph: objective = sum over outputs of weights * output.
struct Built {
  Graph graph;
  std::map<std::string, HostTensor> sources;
  std::vector<ValueId> wrt;        // sources whose gradient is checked
  std::vector<std::string> names;  // theirs
};

std::string input_name(size_t k) { return "in" + std::to_string(k); }

Result<ValueId> declare(Built& built, const CaseInput& input, size_t k) {
  if (input.missing) return static_cast<ValueId>(GR_NO_VALUE);
  const HostTensor& content = input.content;
  const Type type{content.dtype, Shape(content.dims.begin(), content.dims.end())};
  if (input.constant) {
    ConstantData data;
    for (const double x : content.numbers()) {
      if (is_real(content.dtype)) {
        data.reals.push_back(x);
      } else {
        data.ints.push_back(static_cast<int64_t>(x));
      }
    }
    return built.graph.add_constant(type, std::move(data));
  }
  Value value;
  value.source = input.differentiable ? Source::kParameter : Source::kInput;
  value.type = type;
  value.name = input_name(k);
  built.sources[value.name] = content;
  GR_ASSIGN(const ValueId id, built.graph.add_source(std::move(value)));
  if (input.differentiable) {
    built.wrt.push_back(id);
    built.names.push_back(input_name(k));
  }
  return id;
}

/// Fixed weights that differ from place to place, so that no gradient cancels by symmetry.
ValueId weighted_sum(Built& built, Emitter& e, ValueId y, size_t k) {
  HostTensor weights(GR_FLOAT64, {});
  for (const Dim& dim : e.shape(y)) weights.dims.push_back(dim.number());
  weights.bytes.resize(static_cast<size_t>(weights.count() * 8));
  for (int64_t n = 0; n < weights.count(); ++n) {
    weights.set_number(n, std::sin(1.0 + static_cast<double>(n) * 1.7 + static_cast<double>(k)));
  }
  Value value;
  value.source = Source::kInput;
  value.name = "weights" + std::to_string(k);
  value.type = e.type(y);
  built.sources[value.name] = weights;
  auto id = e.graph().add_source(std::move(value));
  if (!id.ok()) e.fail(id.status());
  if (!id.ok()) return GR_NO_VALUE;
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < e.rank(y); ++axis) axes.push_back(static_cast<int64_t>(axis));
  return e.reduce_sum(e.mul(y, *id), axes, false);
}

Result<Built> build(const GradCase& row) {
  Built built;
  std::vector<ValueId> inputs;
  for (size_t k = 0; k < row.inputs.size(); ++k) {
    GR_ASSIGN(const ValueId id, declare(built, row.inputs[k], k));
    inputs.push_back(id);
  }
  GR_ASSIGN(const std::vector<ValueId> outputs,
            built.graph.add_node(row.domain, row.op, inputs, row.attrs, row.outputs));
  Emitter e(built.graph);
  ValueId total = e.constant(GR_FLOAT64, 0.0);
  for (size_t k = 0; k < outputs.size(); ++k) {
    GR_TRY(built.graph.add_output("out" + std::to_string(k), outputs[k]));
    if (e.type(outputs[k]).dtype == GR_FLOAT64) {
      total = e.add(total, weighted_sum(built, e, outputs[k], k));
    }
  }
  if (!e.status().ok()) return e.status();
  GR_TRY(built.graph.add_objective("objective", total, e.constant(GR_FLOAT64, 1.0)));
  return built;
}

Result<double> objective(const Built& built, const std::map<std::string, HostTensor>& sources) {
  GR_ASSIGN(const auto values,
            reference().run(built.graph, {}, sources, {built.graph.objectives()[0].sum}));
  return values[0].number(0);
}

/// d objective / d source by central differences, with one Richardson step: error O(h^4).
Result<std::vector<double>> differences(const Built& built, const std::string& name) {
  std::map<std::string, HostTensor> sources = built.sources;
  HostTensor& x = sources[name];
  std::vector<double> out;
  for (int64_t k = 0; k < x.count(); ++k) {
    const double at = x.number(k);
    const auto slope = [&](double h) -> Result<double> {
      x.set_number(k, at + h);
      GR_ASSIGN(const double up, objective(built, sources));
      x.set_number(k, at - h);
      GR_ASSIGN(const double down, objective(built, sources));
      x.set_number(k, at);
      return (up - down) / (2 * h);
    };
    GR_ASSIGN(const double wide, slope(2e-4));
    GR_ASSIGN(const double narrow, slope(1e-4));
    out.push_back((4 * narrow - wide) / 3);
  }
  return out;
}

class EachRow : public testing::TestWithParam<size_t> {
 protected:
  const GradCase& row() const { return all_cases()[GetParam()]; }
};

std::string row_name(const testing::TestParamInfo<size_t>& info) {
  return all_cases()[info.param].name;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t k = 0; k < got.size(); ++k) {
    if (std::isnan(want[k]) && std::isnan(got[k])) continue;
    if (got[k] == want[k]) continue;  // infinities
    ASSERT_NEAR(got[k], want[k], tolerance * std::max(1.0, std::fabs(want[k])))
        << what << ", element " << k;
  }
}

}  // namespace

TEST_P(EachRow, GradientIsTheSlope) {
  auto built = build(row());
  ASSERT_TRUE(built.ok()) << built.status().message();
  auto forward =
      reference().run(built->graph, {}, built->sources, {built->graph.objectives()[0].sum});
  ASSERT_TRUE(forward.ok()) << forward.status().message();
  if (built->wrt.empty()) return;  // a row for the decomposition alone
  Graph backward = built->graph;
  auto grads = differentiate(backward, built->wrt);
  ASSERT_TRUE(grads.ok()) << grads.status().message();
  for (size_t k = 0; k < built->wrt.size(); ++k) {
    const std::string& name = built->names[k];
    ASSERT_NE(grads->of[k], GR_NO_VALUE) << "no gradient of " << name;
    auto got = reference().run(backward, {}, built->sources, {grads->of[k]});
    ASSERT_TRUE(got.ok()) << got.status().message();
    auto want = differences(*built, name);
    ASSERT_TRUE(want.ok()) << want.status().message();
    expect_near((*got)[0].numbers(), *want, row().tolerance, "gradient of " + name);
  }
}

TEST_P(EachRow, DecompositionEqualsTheKernel) {
  auto built = build(row());
  ASSERT_TRUE(built.ok()) << built.status().message();
  std::vector<ValueId> wanted;
  for (const auto& [name, id] : built->graph.outputs()) wanted.push_back(id);
  auto direct = reference().run(built->graph, {}, built->sources, wanted);
  ASSERT_TRUE(direct.ok()) << direct.status().message();
  const std::string name = OpRegistry::builtin().find(row().domain, row().op)->full_name();
  reference().set_avoid([&](const OpDef& op) { return op.full_name() == name; });
  auto decomposed = reference().run(built->graph, {}, built->sources, wanted);
  reference().set_avoid({});
  ASSERT_TRUE(decomposed.ok()) << decomposed.status().message();
  for (size_t k = 0; k < wanted.size(); ++k) {
    expect_near((*decomposed)[k].numbers(), (*direct)[k].numbers(), 1e-12,
                "output " + std::to_string(k));
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, EachRow, testing::Range<size_t>(0, all_cases().size()),
                         row_name);

TEST(GradTable, RowNamesAreUnique) {
  std::set<std::string> names;
  for (const GradCase& row : all_cases()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
}

TEST(GradTable, EveryDifferentiableOperatorHasARow) {
  std::set<std::string> checked;
  for (const GradCase& row : all_cases()) {
    bool any = false;
    for (const CaseInput& input : row.inputs) any |= input.differentiable;
    if (any) checked.insert(row.domain.empty() ? row.op : row.domain + "." + row.op);
  }
  std::vector<std::string> missing_rows;
  for (const OpDef* op : OpRegistry::builtin().all()) {
    const bool differentiable = !op->non_differentiable && (op->grad || op->decompose);
    if (differentiable && checked.count(op->full_name()) == 0) {
      missing_rows.push_back(op->full_name());
    }
  }
  EXPECT_TRUE(missing_rows.empty()) << "no gradient row for " << join(missing_rows);
}

TEST(GradTable, EveryDecompositionHasARow) {
  std::set<std::string> checked;
  for (const GradCase& row : all_cases()) {
    checked.insert(row.domain.empty() ? row.op : row.domain + "." + row.op);
  }
  std::vector<std::string> missing_rows;
  for (const OpDef* op : OpRegistry::builtin().all()) {
    if (op->decompose && checked.count(op->full_name()) == 0)
      missing_rows.push_back(op->full_name());
  }
  EXPECT_TRUE(missing_rows.empty()) << "no row for the decomposition of " << join(missing_rows);
}

}  // namespace gradrack::test
