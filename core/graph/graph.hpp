// SPDX-License-Identifier: Apache-2.0
// Graph: values and nodes of one step, in program order.
//
// Models, autodiff, optimizers and rewrites append to it; plans read it. A value is written once,
// by a node or by a source (input, parameter, ...). Invariant: nodes are in a legal execution order
// (each input's producer comes before), types are inferred and checked when a node is made, and a
// failed call leaves the graph as it was.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/op.hpp"
#include "gradrack/precision.h"

namespace gradrack {

using ValueId = gr_value_t;

/// Where a value that no node makes comes from, and how long its storage lives.
enum class Source {
  kNode,         // made by a node
  kInput,        // each batch brings it
  kScalar,       // the host sets it each step: lr, step, rng, ...
  kParameter,    // trained
  kBuffer,       // model state that is not trained
  kState,        // of an optimizer
  kAccumulator,  // sums over the microbatches of a step
  kConstant
};

/// Contents of a constant; reals are kept in double whatever the dtype, so that a change of
/// precision loses nothing.
struct ConstantData {
  std::vector<double> reals;  // floating dtypes
  std::vector<int64_t> ints;  // integer and bool dtypes
};

struct Value {
  Type type;
  Source source = Source::kNode;
  int32_t node = -1;  // producer
  int32_t output_index = 0;
  std::string name;   // sources; outputs of nodes have none
  int64_t limit = 0;  // inputs: values in [0, limit) when > 0
  int32_t role = GR_ROLE_WEIGHT;
  int32_t stage = -1;  // stage in which the source was declared
  gr_init_t init = {};
  std::string init_name;  // whose random values it begins with; "": its own
  std::shared_ptr<const ConstantData> constant;
  std::optional<KnownInts> known;
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs;  // GR_NO_VALUE: left out
  std::vector<ValueId> outputs;
  Attrs attrs;
  int32_t stage = -1;  // index into stages(); -1: none
  int32_t kind = GR_KIND_FORWARD;
};

struct Objective {
  std::string name;
  ValueId sum = GR_NO_VALUE;    // scalar
  ValueId count = GR_NO_VALUE;  // scalar
};

/// `target` (a source) takes the value `value` when the step commits.
struct Write {
  ValueId target = GR_NO_VALUE;
  ValueId value = GR_NO_VALUE;
};

class Graph {
 public:
  explicit Graph(const OpRegistry& ops = OpRegistry::builtin()) : ops_(&ops) {}

  // Building.
  /// A source other than kConstant; `value.name` must be new among sources.
  Result<ValueId> add_source(Value value);
  Result<ValueId> add_constant(Type type, ConstantData data);
  /// Checks ports and attributes, fills defaults, infers types. `outputs` wanted outputs; 0: all.
  Result<std::vector<ValueId>> add_node(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs,
                                        size_t outputs = 0);
  Result<std::vector<ValueId>> add_node(std::string_view domain, std::string_view op,
                                        std::vector<ValueId> inputs, Attrs attrs = {},
                                        size_t outputs = 0);
  Status add_objective(std::string name, ValueId sum, ValueId count);
  Status add_output(std::string name, ValueId value);
  Status add_write(ValueId target, ValueId value);
  void drop_writes() { writes_.clear(); }
  /// Forgets the objectives for which `keep` answers false; their nodes stay.
  void keep_objectives(const std::function<bool(const Objective&)>& keep);
  /// A source becomes another: what is stored under `name` as `source`. The name must be new.
  Status rename_source(ValueId id, Source source, const std::string& name);
  Status push_stage(std::string_view name);
  Status pop_stage();
  /// Kind and stage that new nodes get. Returns the stage index, or -1.
  void set_kind(int32_t kind) { kind_ = kind; }
  void set_stage(int32_t stage) { stage_ = stage; }
  int32_t stage() const { return stage_; }
  /// Index of the stage of that dotted name, made if new.
  int32_t intern_stage(const std::string& dotted);
  /// int64 [3] source (seed, step, microbatch) that random operators read; made on first use.
  ValueId rng();
  /// A number for a random node, from its stage and its place in it: a Philox counter.
  int64_t next_random_stream();
  /// Goes on counting random nodes where `other` stands: for copies of a graph.
  void continue_random_streams(const Graph& other) { random_nodes_ = other.random_nodes_; }

  // Reading.
  const OpRegistry& ops() const { return *ops_; }
  bool has(ValueId id) const { return id >= 0 && static_cast<size_t>(id) < values_.size(); }
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  Value& value(ValueId id) { return values_[static_cast<size_t>(id)]; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  Node& node(size_t index) { return nodes_[index]; }
  const std::vector<std::string>& stages() const { return stages_; }
  const std::vector<Objective>& objectives() const { return objectives_; }
  const std::vector<std::pair<std::string, ValueId>>& outputs() const { return outputs_; }
  const std::vector<Write>& writes() const { return writes_; }
  /// Source of that name, or GR_NO_VALUE.
  ValueId find_source(std::string_view name) const;
  ValueId find_output(std::string_view name) const;
  std::string stage_name(int32_t stage) const { return stage < 0 ? "" : stages_[size_t(stage)]; }

 private:
  Status check_node(const OpDef& op, const std::vector<ValueId>& inputs, Attrs* attrs) const;

  const OpRegistry* ops_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<std::string> stages_;
  std::vector<int32_t> stage_stack_;
  std::vector<Objective> objectives_;
  std::vector<std::pair<std::string, ValueId>> outputs_;
  std::vector<Write> writes_;
  std::map<std::string, ValueId, std::less<>> sources_;
  std::map<int32_t, int64_t> random_nodes_;  // per stage
  int32_t stage_ = -1;
  int32_t kind_ = GR_KIND_FORWARD;
};

/// "float32[batch, 64]".
std::string to_text(const Type& type);
std::string dtype_name(gr_dtype_t dtype);
bool is_real(gr_dtype_t dtype);
/// One line a value and node, for people and for comparing graphs.
std::string dump(const Graph& graph);

}  // namespace gradrack
