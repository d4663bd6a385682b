// SPDX-License-Identifier: Apache-2.0
// The precision pass: see retype.hpp.
#include "core/precision/retype.hpp"

#include "core/graph/emitter.hpp"
#include "core/graph/replay.hpp"
#include "core/precision/extensions.hpp"

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

/// Whether the policy decides about this value.
bool is_open(const Graph& graph, ValueId id) {
  return id != GR_NO_VALUE && graph.value(id).type.dtype == GR_FLOAT32;
}

/// What is neither weight nor gradient is never kept in fewer than 32 bits: a count of targets
/// would not be one, and a running mean would stand still.
gr_dtype_t at_least_float32(gr_dtype_t storage) {
  return gr_dtype_bytes(storage) < 4 ? gr_dtype_t{GR_FLOAT32} : storage;
}

/// The dtype in which a value leaves the graph, for what something outside reads; else 0.
std::vector<gr_dtype_t> leaving_dtypes(const Graph& graph, std::span<const ValueId> gradients,
                                       gr_dtype_t storage) {
  std::vector<gr_dtype_t> leaves(graph.values().size(), gr_dtype_t{0});
  const auto mark = [&](ValueId id, gr_dtype_t dtype) {
    if (id != GR_NO_VALUE) leaves[static_cast<size_t>(id)] = dtype;
  };
  for (const ValueId id : gradients) mark(id, storage);
  const gr_dtype_t wide = at_least_float32(storage);
  for (const Objective& objective : graph.objectives()) {
    mark(objective.sum, wide);
    mark(objective.count, wide);
  }
  for (const auto& [name, id] : graph.outputs()) mark(id, wide);
  for (const Write& write : graph.writes()) mark(write.value, wide);
  return leaves;
}

class Retyper {
 public:
  Retyper(const gr_precision_t& policy, std::vector<gr_dtype_t> leaves)
      : policy_(policy), by_inputs_(precision_inputs_of(policy)), leaves_(std::move(leaves)) {}

  /// Copies one node so that its open inputs and results have the policy's dtype.
  Status copy(const Node& node, Replay& replay) const {
    GR_ASSIGN(const gr_dtype_t dtype, node_dtype(node, replay));
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
    for (size_t k = 0; k < made.size(); ++k) {
      const ValueId old = node.outputs[k];
      const gr_dtype_t left = leaves_[static_cast<size_t>(old)];
      const bool cast = is_open(replay.from(), old) && left != 0;
      replay.map(old, cast ? e.cast(made[k], left) : made[k]);
    }
    return e.status();
  }

 private:
  Result<gr_dtype_t> node_dtype(const Node& node, Replay& replay) const {
    const std::string stage = replay.from().stage_name(node.stage);
    const std::vector<gr_dtype_t> inputs = input_dtypes(node, replay);
    gr_precision_node_t question = {};
    question.struct_size = sizeof question;
    question.kind = node.kind;
    question.domain = node.op->domain.c_str();
    question.op = node.op->name.c_str();
    question.stage = stage.c_str();
    gr_dtype_t dtype = GR_FLOAT32;
    gr_error_t err = {};
    const int32_t code =
        by_inputs_ != nullptr
            ? by_inputs_->node_dtype(by_inputs_->self, &question, inputs.data(),
                                     static_cast<uint32_t>(inputs.size()), &dtype, &err)
            : policy_.node_dtype(policy_.self, &question, &dtype, &err);
    GR_TRY(
        status_from(code, err).with_context("precision plugin, operator " + node.op->full_name()));
    return dtype;
  }

  /// See gr_precision_inputs_t: only what a node or the batch made has a say.
  static std::vector<gr_dtype_t> input_dtypes(const Node& node, Replay& replay) {
    std::vector<gr_dtype_t> dtypes;
    for (const ValueId id : node.inputs) {
      const bool open = is_open(replay.from(), id);
      const Source source = open ? replay.from().value(id).source : Source::kConstant;
      const bool says = open && (source == Source::kNode || source == Source::kInput);
      dtypes.push_back(says ? replay.to().value(replay.image(id)).type.dtype : gr_dtype_t{0});
    }
    return dtypes;
  }

  const gr_precision_t& policy_;
  const gr_precision_inputs_t* by_inputs_;  // or null
  std::vector<gr_dtype_t> leaves_;          // by value of the old graph; 0: read inside alone
};

}  // namespace

Result<Retyped> apply_precision(const Graph& graph, const gr_precision_t& policy,
                                std::span<const ValueId> gradients) {
  GR_ASSIGN(const gr_dtype_t storage, storage_dtype(policy));
  const Retyper retyper(policy, leaving_dtypes(graph, gradients, storage));
  Graph out(graph.ops());
  Replay replay(graph, out);
  GR_TRY(replay.run(
      [&](const Node& node, Replay& r) -> Result<bool> {
        GR_TRY(retyper.copy(node, r));
        return true;
      },
      [&](Value& source) {
        // A batch arrives in the data's dtype; the nodes that read it get casts.
        if (source.source == Source::kInput) return;
        const bool weight = source.source == Source::kParameter;
        if (source.type.dtype != GR_FLOAT32) return;
        source.type.dtype = weight ? storage : at_least_float32(storage);
      }));
  Retyped result{std::move(out), {}};
  for (size_t id = 0; id < graph.values().size(); ++id) {
    result.image.push_back(replay.image(static_cast<ValueId>(id)));
  }
  return result;
}

}  // namespace gradrack
