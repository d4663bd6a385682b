// SPDX-License-Identifier: Apache-2.0
// Graph: see graph.hpp. Node making with its checks; the text dump is in dump.cpp.
#include "core/graph/graph.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "gradrack/philox.h"

namespace gradrack {

namespace {

/// Shapes are shorter; of longer lists every element would be a Dim, and work on them done twice.
constexpr size_t kMostKnown = 4096;

/// The shape rule's window onto a node in the making.
class NodeInference : public InferContext {
 public:
  NodeInference(const Graph& graph, const std::vector<ValueId>& inputs, const Attrs& attrs,
                size_t outputs)
      : graph_(graph), inputs_(inputs), attrs_(attrs), types_(outputs), known_(outputs) {}

  size_t input_count() const override { return inputs_.size(); }
  bool has_input(size_t k) const override {
    return k < inputs_.size() && inputs_[k] != GR_NO_VALUE;
  }
  const Type& input(size_t k) const override { return graph_.value(inputs_[k]).type; }
  const KnownInts* known(size_t k) const override {
    if (!has_input(k)) return nullptr;
    const Value& value = graph_.value(inputs_[k]);
    return value.known.has_value() ? &*value.known : nullptr;
  }
  bool known_float(size_t k, double* out) const override {
    if (!has_input(k)) return false;
    const Value& value = graph_.value(inputs_[k]);
    if (value.constant == nullptr || value.constant->reals.size() != 1) return false;
    *out = value.constant->reals[0];
    return true;
  }
  const Attrs& attrs() const override { return attrs_; }
  size_t output_count() const override { return types_.size(); }
  void set_output(size_t k, Type type) override {
    if (k < types_.size()) types_[k] = std::move(type);
  }
  void set_known(size_t k, KnownInts contents) override {
    if (k < known_.size() && contents.size() <= kMostKnown) known_[k] = std::move(contents);
  }

  std::vector<std::optional<Type>>& types() { return types_; }
  std::vector<std::optional<KnownInts>>& known_outputs() { return known_; }

