// SPDX-License-Identifier: Apache-2.0
// Importer: see importer.hpp.
#include "importer.hpp"

#include <algorithm>

#include "fields.hpp"
#include "fold.hpp"
#include "rules.hpp"

namespace gradrack::onnx {

namespace {

namespace Kind = AttributeAttributeType;

// Of files before IR 3 kept the kind out; then what is filled tells it.
int32_t kind_of(const AttributeMessage& attribute) {
  if (attribute.type != Kind::UNDEFINED) return attribute.type;
  if (!attribute.ints.empty()) return Kind::INTS;
  if (!attribute.floats.empty()) return Kind::FLOATS;
  if (!attribute.s.empty()) return Kind::STRING;
  if (attribute.f != 0) return Kind::FLOAT;
  return Kind::INT;
}

}  // namespace

Value constant_of(GraphBuilder& g, const Tensor& tensor, std::string_view what) {
  const gr_dtype_t dtype = host_dtype(tensor.type(), what);
  if (tensor.is_filled()) {
    const Value one = g.scalar(tensor.fill(), tensor.is_real() ? dtype : GR_FLOAT64);
    return g.node("Expand",
                  {tensor.is_real() ? one : g.cast(one, dtype), ints_value(g, tensor.dims())});
  }
  // Bytes of a file lie at any address, and any number may stand for true.
  std::vector<int64_t> aligned((tensor.content().size() + 7) / 8);
  char* const bytes = reinterpret_cast<char*>(aligned.data());
  std::copy(tensor.content().begin(), tensor.content().end(), bytes);
  if (dtype == GR_BOOL) {
    std::transform(bytes, bytes + tensor.content().size(), bytes, [](char c) { return c != 0; });
  }
  return g.constant(aligned.data(), dtype, tensor.dims());
}

Value Importer::value(const std::string& name) {
  const auto at = slots_.find(name);
  sdk::require(at != slots_.end(), GR_INTERNAL, "file", "'", name, "' was never built");
  Slot& slot = at->second;
  if (!slot.value.has_value()) {
    slot.value = constant_of(graph_, *slot.tensor, name);
  }
  return *slot.value;
}

const Tensor* Importer::tensor(const std::string& name) const {
  const auto at = slots_.find(name);
  return at != slots_.end() && at->second.tensor.has_value() ? &*at->second.tensor : nullptr;
}

void Importer::update(const std::string& name, Value content) {
  graph_.update_buffer(value(name), content);
}

void Importer::add(const Node& node) {
  try {
    build(node);
  } catch (const sdk::Error& e) {
    // The host knows no such operator: this plugin cannot say the file.
    const int32_t code = e.code() == GR_NOT_FOUND ? int32_t{GR_UNSUPPORTED} : e.code();
    throw sdk::Error(code, "file", node.text() + ": " + e.what());
  }
}

void Importer::build(const Node& node) {
  NodeImport import(*this, node);
  if (fold(import)) return;
  check_supported(node);
  if (add_adapted(import)) return;
  if (const Rule rule = find_rule(node)) return rule(import);
  if (!node.domain.empty()) import.refuse("operators of domain '", node.domain, "' are not read");
  import.emit(node.op.c_str(), import.inputs(), import.attrs());
}

/// A product with an adapted weight: MatMul, or Gemm, whose alpha the adapter gets too.
bool Importer::add_adapted(NodeImport& n) {
  const Node& node = n.node();
  if (adapters_.empty() || node.inputs.size() < 2) return false;
  const auto adapter = adapters_.find(node.inputs[1]);
  if (adapter == adapters_.end() || (node.op != "MatMul" && node.op != "Gemm")) return false;
  n.require(n.attr("transA", int64_t{0}) == 0,
            "multiplies by a transpose from the left: it takes "
            "no adapter");
  Value x = n.in(0);
  const double scale = adapter->second.scale * n.attr("alpha", 1.0);
  const Value plain = graph_.node(node.op.c_str(), n.inputs(), n.attrs());
  const Value low = graph_.matmul(graph_.matmul(x, adapter->second.down), adapter->second.up);
  n.out(0, graph_.add(plain, graph_.mul(low, graph_.scalar(scale, graph_.dtype_of(low)))));
  return true;
}

Value NodeImport::in(size_t k) { return has(k) ? importer_.value(node_.inputs[k]) : Value{}; }

std::vector<Value> NodeImport::inputs() {
  std::vector<Value> values;
  for (size_t k = 0; k < input_count(); ++k) values.push_back(in(k));
  return values;
}

const Tensor* NodeImport::known(size_t k) const {
  return has(k) ? importer_.tensor(node_.inputs[k]) : nullptr;
}

std::vector<int64_t> NodeImport::ints(size_t k) const {
  const Tensor* const tensor = known(k);
  if (tensor == nullptr) {
    refuse("input ", k, has(k) ? " '" + node_.inputs[k] + "'" : "",
           " must be known when the file is read, so that shapes are: fix the model's dims with "
           "`dims`");
  }
  return tensor->ints();
}

int64_t NodeImport::attr(const char* name, int64_t otherwise) const {
  const AttributeMessage* const attribute = node_.find(name);
  return attribute != nullptr ? attribute->i : otherwise;
}

double NodeImport::attr(const char* name, double otherwise) const {
  const AttributeMessage* const attribute = node_.find(name);
  return attribute != nullptr ? attribute->f : otherwise;
}

std::string NodeImport::attr(const char* name, const char* otherwise) const {
  const AttributeMessage* const attribute = node_.find(name);
  return attribute != nullptr ? attribute->s : otherwise;
}

std::vector<int64_t> NodeImport::attr_ints(const char* name) const {
  const AttributeMessage* const attribute = node_.find(name);
  return attribute != nullptr ? attribute->ints : std::vector<int64_t>();
}

std::vector<sdk::Attr> NodeImport::attrs(std::initializer_list<const char*> but) const {
  std::vector<sdk::Attr> out;
  for (const AttributeMessage& attribute : node_.attributes) {
    const char* const name = attribute.name.c_str();
    if (std::find(but.begin(), but.end(), attribute.name) != but.end()) continue;
    switch (kind_of(attribute)) {
      case Kind::INT:
        out.emplace_back(name, attribute.i);
        break;
      case Kind::FLOAT:
        out.emplace_back(name, attribute.f);
        break;
      case Kind::STRING:
        out.emplace_back(name, attribute.s.c_str());
        break;
      case Kind::INTS:
        out.emplace_back(name, attribute.ints);
        break;
      case Kind::FLOATS:
        out.emplace_back(name,
                         std::vector<double>(attribute.floats.begin(), attribute.floats.end()));
        break;
      default:
        refuse("attribute '", attribute.name,
               "' is a tensor, a graph or a list of texts, which this operator does not take here");
    }
  }
  return out;
}

void NodeImport::out(size_t k, Value value) {
  if (wants(k)) importer_.define(node_.outputs[k], value);
}

void NodeImport::out(size_t k, Tensor tensor) {
  if (wants(k)) importer_.define(node_.outputs[k], std::move(tensor));
}

void NodeImport::emit(const char* op, const std::vector<Value>& inputs,
                      const std::vector<sdk::Attr>& attrs) {
  size_t count = output_count();
  while (count > 1 && node_.outputs[count - 1].empty()) --count;
  const std::vector<Value> made = g().nodes(op, inputs, attrs, static_cast<uint32_t>(count));
  for (size_t k = 0; k < made.size(); ++k) out(k, made[k]);
}

}  // namespace gradrack::onnx
