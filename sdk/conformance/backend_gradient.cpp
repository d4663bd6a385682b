// SPDX-License-Identifier: Apache-2.0
// Backward cells: the gradient graph of an operator, on the backend under test with the reference
// behind it, against the reference alone. See backend_cell.hpp.
//
// The objective is the sum of the real outputs times fixed weights, so that no gradient cancels.
// Invariant: the graph is what the host's autodiff makes for a model, dX and dW both.
#include <fmt/format.h>

#include <cmath>

#include "core/autodiff/autodiff.hpp"
#include "core/graph/emitter.hpp"
#include "sdk/conformance/backend_cell.hpp"
#include "sdk/conformance/tolerance.hpp"

namespace gradrack::conform {
namespace {

/// Room for the rounding of several steps after each other.
constexpr double kGradientRoom = 16.0;

struct GradientGraph {
  Graph graph;
  std::map<std::string, HostArray> sources;
  size_t gradients = 0;
};

/// An input with weights in [-1, 1] that differ from place to place.
Result<ValueId> add_weights(Emitter& e, ValueId y, size_t k,
                            std::map<std::string, HostArray>* sources) {
  Value value;
  value.source = Source::kInput;
  value.name = "weights" + std::to_string(k);
  value.type = e.type(y);
  std::vector<int64_t> dims;
  for (const Dim& dim : value.type.shape) dims.push_back(dim.number());
  HostArray weights(value.type.dtype, dims);
  for (int64_t i = 0; i < weights.count(); ++i) {
    weights.set_number(i, std::sin(1.0 + 1.7 * static_cast<double>(i) + static_cast<double>(k)));
  }
  (*sources)[value.name] = std::move(weights);
  return e.graph().add_source(std::move(value));
}

/// objective = sum of weights * output over the real outputs.
Status add_objective(Graph& graph, std::map<std::string, HostArray>* sources) {
  Emitter e(graph);
  ValueId total = GR_NO_VALUE;
  const auto outputs = graph.outputs();
  for (size_t k = 0; k < outputs.size(); ++k) {
    const ValueId y = outputs[k].second;
    if (!is_real(e.type(y).dtype)) continue;
    GR_ASSIGN(const ValueId weights, add_weights(e, y, k, sources));
    std::vector<int64_t> axes;
    for (size_t axis = 0; axis < e.rank(y); ++axis) axes.push_back(static_cast<int64_t>(axis));
    const ValueId sum = e.reduce_sum(e.mul(y, weights), axes, false);
    total = total == GR_NO_VALUE ? sum : e.add(total, sum);
  }
  if (total == GR_NO_VALUE) return unsupported("no real output");
  GR_TRY(graph.add_objective("objective", total, e.constant(e.type(total).dtype, 1.0)));
  return e.status();
}

/// The case, differentiated; the last outputs are the gradients. GR_UNSUPPORTED: it has none.
Result<GradientGraph> gradient_graph(const OpCase& c,
                                     const std::vector<std::vector<double>>& numbers) {
  GR_ASSIGN(Graph forward, case_graph(c, Source::kParameter));
  GradientGraph out{std::move(forward), source_arrays(c, numbers), 0};
  // A stage of its own tells the objective's gradient nodes from the operator's.
  GR_TRY(out.graph.push_stage(kObjectiveStage));
  GR_TRY(add_objective(out.graph, &out.sources));
  GR_TRY(out.graph.pop_stage());
  std::vector<ValueId> wrt;
  for (size_t id = 0; id < out.graph.values().size(); ++id) {
    const Source source = out.graph.values()[id].source;
    if (source == Source::kParameter) wrt.push_back(static_cast<ValueId>(id));
  }
  if (wrt.empty()) return unsupported("nothing to differentiate");
  GR_ASSIGN(const Gradients gradients, differentiate(out.graph, wrt));
  for (size_t k = 0; k < gradients.of.size(); ++k) {
    if (gradients.of[k] == GR_NO_VALUE) continue;
    GR_TRY(out.graph.add_output("gradient " + std::to_string(k), gradients.of[k]));
    ++out.gradients;
  }
  if (out.gradients == 0) return unsupported("no gradient");
  return out;
}

void compare_gradients(const OpCase& c, const Evaluation& got, const Evaluation& want,
                       size_t gradients, CellReport* report) {
  for (const std::string& fault : got.faults) {
    report->failures.push_back(c.text() + ", gradient: " + fault);
  }
  const size_t first = want.outputs.size() - gradients;
  for (size_t k = first; k < want.outputs.size(); ++k) {
    const double most = kGradientRoom * tolerance(c.op, got.outputs[k].dtype);
    const std::string fault = compare(got.outputs[k], want.outputs[k], most);
    if (fault.empty()) continue;
    report->failures.push_back(fmt::format("{}, gradient {} of the differentiable inputs, {}",
                                           c.text(), k - first, fault));
  }
}

/// GR_UNSUPPORTED: the case has no gradient, or not in this dtype.
Status try_gradient(const Bench& bench, const OpCase& c, CellReport* report) {
  const auto numbers = draw_contents(c, bench.seed);
  GR_ASSIGN(const GradientGraph wanted, gradient_graph(reference_case(c), numbers));
  GR_ASSIGN(const GradientGraph made, gradient_graph(c, numbers));
  GR_ASSIGN(const Evaluation want, evaluate(wanted.graph, wanted.sources, {bench.reference}));
  const std::vector<const Rig*> chain = {bench.tested, bench.reference};
  GR_ASSIGN(const Cover cover, cover_of(made.graph, GR_KIND_INPUT_GRADIENT, chain));
  GR_ASSIGN(const Evaluation got, evaluate(made.graph, made.sources, chain));
  report->count(cover);
  if (cover == Cover::kOther && report->reason.empty()) report->reason = got.summary[0].text();
  compare_gradients(c, got, want, made.gradients, report);
  return {};
}

}  // namespace

CellReport try_backward(const Bench& bench, const std::vector<OpCase>& cases) {
  CellReport report;
  for (const OpCase& c : cases) {
    const Status done = try_gradient(bench, c, &report);
    if (done.ok() || done.code() == GR_UNSUPPORTED) continue;
    report.failures.push_back(c.text() + ", gradient: " + done.message());
  }
  return report;
}

}  // namespace gradrack::conform
