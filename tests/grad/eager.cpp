// SPDX-License-Identifier: Apache-2.0
// Eager: see eager.hpp. One Pass evaluates one graph; a decomposed node is a Pass over a small
// graph.
#include "tests/grad/eager.hpp"

#include <deque>
#include <optional>

#include "core/graph/replay.hpp"
#include "core/plugin/instance.hpp"
#include "core/plugin/library.hpp"

namespace gradrack::test {

namespace {

/// Shape of a value as the backend sees it.
struct BoundType {
  gr_dtype_t dtype = GR_FLOAT32;
  std::vector<int64_t> dims;
};

/// A DLTensor over a HostTensor that outlives it. Data is 64-byte aligned storage of its own.
class Border {
 public:
  explicit Border(const HostTensor& from) : shape_(from.dims), strides_(from.dims.size(), 1) {
    for (size_t k = shape_.size(); k-- > 1;) strides_[k - 1] = strides_[k] * shape_[k];
    storage_.resize(from.bytes.size() + 64);
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    data_ = storage_.data() + (64 - address % 64) % 64;
    if (!from.bytes.empty()) std::memcpy(data_, from.bytes.data(), from.bytes.size());
    tensor_ = {data_,
               {kDLCPU, 0},
               static_cast<int32_t>(shape_.size()),
               gr_dl_dtype(from.dtype),
               shape_.data(),
               strides_.data(),
               0};
  }
  Border(const Border&) = delete;
  Border& operator=(const Border&) = delete;
  DLTensor* tensor() { return &tensor_; }
  void copy_to(HostTensor* to) const {
    if (!to->bytes.empty()) std::memcpy(to->bytes.data(), data_, to->bytes.size());
  }

 private:
  std::vector<int64_t> shape_, strides_;
  std::vector<char> storage_;
  char* data_ = nullptr;
  DLTensor tensor_ = {};
};

gr_attr_t attr_view(const std::string& name, const AttrValue& value) {
  gr_attr_t attr = {};
  attr.name = name.c_str();
  attr.type = static_cast<int32_t>(value.index()) + 1;
  if (const auto* i = std::get_if<int64_t>(&value)) attr.i = *i;
  if (const auto* f = std::get_if<double>(&value)) attr.f = *f;
  if (const auto* s = std::get_if<std::string>(&value)) attr.s = s->c_str();
  if (const auto* v = std::get_if<std::vector<int64_t>>(&value)) {
    attr.ints = v->data();
    attr.count = v->size();
  }
  if (const auto* v = std::get_if<std::vector<double>>(&value)) {
    attr.floats = v->data();
    attr.count = v->size();
  }
  return attr;
}

HostTensor constant_tensor(const Value& value) {
  std::vector<int64_t> dims;
  for (const Dim& dim : value.type.shape) dims.push_back(dim.number());
  return is_real(value.type.dtype)
             ? HostTensor::reals(value.type.dtype, dims, value.constant->reals)
             : HostTensor::ints(value.type.dtype, dims, value.constant->ints);
}

}  // namespace

/// Evaluation of one graph.
class Eager::Pass {
 public:
  Pass(Eager& eager, const Graph& graph, const Bindings& bindings,
       const std::map<std::string, HostTensor>& sources)
      : eager_(eager),
        graph_(graph),
        bindings_(bindings),
        sources_(sources),
        values_(graph.values().size()) {}

  Result<HostTensor> value(ValueId id) {
    GR_TRY(need(id));
    return *values_[static_cast<size_t>(id)];
  }

 private:
  /// A node in C structs, with what they point to.
  struct View {
    std::deque<BoundType> types;
    std::vector<gr_value_type_t> inputs, outputs, border_inputs;
    std::vector<ValueId> border_ids;
    std::vector<gr_attr_t> attrs;
    gr_node_view_t node = {};
  };

  Result<BoundType> bound(ValueId id) const {
    const Type& type = graph_.value(id).type;
    GR_ASSIGN(std::vector<int64_t> dims, bind(type.shape, bindings_));
    return BoundType{type.dtype, std::move(dims)};
  }

  Status need(ValueId id) {
    auto& slot = values_[static_cast<size_t>(id)];
    if (slot.has_value()) return {};
    const Value& value = graph_.value(id);
    if (value.source == Source::kConstant) {
      slot = constant_tensor(value);
      return {};
    }
    if (value.source != Source::kNode) return read_source(value, &slot);
    if (value.known.has_value()) return bind_known(id, *value.known, &slot);
    const Node& node = graph_.nodes()[static_cast<size_t>(value.node)];
    return run_node(node).with_context(node.op->full_name());
  }

  Status read_source(const Value& value, std::optional<HostTensor>* slot) const {
    const auto at = sources_.find(value.name);
    if (at == sources_.end()) return not_found("no contents given for '" + value.name + "'");
    GR_ASSIGN(const std::vector<int64_t> dims, bind(value.type.shape, bindings_));
    if (at->second.dims != dims || at->second.dtype != value.type.dtype) {
      return invalid_argument("contents of '" + value.name + "' are not " + to_text(value.type));
    }
    *slot = at->second;
    return {};
  }

