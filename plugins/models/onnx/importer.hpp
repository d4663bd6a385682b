// SPDX-License-Identifier: Apache-2.0
// Importer: the nodes of a model as calls of the host's graph builder.
//
// Between the checked Model and the host. Each name of the file has a tensor (known while the graph
// is built), a value of the graph, or both; a node whose inputs are all known is folded where it
// can be, and otherwise said by the newest meaning of its operator: rules.hpp has what differs in
// older operator sets, everything else is passed on as it is. Invariant: an error names the node,
// its operator and its operator set.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gradrack/graph.hpp"
#include "model.hpp"

namespace gradrack::onnx {

using sdk::GraphBuilder;
using sdk::Value;

class NodeImport;

/// In which form nodes that differ between training and use are built.
struct Forms {
  bool training = false;    ///< Dropout drops
  bool batch_norm = false;  ///< BatchNormalization normalises by the batch, and updates its buffers
  bool free_batch = false;  ///< Reshape to a batch of fixed size takes any
};

/// What is added to a product with a weight that stays as it is: scale * (x down) up.
struct Adapter {
  Value down, up;
  double scale = 1;
};

class Importer {
 public:
  Importer(const Model& model, GraphBuilder& graph, Forms forms)
      : model_(model), graph_(graph), forms_(forms) {}

  GraphBuilder& graph() { return graph_; }
  const Model& model() const { return model_; }
  const Forms& forms() const { return forms_; }

  void define(const std::string& name, Value value) { slots_[name].value = value; }
  void define(const std::string& name, Tensor tensor) { slots_[name].tensor = std::move(tensor); }
  /// The value of that name; a tensor becomes a constant of the graph on first use.
  Value value(const std::string& name);
  /// What is known of it while building; null: only a run will tell.
  const Tensor* tensor(const std::string& name) const;

  /// Elements that folding has read and made so far.
  int64_t folded() const { return folded_; }
  void note_folded(size_t elements) { folded_ += static_cast<int64_t>(elements); }

  /// Builds one node. Errors name it.
  void add(const Node& node);
  /// A buffer of batch statistics: `value` becomes the content of the one named `name`.
  void update(const std::string& name, Value value);
  /// Products with the weight `name` get an adapter.
  void adapt(const std::string& name, const Adapter& adapter) { adapters_[name] = adapter; }

 private:
  struct Slot {
    std::optional<Value> value;
    std::optional<Tensor> tensor;
  };

  void build(const Node& node);
  bool add_adapted(NodeImport& n);

  const Model& model_;
  GraphBuilder& graph_;
  Forms forms_;
  int64_t folded_ = 0;
  std::map<std::string, Slot, std::less<>> slots_;
  std::map<std::string, Adapter, std::less<>> adapters_;
};

/// The tensor as a constant of the graph; `what` names it in errors.
Value constant_of(GraphBuilder& g, const Tensor& tensor, std::string_view what);

/// One node in the making: what rules see.
class NodeImport {
 public:
  NodeImport(Importer& importer, const Node& node) : importer_(importer), node_(node) {}

  GraphBuilder& g() { return importer_.graph(); }
  Importer& importer() { return importer_; }
  const Node& node() const { return node_; }
  int64_t version() const { return node_.version; }

  size_t input_count() const { return node_.inputs.size(); }
  bool has(size_t k) const { return k < node_.inputs.size() && !node_.inputs[k].empty(); }
  /// Input k; an empty value when it is left out.
  Value in(size_t k);
  std::vector<Value> inputs();
  /// Input k where it is known, else null.
  const Tensor* known(size_t k) const;
  /// Integers of input k, which must be known.
  std::vector<int64_t> ints(size_t k) const;
  gr_type_t type(Value value) { return g().type_of(value); }

  bool has_attr(const char* name) const { return node_.find(name) != nullptr; }
  int64_t attr(const char* name, int64_t otherwise) const;
  double attr(const char* name, double otherwise) const;
  std::string attr(const char* name, const char* otherwise) const;
  std::vector<int64_t> attr_ints(const char* name) const;
  /// All attributes but those named, as the host takes them.
  std::vector<sdk::Attr> attrs(std::initializer_list<const char*> but = {}) const;

  size_t output_count() const { return node_.outputs.size(); }
  bool wants(size_t k) const { return k < node_.outputs.size() && !node_.outputs[k].empty(); }
  void out(size_t k, Value value);
  void out(size_t k, Tensor tensor);
  /// The operator `op` with these inputs and attributes, its outputs being the node's.
  void emit(const char* op, const std::vector<Value>& inputs, const std::vector<sdk::Attr>& attrs);

  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    throw sdk::Error(GR_UNSUPPORTED, "file", sdk::text(parts...));
  }
  template <typename... Parts>
  void require(bool good, const Parts&... parts) const {
    sdk::require(good, GR_INVALID_ARGUMENT, "file", parts...);
  }

 private:
  Importer& importer_;
  const Node& node_;
};

}  // namespace gradrack::onnx
