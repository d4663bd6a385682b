// SPDX-License-Identifier: Apache-2.0
// The precision pass: see retype.hpp.
#include "core/precision/retype.hpp"

#include "core/graph/emitter.hpp"
#include "core/graph/replay.hpp"

namespace gradrack {

namespace {

Result<gr_dtype_t> storage_dtype(const gr_precision_t& policy) {
  gr_dtype_t dtype = GR_FLOAT32;
  gr_error_t err = {};
  GR_TRY(status_from(policy.storage_dtype(policy.self, &dtype, &err), err)
             .with_context("precision plugin"));
  if (!is_real(dtype)) return invalid_argument("precision plugin: storage dtype is not a float");
  return dtype;
}

Result<gr_dtype_t> node_dtype(const gr_precision_t& policy, const Graph& graph, const Node& node) {
  gr_precision_node_t question = {};
  question.struct_size = sizeof question;
  question.kind = node.kind;
  question.domain = node.op->domain.c_str();
  question.op = node.op->name.c_str();
  const std::string stage = graph.stage_name(node.stage);
  question.stage = stage.c_str();
  gr_dtype_t dtype = GR_FLOAT32;
  gr_error_t err = {};
  GR_TRY(status_from(policy.node_dtype(policy.self, &question, &dtype, &err), err)
             .with_context("precision plugin, operator " + node.op->full_name()));
  return dtype;
}

/// Whether the policy decides about this value.
bool is_open(const Graph& graph, ValueId id) {
  return id != GR_NO_VALUE && graph.value(id).type.dtype == GR_FLOAT32;
}

/// Copies one node so that its open inputs and results have `dtype`.
Status copy_retyped(const Node& node, gr_dtype_t dtype, Replay& replay) {
  Emitter e(replay.to());
  std::vector<ValueId> inputs;
  for (const ValueId id : node.inputs) {
    const ValueId image = replay.image(id);
    inputs.push_back(is_open(replay.from(), id) ? e.cast(image, dtype) : image);
  }
  Attrs attrs = node.attrs;
  // An attribute that names float32 as a result means the policy's dtype too.
  for (const char* name : {"to", "dtype"}) {
    const AttrValue* value = attrs.find(name);
    const int64_t* named = value != nullptr ? std::get_if<int64_t>(value) : nullptr;
    if (named != nullptr && *named == GR_FLOAT32) attrs.set(name, int64_t{dtype});
  }
  if (!e.status().ok()) return e.status();
  GR_ASSIGN(const std::vector<ValueId> made,
            replay.to().add_node(*node.op, inputs, attrs, node.outputs.size()));
  for (size_t k = 0; k < made.size(); ++k) replay.map(node.outputs[k], made[k]);
  return {};
}

}  // namespace

Result<Retyped> apply_precision(const Graph& graph, const gr_precision_t& policy) {
  GR_ASSIGN(const gr_dtype_t storage, storage_dtype(policy));
  Graph out(graph.ops());
  Replay replay(graph, out);
  GR_TRY(replay.run(
      [&](const Node& node, Replay& r) -> Result<bool> {
        GR_ASSIGN(const gr_dtype_t dtype, node_dtype(policy, r.from(), node));
        GR_TRY(copy_retyped(node, dtype, r));
        return true;
      },
      [&](Value& source) {
        // A batch arrives in the data's dtype; the nodes that read it get casts.
        if (source.source == Source::kInput) return;
        if (source.type.dtype == GR_FLOAT32) source.type.dtype = storage;
      }));
  Retyped result{std::move(out), {}};
  for (size_t id = 0; id < graph.values().size(); ++id) {
    result.image.push_back(replay.image(static_cast<ValueId>(id)));
  }
  return result;
}

}  // namespace gradrack