  Status bind_known(ValueId id, const KnownInts& known, std::optional<HostTensor>* slot) const {
    GR_ASSIGN(const BoundType type, bound(id));
    GR_ASSIGN(const std::vector<int64_t> numbers, bind(known, bindings_));
    *slot = HostTensor::ints(type.dtype, type.dims, numbers);
    return {};
  }

  Status need_inputs(const Node& node) {
    for (const ValueId id : node.inputs) {
      if (id != GR_NO_VALUE) GR_TRY(need(id));
    }
    return {};
  }

  Status run_node(const Node& node) {
    GR_TRY(need_inputs(node));
    if (node.op->view) {
      GR_ASSIGN(const BoundType type, bound(node.outputs[0]));
      HostTensor out = *values_[static_cast<size_t>(node.inputs[0])];
      out.dims = type.dims;
      if (static_cast<size_t>(out.count() * gr_dtype_bytes(out.dtype)) != out.bytes.size()) {
        return internal_error("a view has other bytes than what it views");
      }
      values_[static_cast<size_t>(node.outputs[0])] = std::move(out);
      return {};
    }
    View view;
    GR_TRY(make_view(node, &view));
    const bool avoid = node.op->decompose && eager_.avoid_ && eager_.avoid_(*node.op);
    if (!avoid) {
      GR_ASSIGN(const bool yes, claimed(view));
      if (yes) return launch(node, view);
    }
    if (!node.op->decompose) return unsupported("not claimed (" + reason_ + "), no decomposition");
    return decompose(node);
  }

  Status make_view(const Node& node, View* view) {
    const auto type_of = [&](ValueId id, gr_value_type_t* out) -> Status {
      *out = {id, GR_FLOAT32, 0, 0, nullptr, nullptr};
      if (id == GR_NO_VALUE) return {};
      GR_ASSIGN(const BoundType type, bound(id));
      view->types.push_back(type);
      const BoundType& kept = view->types.back();
      *out = {id, kept.dtype,       static_cast<uint32_t>(kept.dims.size()),
              0,  kept.dims.data(), nullptr};
      const Value& value = graph_.value(id);
      const bool constant = value.source == Source::kConstant || value.known.has_value();
      const auto& held = values_[static_cast<size_t>(id)];
      if (constant && held.has_value()) out->constant = held->bytes.data();
      return {};
    };
    for (const ValueId id : node.inputs) {
      gr_value_type_t type;
      GR_TRY(type_of(id, &type));
      view->inputs.push_back(type);
      if (id == GR_NO_VALUE) continue;
      view->border_inputs.push_back(type);
      view->border_ids.push_back(id);
    }
    for (const ValueId id : node.outputs) {
      gr_value_type_t type;
      GR_TRY(type_of(id, &type));
      view->outputs.push_back(type);
    }
    for (const auto& [name, value] : node.attrs.items()) {
      view->attrs.push_back(attr_view(name, value));
    }
    gr_node_view_t& out = view->node;
    out.struct_size = sizeof out;
    out.kind = node.kind;
    out.domain = node.op->domain.c_str();
    out.op = node.op->name.c_str();
    out.inputs = view->inputs.data();
    out.outputs = view->outputs.data();
    out.attrs = view->attrs.data();
    out.input_count = static_cast<uint32_t>(view->inputs.size());
    out.output_count = static_cast<uint32_t>(view->outputs.size());
    out.attr_count = static_cast<uint32_t>(view->attrs.size());
    return {};
  }

  Result<bool> claimed(const View& view) {
    gr_claim_t claim = {};
    claim.struct_size = sizeof claim;
    gr_error_t err = {};
    const gr_backend_t& b = eager_.backend_;
    GR_TRY(status_from(b.claim(b.self, &view.node, sizeof view.node, 1, &claim, sizeof claim, &err),
                       err));
    reason_ = claim.reason;
    return claim.verdict == GR_CLAIM_YES;
  }

  Status launch(const Node& node, const View& view) {
    gr_group_t group = {};
    group.struct_size = sizeof group;
    group.node_stride = sizeof view.node;
    group.nodes = &view.node;
    group.node_count = 1;
    group.inputs = view.border_inputs.data();
    group.input_count = static_cast<uint32_t>(view.border_inputs.size());
    group.outputs = view.outputs.data();
    group.output_count = static_cast<uint32_t>(view.outputs.size());
    const gr_backend_t& b = eager_.backend_;
    gr_kernel_t* kernel = nullptr;
    gr_kernel_info_t info = {};
    info.struct_size = sizeof info;
    gr_error_t err = {};
    GR_TRY(status_from(b.prepare(b.self, &group, &kernel, &info, &err), err));
    const Status status = launch_prepared(node, view, kernel, info);
    b.kernel_destroy(b.self, kernel);
    return status;
  }

