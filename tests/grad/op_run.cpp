// SPDX-License-Identifier: Apache-2.0
// run_op: see op_run.hpp.
#include "tests/grad/op_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autodiff/autodiff.hpp"
#include "core/graph/emitter.hpp"

namespace gradrack::test {

namespace {

bool contains(const std::vector<size_t>& list, size_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

/// The graph of one call, and the contents of its sources.
struct CallGraph {
  Graph graph;
  std::vector<ValueId> inputs;
  std::map<std::string, HostTensor> contents;
  Bindings bindings;
};

Status add_input(CallGraph* g, const OpCall& call, size_t k) {
  if (!call.inputs[k].has_value()) {
    g->inputs.push_back(GR_NO_VALUE);
    return {};
  }
  const HostTensor& tensor = *call.inputs[k];
  Type type{tensor.dtype, Shape(tensor.dims.begin(), tensor.dims.end())};
  if (contains(call.constants, k)) {
    ConstantData data;
    for (const double number : tensor.numbers()) {
      data.reals.push_back(number);
      data.ints.push_back(static_cast<int64_t>(number));
    }
    GR_ASSIGN(const ValueId id, g->graph.add_constant(std::move(type), std::move(data)));
    g->inputs.push_back(id);
    return {};
  }
  for (size_t axis = 0; axis < tensor.dims.size(); ++axis) {
    const auto named = call.names.find({k, axis});
    if (named == call.names.end()) continue;
    type.shape[axis] = Dim::symbol(named->second);
    g->bindings[named->second] = tensor.dims[axis];
  }
  Value value;
  value.source = contains(call.wrt, k) ? Source::kParameter : Source::kInput;
  value.name = "in" + std::to_string(k);
  value.type = std::move(type);
  g->contents[value.name] = tensor;
  GR_ASSIGN(const ValueId id, g->graph.add_source(std::move(value)));
  g->inputs.push_back(id);
  return {};
}

/// Objective sum(gy * y), with gy a source.
Status add_objective(CallGraph* g, const HostTensor& gy, ValueId y) {
  Value value;
  value.source = Source::kInput;
  value.name = "gy";
  value.type = g->graph.value(y).type;
  g->contents["gy"] = gy;
  GR_ASSIGN(const ValueId upstream, g->graph.add_source(std::move(value)));
  Emitter e(g->graph);
  const ValueId product = e.mul(upstream, y);
  std::vector<int64_t> axes;
  for (size_t k = 0; k < e.rank(product); ++k) axes.push_back(static_cast<int64_t>(k));
  const ValueId sum = e.reduce_sum(product, axes, false);
  const ValueId count = e.like(sum, 1.0);
  GR_TRY(e.status());
  return g->graph.add_objective("test", sum, count);
}

}  // namespace

Result<OpAnswer> run_op(Eager& eager, const OpCall& call) {
  CallGraph g;
  for (size_t k = 0; k < call.inputs.size(); ++k) GR_TRY(add_input(&g, call, k));
  GR_ASSIGN(const std::vector<ValueId> outputs,
            g.graph.add_node(call.domain, call.op, g.inputs, call.attrs, call.outputs));
  OpAnswer answer;
  GR_ASSIGN(answer.outputs, eager.run(g.graph, g.bindings, g.contents, outputs));
  if (!call.gy.has_value()) return answer;
  GR_TRY(add_objective(&g, *call.gy, outputs[0]));
  std::vector<ValueId> wrt;
  for (const size_t k : call.wrt) wrt.push_back(g.inputs[k]);
  GR_ASSIGN(const Gradients gradients, differentiate(g.graph, wrt));
  for (const ValueId id : gradients.of) {
    if (id == GR_NO_VALUE) return internal_error("a wanted gradient is absent");
  }
  GR_ASSIGN(answer.grads, eager.run(g.graph, g.bindings, g.contents, gradients.of));
  return answer;
}

double relative_error(const HostTensor& got, const HostTensor& want) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (got.dims != want.dims) return kNaN;
  double worst = 0, largest = 0;
  for (int64_t k = 0; k < want.count(); ++k) {
    const double a = got.number(k), b = want.number(k);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      largest = std::isfinite(b) ? std::max(largest, std::fabs(b)) : largest;
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(b)) return kNaN;
    worst = std::max(worst, std::fabs(a - b));
    largest = std::max(largest, std::fabs(b));
  }
  return worst / std::max(largest, 1e-30);
}

Eager& reference() {
  static Eager* const eager = [] {
    auto opened = Eager::open("reference");
    if (!opened.ok()) std::fprintf(stderr, "%s\n", opened.status().message().c_str());
    GR_CHECK(opened.ok());
    return opened->release();
  }();
  return *eager;
}

}  // namespace gradrack::test
