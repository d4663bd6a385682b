// SPDX-License-Identifier: Apache-2.0
// Messages from their wire form: see message.hpp. One function a message.
#include "message.hpp"

#include "fields.hpp"
#include "wire.hpp"

namespace gradrack::onnx {

namespace {

std::pair<std::string, std::string> read_entry(std::string_view bytes) {
  WireReader in(bytes, "StringStringEntryProto");
  std::pair<std::string, std::string> entry;
  while (in.next()) {
    if (in.field() == StringStringEntryField::key) entry.first = in.text();
    if (in.field() == StringStringEntryField::value) entry.second = in.text();
  }
  return entry;
}

OpsetMessage read_opset(std::string_view bytes) {
  WireReader in(bytes, "OperatorSetIdProto");
  OpsetMessage opset;
  while (in.next()) {
    if (in.field() == OperatorSetIdField::domain) opset.domain = in.text();
    if (in.field() == OperatorSetIdField::version) opset.version = in.integer();
  }
  return opset;
}

TensorMessage read_tensor(std::string_view bytes) {
  namespace F = TensorField;
  WireReader in(bytes, "TensorProto");
  TensorMessage tensor;
  while (in.next()) {
    switch (in.field()) {
      case F::name:
        tensor.name = in.text();
        break;
      case F::data_type:
        tensor.type = static_cast<int32_t>(in.integer());
        break;
      case F::dims:
        in.append_to(&tensor.dims);
        break;
      case F::raw_data:
        tensor.raw = in.bytes();
        break;
      case F::float_data:
        in.append_to(&tensor.floats);
        break;
      case F::double_data:
        in.append_to(&tensor.doubles);
        break;
      case F::int32_data:
      case F::int64_data:
      case F::uint64_data:
        in.append_to(&tensor.ints);
        break;
      case F::string_data:
        tensor.has_strings = true;
        break;
      case F::external_data:
        tensor.external.push_back(read_entry(in.bytes()));
        break;
      case F::data_location:
        tensor.is_external = in.integer() == TensorDataLocation::EXTERNAL;
        break;
      default:
        break;
    }
  }
  return tensor;
}

AttributeMessage read_attribute(std::string_view bytes) {
  namespace F = AttributeField;
  WireReader in(bytes, "AttributeProto");
  AttributeMessage attribute;
  while (in.next()) {
    switch (in.field()) {
      case F::name:
        attribute.name = in.text();
        break;
      case F::ref_attr_name:
        attribute.reference = in.text();
        break;
      case F::type:
        attribute.type = static_cast<int32_t>(in.integer());
        break;
      case F::i:
        attribute.i = in.integer();
        break;
      case F::f:
        attribute.f = static_cast<double>(in.real());
        break;
      case F::s:
        attribute.s = in.text();
        break;
      case F::ints:
        in.append_to(&attribute.ints);
        break;
      case F::floats:
        in.append_to(&attribute.floats);
        break;
      case F::strings:
        attribute.strings.push_back(in.text());
        break;
      case F::t:
      case F::tensors:
        attribute.tensors.push_back(read_tensor(in.bytes()));
        break;
      case F::g:
      case F::graphs:
        attribute.has_graph = true;
        break;
      default:
        break;
    }
  }
  return attribute;
}

NodeMessage read_node(std::string_view bytes) {
  namespace F = NodeField;
  WireReader in(bytes, "NodeProto");
  NodeMessage node;
  while (in.next()) {
    switch (in.field()) {
      case F::name:
        node.name = in.text();
        break;
      case F::domain:
        node.domain = in.text();
        break;
      case F::op_type:
        node.op = in.text();
        break;
      case F::input:
        node.inputs.push_back(in.text());
        break;
      case F::output:
        node.outputs.push_back(in.text());
        break;
      case F::attribute:
        node.attributes.push_back(read_attribute(in.bytes()));
        break;
      default:
        break;
    }
  }
  if (node.domain == "ai.onnx") node.domain.clear();
  return node;
}

DimMessage read_dim(std::string_view bytes) {
  WireReader in(bytes, "TensorShapeProto.Dimension");
  DimMessage dim;
  while (in.next()) {
    if (in.field() == TensorShapeDimensionField::dim_value) {
      dim.value = in.integer();
      dim.has_value = true;
    }
    if (in.field() == TensorShapeDimensionField::dim_param) dim.symbol = in.text();
  }
  return dim;
}

void read_tensor_type(std::string_view bytes, ValueMessage* value) {
  WireReader in(bytes, "TypeProto.Tensor");
  while (in.next()) {
    if (in.field() == TypeTensorField::elem_type) value->type = static_cast<int32_t>(in.integer());
    if (in.field() != TypeTensorField::shape) continue;
    value->has_shape = true;
    WireReader shape(in.bytes(), "TensorShapeProto");
    while (shape.next()) {
      if (shape.field() == TensorShapeField::dim) value->dims.push_back(read_dim(shape.bytes()));
    }
  }
}

void read_type(std::string_view bytes, ValueMessage* value) {
  namespace F = TypeField;
  WireReader in(bytes, "TypeProto");
  while (in.next()) {
    switch (in.field()) {
      case F::tensor_type:
        value->kind = "tensor";
        read_tensor_type(in.bytes(), value);
        break;
      case F::sequence_type:
        value->kind = "sequence";
        break;
      case F::map_type:
        value->kind = "map";
        break;
      case F::optional_type:
        value->kind = "optional";
        break;
      case F::sparse_tensor_type:
        value->kind = "sparse tensor";
        break;
      default:
        break;
    }
  }
}

ValueMessage read_value(std::string_view bytes) {
  WireReader in(bytes, "ValueInfoProto");
  ValueMessage value;
  value.kind = "no type";
  while (in.next()) {
    if (in.field() == ValueInfoField::name) value.name = in.text();
    if (in.field() == ValueInfoField::type) read_type(in.bytes(), &value);
  }
  return value;
}

GraphMessage read_graph(std::string_view bytes) {
  namespace F = GraphField;
  WireReader in(bytes, "GraphProto");
  GraphMessage graph;
  while (in.next()) {
    switch (in.field()) {
      case F::name:
        graph.name = in.text();
        break;
      case F::node:
        graph.nodes.push_back(read_node(in.bytes()));
        break;
      case F::initializer:
        graph.initializers.push_back(read_tensor(in.bytes()));
        break;
      case F::input:
        graph.inputs.push_back(read_value(in.bytes()));
        break;
      case F::output:
        graph.outputs.push_back(read_value(in.bytes()));
        break;
      case F::sparse_initializer:
        graph.has_sparse = true;
        break;
      default:
        break;
    }
  }
  return graph;
}

FunctionMessage read_function(std::string_view bytes) {
  namespace F = FunctionField;
  WireReader in(bytes, "FunctionProto");
  FunctionMessage function;
  while (in.next()) {
    switch (in.field()) {
      case F::name:
        function.name = in.text();
        break;
      case F::domain:
        function.domain = in.text();
        break;
      case F::input:
        function.inputs.push_back(in.text());
        break;
      case F::output:
        function.outputs.push_back(in.text());
        break;
      case F::attribute_proto:
        function.defaults.push_back(read_attribute(in.bytes()));
        break;
      case F::node:
        function.nodes.push_back(read_node(in.bytes()));
        break;
      case F::opset_import:
        function.opsets.push_back(read_opset(in.bytes()));
        break;
      default:
        break;
    }
  }
  return function;
}

}  // namespace

ModelMessage read_model_message(std::string_view bytes) {
  namespace F = ModelField;
  WireReader in(bytes, "ModelProto");
  ModelMessage model;
  while (in.next()) {
    switch (in.field()) {
      case F::ir_version:
        model.ir_version = in.integer();
        break;
      case F::opset_import:
        model.opsets.push_back(read_opset(in.bytes()));
        break;
      case F::producer_name:
        model.producer = in.text();
        break;
      case F::producer_version:
        model.producer_version = in.text();
        break;
      case F::domain:
        model.domain = in.text();
        break;
      case F::model_version:
        model.model_version = in.integer();
        break;
      case F::doc_string:
        model.documentation = in.text();
        break;
      case F::metadata_props:
        model.metadata.push_back(read_entry(in.bytes()));
        break;
      case F::graph:
        model.graph = read_graph(in.bytes());
        model.has_graph = true;
        break;
      case F::functions:
        model.functions.push_back(read_function(in.bytes()));
        break;
      default:
        break;
    }
  }
  return model;
}

}  // namespace gradrack::onnx