  Status launch_prepared(const Node& node, const View& view, gr_kernel_t* kernel,
                         const gr_kernel_info_t& info) {
    std::deque<Border> borders;
    std::vector<const DLTensor*> inputs;
    std::vector<DLTensor*> outputs;
    for (const ValueId id : view.border_ids) {
      inputs.push_back(borders.emplace_back(*values_[static_cast<size_t>(id)]).tensor());
    }
    std::vector<HostTensor> results;
    for (const gr_value_type_t& type : view.outputs) {
      results.emplace_back(type.dtype, std::vector<int64_t>(type.dims, type.dims + type.rank));
      outputs.push_back(borders.emplace_back(results.back()).tensor());
    }
    HostTensor scratch(GR_INT8, {info.workspace_bytes});
    Border workspace(scratch);
    const gr_backend_t& b = eager_.backend_;
    gr_error_t err = {};
    GR_TRY(status_from(b.launch(b.self, kernel, inputs.data(), outputs.data(), workspace.tensor(),
                                eager_.stream_, &err),
                       err));
    GR_TRY(status_from(b.stream_synchronize(b.self, eager_.stream_, &err), err));
    for (size_t k = 0; k < results.size(); ++k) {
      borders[inputs.size() + k].copy_to(&results[k]);
      values_[static_cast<size_t>(node.outputs[k])] = std::move(results[k]);
    }
    return {};
  }

  /// Runs the decomposition as a graph of its own, with numbers for dims.
  Status decompose(const Node& node) {
    Graph small(graph_.ops());
    std::map<std::string, HostTensor> sources;
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      if (id == GR_NO_VALUE) {
        inputs.push_back(GR_NO_VALUE);
        continue;
      }
      GR_ASSIGN(const ValueId made, import(small, id, &sources));
      inputs.push_back(made);
    }
    GR_ASSIGN(const std::vector<ValueId> outputs,
              emit_decomposition(small, *node.op, inputs, node.attrs, node.outputs.size()));
    Pass pass(eager_, small, {}, sources);
    for (size_t k = 0; k < outputs.size(); ++k) {
      GR_ASSIGN(HostTensor value, pass.value(outputs[k]));
      GR_ASSIGN(const BoundType type, bound(node.outputs[k]));
      if (value.dims != type.dims || value.dtype != type.dtype) {
        return internal_error("the decomposition gives output " + std::to_string(k) +
                              " another type than the shape rule");
      }
      values_[static_cast<size_t>(node.outputs[k])] = std::move(value);
    }
    return {};
  }

  /// A value of this graph as a constant or input of `small`.
  Result<ValueId> import(Graph& small, ValueId id, std::map<std::string, HostTensor>* sources) {
    const Value& value = graph_.value(id);
    const HostTensor& held = *values_[static_cast<size_t>(id)];
    const Type type{held.dtype, Shape(held.dims.begin(), held.dims.end())};
    if (value.source == Source::kConstant) return small.add_constant(type, *value.constant);
    if (value.known.has_value()) {
      ConstantData data;
      GR_ASSIGN(data.ints, bind(*value.known, bindings_));
      return small.add_constant(type, std::move(data));
    }
    Value input;
    input.source = Source::kInput;
    input.type = type;
    input.name = "in" + std::to_string(id);
    const ValueId known = small.find_source(input.name);
    if (known != GR_NO_VALUE) return known;
    (*sources)[input.name] = held;
    return small.add_source(std::move(input));
  }

  Eager& eager_;
  const Graph& graph_;
  const Bindings& bindings_;
  const std::map<std::string, HostTensor>& sources_;
  std::vector<std::optional<HostTensor>> values_;
  std::string reason_;
};

Result<std::unique_ptr<Eager>> Eager::open(const std::string& name) {
  GR_ASSIGN(Library library, load_library(std::string(GRADRACK_PLUGIN_DIR) + "/" + name + ".so"));
  // Factories and options live as long as the process: the backend points into them.
  auto* kept = new Library(std::move(library));
  for (const Factory& factory : kept->factories) {
    if (factory.kind != "backend") continue;
    GR_ASSIGN(OptionValues options,
              check_options({"backend", name, {}, false}, factory.options, {}, Place()));
    auto* values = new OptionValues(std::move(options));
    std::unique_ptr<Eager> eager(new Eager);
    eager->backend_.struct_size = sizeof eager->backend_;
    gr_error_t err = {};
    gr_backend_t& b = eager->backend_;
    GR_TRY(status_from(factory.create(factory.host, &values->abi(), &b, &err), err));
    GR_TRY(status_from(b.stream_create(b.self, &eager->stream_, &err), err));
    return eager;
  }
  return not_found(kept->path + " offers no backend");
}

Eager::~Eager() {
  if (stream_ != nullptr) backend_.stream_destroy(backend_.self, stream_);
  if (backend_.destroy != nullptr) backend_.destroy(backend_.self);
}

Result<std::vector<HostTensor>> Eager::run(const Graph& graph, const Bindings& bindings,
                                           const std::map<std::string, HostTensor>& sources,
                                           const std::vector<ValueId>& wanted) {
  Pass pass(*this, graph, bindings, sources);
  std::vector<HostTensor> out;
  for (const ValueId id : wanted) {
    if (!graph.has(id)) return invalid_argument("a wanted value is not in the graph");
    GR_ASSIGN(HostTensor value, pass.value(id));
    out.push_back(std::move(value));
  }
  return out;
}

}  // namespace gradrack::test
