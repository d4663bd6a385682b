// SPDX-License-Identifier: Apache-2.0
// Forward cells: see backend_cell.hpp.
#include "sdk/conformance/backend_cell.hpp"

#include <fmt/format.h>

#include <set>

#include "sdk/conformance/op_cases.hpp"
#include "sdk/conformance/tolerance.hpp"

namespace gradrack::conform {
namespace {

constexpr int64_t kLargestRetyped = 5000;
constexpr size_t kGradientCases = 4;
constexpr int64_t kLargestGradient = 600;
/// Room for the rounding of a decomposition's steps.
constexpr double kDecompositionRoom = 8.0;

bool is_half(gr_dtype_t dtype) { return dtype == GR_FLOAT16 || dtype == GR_BFLOAT16; }

/// What is decomposed must still give the reference's numbers.
void try_decomposition(const Bench& bench, const OpCase& c, const Graph& graph,
                       const std::map<std::string, HostArray>& sources,
                       const std::vector<HostArray>& want, CellReport* report) {
  const auto got = evaluate(graph, sources, {bench.tested});
  if (!got.ok()) {
    report->failures.push_back(
        c.text() + ": its decomposition is claimed, but fails: " + got.status().message());
    return;
  }
  for (const std::string& fault : got->faults) {
    report->failures.push_back(c.text() + ", decomposed: " + fault);
  }
  for (size_t k = 0; k < want.size(); ++k) {
    const double most = kDecompositionRoom * tolerance(c.op, got->outputs[k].dtype);
    const std::string fault = compare(got->outputs[k], want[k], most);
    if (!fault.empty()) {
      report->failures.push_back(fmt::format("{}, decomposed: output {}, {}", c.text(), k, fault));
    }
  }
}

/// One case whose graph and reference answer are known.
Status try_case(const Bench& bench, const OpCase& c, const Graph& graph,
                const std::map<std::string, HostArray>& sources, const std::vector<HostArray>& want,
                CellReport* report) {
  GR_ASSIGN(const BoundGraph bound, bind_graph(graph, {}));
  const size_t node = graph.nodes().size() - 1;
  GR_ASSIGN(const std::vector<Claim> claims, ask_claims(*bench.tested->device(), bound, {node}));
  if (claims[0].yes) {
    report->count(Cover::kNative);
    try_styles(bench, c, bound, node, contents_of(graph, sources), want, report);
    return {};
  }
  if (report->reason.empty()) report->reason = claims[0].reason;
  if (claims[0].reason == "no reason given") {
    report->failures.push_back(c.text() + ": claim says no and gives no reason");
  }
  GR_ASSIGN(const Cover cover, cover_of(graph, GR_KIND_FORWARD, {bench.tested}));
  report->count(cover);
  if (cover == Cover::kDecomposed) {
    try_decomposition(bench, c, graph, sources, want, report);
  }
  return {};
}

const std::vector<OpCase>& rows() {
  static const auto* all = new std::vector<OpCase>(all_op_cases());
  return *all;
}

bool needs_no_kernel(const OpDef& op) { return op.view || op.name == "Shape"; }

}  // namespace

void CellReport::count(Cover cover) {
  ++cases;
  ++(cover == Cover::kNative ? native : (cover == Cover::kDecomposed ? decomposed : other));
}

std::string CellReport::word() const {
  if (cases == 0) return "";
  if (native >= decomposed && native >= other) return cover_name(Cover::kNative);
  return cover_name(decomposed >= other ? Cover::kDecomposed : Cover::kOther);
}

const std::vector<std::string>& operators_with_cells() {
  static const auto* names = [] {
    std::set<std::string> found;
    for (const OpCase& row : rows()) found.insert(row.op);
    return new std::vector<std::string>(found.begin(), found.end());
  }();
  return *names;
}

bool has_cell(const std::string& op, gr_dtype_t dtype) {
  for (const OpCase& row : rows()) {
    if (row.op != op) continue;
    if (main_dtype(row) == dtype) return true;
    if (main_dtype(row) == GR_FLOAT32 && case_graph(retype(row, dtype)).ok()) return true;
    if (main_dtype(row) == GR_FLOAT32) break;  // the others of that dtype would be refused likewise
  }
  return false;
}

bool has_gradient(const std::string& op, gr_dtype_t dtype) {
  const OpCase name{op, {}, {}};
  const OpDef* def = OpRegistry::builtin().find(name.domain(), name.name());
  const bool differentiable =
      def != nullptr && !def->non_differentiable && (def->grad || def->decompose);
  return differentiable && is_real(dtype);
}

bool claims_case(const Bench& bench, const OpCase& c) {
  const auto graph = case_graph(c);
  if (!graph.ok()) return false;
  const auto bound = bind_graph(*graph, {});
  if (!bound.ok()) return false;
  const auto claims = ask_claims(*bench.tested->device(), *bound, {graph->nodes().size() - 1});
  return claims.ok() && (*claims)[0].yes;
}

std::vector<OpCase> cell_cases(const std::string& op, gr_dtype_t dtype) {
  std::vector<OpCase> out;
  for (const OpCase& row : rows()) {
    if (row.op != op) continue;
    if (main_dtype(row) == dtype) {
      out.push_back(row);
    } else if (main_dtype(row) == GR_FLOAT32 && largest_input(row) <= kLargestRetyped) {
      OpCase other = retype(row, dtype);
      if (case_graph(other).ok()) out.push_back(std::move(other));
    }
  }
  return out;
}

std::vector<OpCase> gradient_cases(const std::string& op, gr_dtype_t dtype) {
  std::vector<OpCase> out;
  if (!has_gradient(op, dtype)) return out;
  for (OpCase& c : cell_cases(op, dtype)) {
    const int64_t most = largest_input(c);
    if (most > kLargestGradient || most == 0) continue;
    out.push_back(std::move(c));
    if (out.size() == kGradientCases) break;
  }
  return out;
}

std::map<std::string, HostArray> source_arrays(const OpCase& c,
                                               const std::vector<std::vector<double>>& numbers) {
  std::map<std::string, HostArray> out;
  for (size_t k = 0; k < c.inputs.size(); ++k) {
    if (c.inputs[k].fill == Fill::kAbsent) continue;
    out["x" + std::to_string(k)] = HostArray(c.inputs[k].dtype, c.inputs[k].dims, numbers[k]);
  }
  return out;
}

/// In 16 bits an operator is held to the reference in float32; one that takes such a tensor beside
/// others is asked as it is.
OpCase reference_case(const OpCase& c) {
  OpCase out = c;
  if (!is_half(main_dtype(c))) return out;
  for (InputSpec& input : out.inputs) {
    if (is_half(input.dtype)) input.dtype = GR_FLOAT32;
  }
  return out;
}

Result<std::vector<HostArray>> reference_answer(const Bench& bench, const OpCase& c,
                                                const std::vector<std::vector<double>>& numbers) {
  const OpCase wanted = reference_case(c);
  GR_ASSIGN(const Graph graph, case_graph(wanted));
  GR_ASSIGN(Evaluation answer, evaluate(graph, source_arrays(wanted, numbers), {bench.reference}));
  return std::move(answer.outputs);
}

Contents contents_of(const Graph& graph, const std::map<std::string, HostArray>& sources) {
  Contents out;
  for (const auto& [name, array] : sources) {
    const ValueId id = graph.find_source(name);
    if (id != GR_NO_VALUE) out[id] = array;
  }
  return out;
}

CellReport try_forward(const Bench& bench, const std::vector<OpCase>& cases) {
  CellReport report;
  for (const OpCase& c : cases) {
    const OpDef* op = OpRegistry::builtin().find(c.domain(), c.name());
    if (op == nullptr || needs_no_kernel(*op)) continue;
    const auto graph = case_graph(c);
    const auto numbers = draw_contents(c, bench.seed);
    const auto want = reference_answer(bench, c, numbers);
    if (!graph.ok() || !want.ok()) {
      // Not a case of this dtype; any other trouble of the reference is a fault of the kit.
      if (graph.ok() && want.status().code() != GR_UNSUPPORTED) {
        report.failures.push_back(c.text() + ": the reference fails: " + want.status().message());
      }
      continue;
    }
    const Status done = try_case(bench, c, *graph, source_arrays(c, numbers), *want, &report);
    if (!done.ok()) report.failures.push_back(c.text() + ": " + done.message());
  }
  return report;
}

}  // namespace gradrack::conform