 private:
  const Graph& graph_;
  const std::vector<ValueId>& inputs_;
  const Attrs& attrs_;
  std::vector<std::optional<Type>> types_;
  std::vector<std::optional<KnownInts>> known_;
};

const char* attr_type_name(int32_t type) {
  switch (type) {
    case GR_ATTR_INT:
      return "an integer";
    case GR_ATTR_FLOAT:
      return "a float";
    case GR_ATTR_STRING:
      return "a string";
    case GR_ATTR_INTS:
      return "a list of integers";
    default:
      return "a list of floats";
  }
}

Status complete_attrs(const OpDef& op, Attrs* attrs) {
  std::vector<std::string> names;
  for (const AttrDef& def : op.attrs) names.push_back(def.name);
  for (const auto& [name, value] : attrs->items()) {
    const AttrDef* def = nullptr;
    for (const AttrDef& each : op.attrs) {
      if (each.name == name) def = &each;
    }
    if (def == nullptr) {
      return invalid_argument("has no attribute '" + name + "'" + did_you_mean(name, names));
    }
    if (static_cast<int32_t>(value.index()) + 1 != def->type) {
      return invalid_argument("attribute '" + name + "' must be " + attr_type_name(def->type));
    }
  }
  for (const AttrDef& def : op.attrs) {
    if (attrs->has(def.name)) continue;
    if (def.required) return invalid_argument("needs attribute '" + def.name + "'");
    if (def.has_default) attrs->set(def.name, def.default_value);
  }
  return {};
}

}  // namespace

Status Graph::check_node(const OpDef& op, const std::vector<ValueId>& inputs, Attrs* attrs) const {
  const bool variadic = !op.inputs.empty() && op.inputs.back().variadic;
  if (inputs.size() > op.inputs.size() && !variadic) {
    return invalid_argument(
        fmt::format("takes at most {} inputs, got {}", op.inputs.size(), inputs.size()));
  }
  for (size_t k = 0; k < std::max(inputs.size(), op.inputs.size()); ++k) {
    const PortDef& port = op.inputs[std::min(k, op.inputs.size() - 1)];
    const bool given = k < inputs.size() && inputs[k] != GR_NO_VALUE;
    // Of a list there may be no more, but none of it is left out, and an operator has an input.
    const bool may_miss = port.optional || (port.variadic && k > 0 && k >= inputs.size());
    if (!given && !may_miss) return invalid_argument("needs input '" + port.name + "'");
  }
  for (const ValueId id : inputs) {
    if (id != GR_NO_VALUE && !has(id)) {
      return invalid_argument(fmt::format("value {} is not in this graph", id));
    }
  }
  return complete_attrs(op, attrs);
}

Result<std::vector<ValueId>> Graph::add_node(const OpDef& op, std::vector<ValueId> inputs,
                                             Attrs attrs, size_t outputs) {
  while (!inputs.empty() && inputs.back() == GR_NO_VALUE) inputs.pop_back();
  if (outputs == 0) outputs = op.outputs.size();
  const bool many = !op.outputs.empty() && op.outputs.back().variadic;
  Status status = check_node(op, inputs, &attrs);
  if (status.ok() && outputs > op.outputs.size() && !many) {
    status = invalid_argument(
        fmt::format("has {} outputs, {} were asked for", op.outputs.size(), outputs));
  }
  NodeInference inference(*this, inputs, attrs, outputs);
  if (status.ok()) status = op.infer(inference);
  if (!status.ok()) {
    std::string got;
    for (const ValueId id : inputs) {
      got += (got.empty() ? "" : ", ") + (has(id) ? to_text(value(id).type) : std::string("-"));
    }
    return status.with_context(op.full_name() + "(" + got + ")");
  }
  for (size_t k = 0; k < outputs; ++k) {
    const std::optional<Type>& type = inference.types()[k];
    if (!type.has_value()) {
      return internal_error(op.full_name() + ": its shape rule gave no type to output " +
                            std::to_string(k));
    }
    if (type->shape.size() > GR_MAX_RANK) {
      return invalid_argument(fmt::format("{}: output {} would have rank {}, the limit is {}",
                                          op.full_name(), k, type->shape.size(), +GR_MAX_RANK));
    }
  }
  Node node{&op, std::move(inputs), {}, std::move(attrs), stage_, kind_};
  for (size_t k = 0; k < outputs; ++k) {
    Value value;
    value.type = *inference.types()[k];
    value.node = static_cast<int32_t>(nodes_.size());
    value.output_index = static_cast<int32_t>(k);
    value.known = inference.known_outputs()[k];
    node.outputs.push_back(static_cast<ValueId>(values_.size()));
    values_.push_back(std::move(value));
  }
  nodes_.push_back(node);
  return node.outputs;
}

Result<std::vector<ValueId>> Graph::add_node(std::string_view domain, std::string_view name,
                                             std::vector<ValueId> inputs, Attrs attrs,
                                             size_t outputs) {
  if (domain == "ai.onnx") domain = "";
  const OpDef* op = ops_->find(domain, name);
  if (op == nullptr) {
    const std::string near = ops_->nearest(name);
    return not_found("no operator '" + std::string(name) + "' in domain '" + std::string(domain) +
                     "'" + (near.empty() ? "" : " (did you mean '" + near + "'?)") +
                     "; `gradrack ops` lists them");
  }
  return add_node(*op, std::move(inputs), std::move(attrs), outputs);
}

Result<ValueId> Graph::add_source(Value value) {
  GR_CHECK(value.source != Source::kNode && value.source != Source::kConstant);
  if (value.name.empty()) return invalid_argument("an input, parameter or buffer needs a name");
  if (sources_.count(value.name) > 0) {
    return invalid_argument("'" + value.name + "' is declared twice");
  }
  const ValueId id = static_cast<ValueId>(values_.size());
  if (value.stage < 0) value.stage = stage_;
  sources_[value.name] = id;
  values_.push_back(std::move(value));
  return id;
}

Status Graph::rename_source(ValueId id, Source source, const std::string& name) {
  Value& value = values_[static_cast<size_t>(id)];
  if (!sources_.emplace(name, id).second) {
    return invalid_argument("'" + name + "' is declared twice");
  }
  sources_.erase(value.name);
  if (value.init_name.empty()) value.init_name = value.name;
  value.source = source;
  value.name = name;
  return {};
}

Result<ValueId> Graph::add_constant(Type type, ConstantData data) {
  Value value;
  value.source = Source::kConstant;
  GR_ASSIGN(const auto dims, bind(type.shape, {}));
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  const size_t held = is_real(type.dtype) ? data.reals.size() : data.ints.size();
  if (held != static_cast<size_t>(count)) {
    return invalid_argument(fmt::format("constant {} holds {} elements", to_text(type), held));
  }
  if (!is_real(type.dtype) && type.shape.size() <= 1 && data.ints.size() <= kMostKnown) {
    value.known = KnownInts(data.ints.begin(), data.ints.end());
  }
  value.type = std::move(type);
  value.constant = std::make_shared<const ConstantData>(std::move(data));
  values_.push_back(std::move(value));
  return static_cast<ValueId>(values_.size()) - 1;
}

Status Graph::add_objective(std::string name, ValueId sum, ValueId count) {
  for (const Objective& each : objectives_) {
    if (each.name == name) return invalid_argument("objective '" + name + "' is declared twice");
  }
  for (const ValueId id : {sum, count}) {
    if (!has(id)) return invalid_argument("objective '" + name + "': value is not in this graph");
    if (!value(id).type.shape.empty() || !is_real(value(id).type.dtype)) {
      return invalid_argument("objective '" + name + "' needs scalar floats, got " +
                              to_text(value(id).type));
    }
  }
  objectives_.push_back({std::move(name), sum, count});
  return {};
}

void Graph::keep_objectives(const std::function<bool(const Objective&)>& keep) {
  std::erase_if(objectives_, [&](const Objective& each) { return !keep(each); });
}

Status Graph::add_output(std::string name, ValueId id) {
  if (!has(id)) return invalid_argument("output '" + name + "': value is not in this graph");
  if (find_output(name) != GR_NO_VALUE) {
    return invalid_argument("output '" + name + "' is declared twice");
  }
  outputs_.emplace_back(std::move(name), id);
  return {};
}

Status Graph::add_write(ValueId target, ValueId id) {
  if (!has(target) || !has(id)) return invalid_argument("a write needs values of this graph");
  const Value& to = value(target);
  if (to.source == Source::kNode || to.source == Source::kConstant) {
    return invalid_argument("only parameters, buffers and states can be written");
  }
  if (!(to.type == value(id).type)) {
    return invalid_argument("'" + to.name + "' is " + to_text(to.type) + ", its new value is " +
                            to_text(value(id).type));
  }
  writes_.push_back({target, id});
  return {};
}

Status Graph::push_stage(std::string_view name) {
  if (name.empty()) return invalid_argument("a stage needs a name");
  stage_stack_.push_back(stage_);
  const std::string outer = stage_name(stage_);
  stage_ = intern_stage(outer.empty() ? std::string(name) : outer + "." + std::string(name));
  return {};
}

Status Graph::pop_stage() {
  if (stage_stack_.empty()) return invalid_argument("pop_stage without a push_stage");
  stage_ = stage_stack_.back();
  stage_stack_.pop_back();
  return {};
}

int32_t Graph::intern_stage(const std::string& dotted) {
  if (dotted.empty()) return -1;
  for (size_t k = 0; k < stages_.size(); ++k) {
    if (stages_[k] == dotted) return static_cast<int32_t>(k);
  }
  stages_.push_back(dotted);
  return static_cast<int32_t>(stages_.size()) - 1;
}

ValueId Graph::rng() {
  const ValueId known = find_source("rng");
  if (known != GR_NO_VALUE) return known;
  Value value;
  value.source = Source::kScalar;
  value.name = "rng";
  value.type = {GR_INT64, {Dim(3)}};
  auto made = add_source(std::move(value));
  GR_CHECK(made.ok());
  return *made;
}

int64_t Graph::next_random_stream() {
  const std::string place = stage_name(stage_) + "#" + std::to_string(random_nodes_[stage_]++);
  return static_cast<int64_t>(gr_hash_text(place.c_str()) & 0xffffffffu);
}

ValueId Graph::find_source(std::string_view name) const {
  const auto at = sources_.find(name);
  return at != sources_.end() ? at->second : static_cast<ValueId>(GR_NO_VALUE);
}

ValueId Graph::find_output(std::string_view name) const {
  for (const auto& [each, id] : outputs_) {
    if (each == name) return id;
  }
  return GR_NO_VALUE;
}

}  // namespace gradrack
