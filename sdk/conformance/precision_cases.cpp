// SPDX-License-Identifier: Apache-2.0
// Cases of the precision kind: a pure policy over known floating dtypes that the host can apply.
#include <fmt/format.h>

#include "core/autodiff/autodiff.hpp"
#include "core/graph/emitter.hpp"
#include "core/precision/retype.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/use.hpp"

namespace gradrack::conform {
namespace {

using PrecisionInstance = Instance<gr_precision_t>;

bool is_float(gr_dtype_t dtype) {
  return dtype == GR_FLOAT16 || dtype == GR_BFLOAT16 || dtype == GR_FLOAT32 || dtype == GR_FLOAT64;
}

Result<gr_dtype_t> storage(const gr_precision_t& table) {
  gr_dtype_t dtype = 0;
  GR_TRY(call_plugin("storage_dtype", nullptr, [&](gr_error_t* err) {
    return table.storage_dtype(table.self, &dtype, err);
  }));
  if (!is_float(dtype)) {
    return internal_error(fmt::format("storage_dtype gives {}: a floating dtype wanted", dtype));
  }
  return dtype;
}

Result<gr_dtype_t> node(const gr_precision_t& table, const OpDef& op, int32_t kind,
                        const char* stage) {
  const gr_precision_node_t question = {sizeof question, kind, op.domain.c_str(), op.name.c_str(),
                                        stage};
  gr_dtype_t dtype = 0;
  GR_TRY(call_plugin("node_dtype", nullptr, [&](gr_error_t* err) {
    return table.node_dtype(table.self, &question, &dtype, err);
  }));
  if (!is_float(dtype)) {
    return internal_error(
        fmt::format("node_dtype gives {} for {}: a floating dtype wanted", dtype, op.full_name()));
  }
  return dtype;
}

constexpr const char* kStages[] = {"", "embed", "blocks.0.attention", "head"};

Outcome storage_case(Context& context) {
  CONFORM_ASSIGN(const PrecisionInstance policy, context.make<gr_precision_t>());
  CONFORM_ASSIGN(const gr_dtype_t first, storage(policy.table()));
  CONFORM_ASSIGN(const gr_dtype_t second, storage(policy.table()));
  return first == second ? pass() : fail("storage_dtype changes its answer");
}

Outcome every_operator(Context& context) {
  CONFORM_ASSIGN(const PrecisionInstance policy, context.make<gr_precision_t>());
  for (const OpDef* op : OpRegistry::builtin().all()) {
    for (int32_t kind = GR_KIND_FORWARD; kind <= GR_KIND_COPY; ++kind) {
      for (const char* stage : kStages) {
        CONFORM_TRY(node(policy.table(), *op, kind, stage).status());
      }
    }
  }
  // A host of a later minor has operators that this one does not know.
  OpDef later;
  later.domain = "gradrack";
  later.name = "OperatorOfALaterMinor";
  return outcome_of(node(policy.table(), later, GR_KIND_FORWARD, "head").status());
}

Outcome pure(Context& context) {
  CONFORM_ASSIGN(const PrecisionInstance policy, context.make<gr_precision_t>());
  const std::vector<const OpDef*> ops = OpRegistry::builtin().all();
  std::map<std::string, gr_dtype_t> answers;
  std::mt19937_64 random = context.random("L3.pure");
  for (int k = 0; k < 20000; ++k) {
    const OpDef& op = *ops[random() % ops.size()];
    const auto kind = static_cast<int32_t>(random() % 6);
    const char* stage = kStages[random() % 4];
    CONFORM_ASSIGN(const gr_dtype_t dtype, node(policy.table(), op, kind, stage));
    const std::string question = op.full_name() + " " + std::to_string(kind) + " " + stage;
    const auto [at, is_new] = answers.emplace(question, dtype);
    if (!is_new && at->second != dtype)
      return fail("node_dtype changes its answer for " + question);
  }
  return pass();
}

// A small network, differentiated and retyped as in a run: every cast that the policy asks for
// exists.
Outcome applies(Context& context) {
  CONFORM_ASSIGN(const PrecisionInstance policy, context.make<gr_precision_t>());
  Graph graph;
  const auto source = [&](Source kind, const char* name, Shape shape) -> Result<ValueId> {
    Value value;
    value.source = kind;
    value.name = name;
    value.type = {GR_FLOAT32, std::move(shape)};
    return graph.add_source(std::move(value));
  };
  CONFORM_ASSIGN(const ValueId x, source(Source::kInput, "x", {Dim::symbol("batch"), 4}));
  CONFORM_ASSIGN(const ValueId w, source(Source::kParameter, "w", {4, 3}));
  CONFORM_ASSIGN(const ValueId b, source(Source::kParameter, "b", {3}));
  Emitter e(graph);
  const ValueId y = e.op("Tanh", {e.add(e.matmul(x, w), b)});
  const ValueId loss = e.reduce_sum(e.op("Softmax", {y}), {0, 1}, false);
  CONFORM_TRY(e.status());
  CONFORM_TRY(graph.add_objective("loss", loss, e.constant(GR_FLOAT32, 1.0)));
  CONFORM_TRY(differentiate(graph, {w, b}).status());
  CONFORM_ASSIGN(const Retyped retyped, apply_precision(graph, policy.table()));
  CONFORM_ASSIGN(const gr_dtype_t wanted, storage(policy.table()));
  const Graph& typed = retyped.graph;
  return typed.value(typed.find_source("w")).type.dtype == wanted
             ? pass()
             : fail("parameters do not get the storage dtype");
}

}  // namespace

void add_precision_cases(const Target&, std::vector<Case>* cases) {
  cases->push_back({"L3.storage", 3, "storage_dtype is a floating dtype", storage_case});
  cases->push_back(
      {"L3.operators", 3, "node_dtype knows what to say of every operator", every_operator});
  cases->push_back({"L3.pure", 3, "the same question, the same answer", pure});
  cases->push_back({"L3.applies", 3, "the host can apply the policy to a network", applies});
}

}  // namespace gradrack::conform
