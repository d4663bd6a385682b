// SPDX-License-Identifier: Apache-2.0
// BuilderApi: see builder_api.hpp. One static function per slot of the table.
#include "core/graph/builder_api.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <new>
#include <tuple>

#include "gradrack/bfloat16.hpp"
#include "gradrack/float16.hpp"

namespace gradrack {

namespace {

BuilderApi& self(gr_graph_t* graph) { return *reinterpret_cast<BuilderApi*>(graph); }

bool is_identifier(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  for (const char c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

std::string text_or_empty(const char* text) { return text != nullptr ? text : ""; }

int32_t finish(const Result<ValueId>& result, gr_value_t* out, gr_error_t* err) {
  if (!result.ok()) return status_to(result.status(), err);
  *out = *result;
  return GR_OK;
}

template <typename Declaration>
Result<Value> source_from(BuilderApi& api, const Declaration* declaration, Source source) {
  Value value;
  value.source = source;
  value.name = text_or_empty(declaration->name);
  auto shape = api.shape_from(declaration->dims, declaration->rank);
  if (!shape.ok()) return shape.status().with_context("'" + value.name + "'");
  value.type = {declaration->dtype, *shape};
  return value;
}

int32_t add_input(gr_graph_t* graph, const gr_input_t* input, gr_value_t* out, gr_error_t* err) {
  auto value = source_from(self(graph), input, Source::kInput);
  if (!value.ok()) return status_to(value.status(), err);
  value->limit = input->limit;
  return finish(self(graph).graph().add_source(std::move(*value)), out, err);
}

int32_t add_stored(gr_graph_t* graph, const gr_parameter_t* parameter, Source source,
                   gr_value_t* out, gr_error_t* err) {
  auto value = source_from(self(graph), parameter, source);
  if (!value.ok()) return status_to(value.status(), err);
  for (const Dim& dim : value->type.shape) {
    if (!dim.is_number()) {
      return status_to(invalid_argument("'" + value->name + "' must have numbers as dims, got " +
                                        to_text(value->type.shape)),
                       err);
    }
  }
  value->role = parameter->role;
  value->init = parameter->init;
  return finish(self(graph).graph().add_source(std::move(*value)), out, err);
}

int32_t add_parameter(gr_graph_t* graph, const gr_parameter_t* parameter, gr_value_t* out,
                      gr_error_t* err) {
  return add_stored(graph, parameter, Source::kParameter, out, err);
}

int32_t add_buffer(gr_graph_t* graph, const gr_parameter_t* buffer, gr_value_t* out,
                   gr_error_t* err) {
  return add_stored(graph, buffer, Source::kBuffer, out, err);
}

int32_t update_buffer(gr_graph_t* graph, gr_value_t buffer, gr_value_t value, gr_error_t* err) {
  Graph& g = self(graph).graph();
  if (!g.has(buffer) || g.value(buffer).source != Source::kBuffer) {
    return gr_fail(err, GR_INVALID_ARGUMENT, "buffer",
                   "update_buffer wants a value made by buffer");
  }
  return status_to(g.add_write(buffer, value), err);
}

int32_t add_constant(gr_graph_t* graph, const DLTensor* tensor, gr_value_t* out, gr_error_t* err) {
  auto data = constant_from(*tensor);
  if (!data.ok()) return status_to(data.status(), err);
  Type type{gr_dtype_of(tensor->dtype), Shape(tensor->shape, tensor->shape + tensor->ndim)};
  return finish(self(graph).graph().add_constant(std::move(type), std::move(*data)), out, err);
}

Result<Attrs> attrs_from(const gr_node_t& node) {
  Attrs attrs;
  for (uint32_t k = 0; k < node.attr_count; ++k) {
    const gr_attr_t& a = node.attrs[k];
    switch (a.type) {
      case GR_ATTR_INT:
        attrs.set(a.name, a.i);
        break;
      case GR_ATTR_FLOAT:
        attrs.set(a.name, a.f);
        break;
      case GR_ATTR_STRING:
        attrs.set(a.name, text_or_empty(a.s));
        break;
      case GR_ATTR_INTS:
        attrs.set(a.name, std::vector<int64_t>(a.ints, a.ints + a.count));
        break;
      case GR_ATTR_FLOATS:
        attrs.set(a.name, std::vector<double>(a.floats, a.floats + a.count));
        break;
      default:
        return invalid_argument(fmt::format("attribute '{}' has unknown type {}", a.name, a.type));
    }
  }
  return attrs;
}

int32_t add_node(gr_graph_t* graph, const gr_node_t* node, gr_value_t* outputs, gr_error_t* err) {
  auto attrs = attrs_from(*node);
  if (!attrs.ok()) return status_to(attrs.status(), err);
  if (node->output_count == 0) {
    return gr_fail(err, GR_INVALID_ARGUMENT, node->op, "ask for at least one output");
  }
  auto made = self(graph).graph().add_node(
      text_or_empty(node->domain), text_or_empty(node->op),
      std::vector<ValueId>(node->inputs, node->inputs + node->input_count), std::move(*attrs),
      node->output_count);
  if (!made.ok()) return status_to(made.status(), err);
  std::memcpy(outputs, made->data(), made->size() * sizeof(gr_value_t));
  return GR_OK;
}

int32_t add_objective(gr_graph_t* graph, const char* name, gr_value_t sum, gr_value_t count,
                      gr_error_t* err) {
  return status_to(self(graph).graph().add_objective(text_or_empty(name), sum, count), err);
}

int32_t add_output(gr_graph_t* graph, const char* name, gr_value_t value, gr_error_t* err) {
  return status_to(self(graph).add_output(text_or_empty(name), value), err);
}

int32_t push_stage(gr_graph_t* graph, const char* name, gr_error_t* err) {
  return status_to(self(graph).graph().push_stage(text_or_empty(name)), err);
}

int32_t pop_stage(gr_graph_t* graph, gr_error_t* err) {
  return status_to(self(graph).graph().pop_stage(), err);
}

int32_t type_of(gr_graph_t* graph, gr_value_t id, gr_type_t* out, gr_error_t* err) {
  BuilderApi& api = self(graph);
  if (!api.graph().has(id)) {
    return gr_fail(err, GR_INVALID_ARGUMENT, "value", "is not in this graph");
  }
  const Type& type = api.graph().value(id).type;
  if (type.shape.size() > GR_MAX_RANK) {
    return gr_fail(err, GR_UNSUPPORTED, "value", "has more than 8 dims");
  }
  out->dtype = type.dtype;
  out->rank = static_cast<uint32_t>(type.shape.size());
  for (size_t k = 0; k < type.shape.size(); ++k) {
    const Dim& dim = type.shape[k];
    out->dims[k] =
        dim.is_number() ? gr_dim_t{dim.number(), nullptr} : gr_dim_t{-1, api.keep_text(dim)};
  }
  return GR_OK;
}

// `function` as the table holds it: nothing is thrown across the wall.
template <auto function>
struct Slot;
template <typename... Args, int32_t (*function)(Args...)>
struct Slot<function> {
  static int32_t call(Args... args) noexcept {
    try {
      return function(args...);
    } catch (const std::bad_alloc&) {
      gr_error_t* const err = std::get<sizeof...(Args) - 1>(std::tie(args...));
      return gr_fail(err, GR_OUT_OF_MEMORY, "", "no memory left for the graph");
    }
  }
};

const gr_graph_api_t kApi = {sizeof(gr_graph_api_t),    0,
                             Slot<add_input>::call,     Slot<add_parameter>::call,
                             Slot<add_buffer>::call,    Slot<update_buffer>::call,
                             Slot<add_constant>::call,  Slot<add_node>::call,
                             Slot<add_objective>::call, Slot<add_output>::call,
                             Slot<push_stage>::call,    Slot<pop_stage>::call,
                             Slot<type_of>::call};

template <typename T>
void append(const DLTensor& tensor, int64_t count, ConstantData* data) {
  const T* values = static_cast<const T*>(tensor.data);
  for (int64_t k = 0; k < count; ++k) {
    if constexpr (std::is_floating_point_v<T>) {
      data->reals.push_back(static_cast<double>(values[k]));
    } else {
      data->ints.push_back(static_cast<int64_t>(values[k]));
    }
  }
}

}  // namespace

gr_builder_t BuilderApi::builder() { return {&kApi, reinterpret_cast<gr_graph_t*>(this)}; }

Result<Shape> BuilderApi::shape_from(const gr_dim_t* dims, uint32_t rank) const {
  if (rank > GR_MAX_RANK) {
    return invalid_argument(fmt::format("rank {} is more than {}", rank, int{GR_MAX_RANK}));
  }
  Shape shape;
  for (uint32_t k = 0; k < rank; ++k) {
    if (dims[k].symbol == nullptr) {
      if (dims[k].size < 0) return invalid_argument(fmt::format("dim {} is negative", k));
      shape.emplace_back(dims[k].size);
      continue;
    }
    const auto known = given_.find(std::string_view(dims[k].symbol));
    if (known != given_.end()) {
      shape.push_back(known->second);
    } else if (is_identifier(dims[k].symbol)) {
      shape.push_back(Dim::symbol(dims[k].symbol));
    } else {
      return invalid_argument(fmt::format("'{}' is not a name of a dim", dims[k].symbol));
    }
  }
  return shape;
}

Status BuilderApi::add_output(std::string name, ValueId value) {
  // A value that is not there is an error either way.
  if (!keep_outputs_ && graph_.has(value)) return {};
  return graph_.add_output(std::move(name), value);
}

const char* BuilderApi::keep_text(const Dim& dim) {
  texts_.push_back(dim.text());
  given_.emplace(texts_.back(), dim);
  return texts_.back().c_str();
}

Result<ConstantData> constant_from(const DLTensor& tensor) {
  if (tensor.device.device_type != kDLCPU)
    return invalid_argument("a constant must be on the host");
  int64_t count = 1;
  for (int32_t k = 0; k < tensor.ndim; ++k) count *= tensor.shape[k];
  ConstantData data;
  switch (gr_dtype_of(tensor.dtype)) {
    case GR_FLOAT32:
      append<float>(tensor, count, &data);
      break;
    case GR_FLOAT64:
      append<double>(tensor, count, &data);
      break;
    case GR_BFLOAT16: {
      const auto* bits = static_cast<const uint16_t*>(tensor.data);
      for (int64_t k = 0; k < count; ++k) {
        data.reals.push_back(static_cast<double>(sdk::from_bfloat16(bits[k])));
      }
      break;
    }
    case GR_FLOAT16: {
      const auto* bits = static_cast<const uint16_t*>(tensor.data);
      for (int64_t k = 0; k < count; ++k) {
        data.reals.push_back(static_cast<double>(sdk::from_float16(bits[k])));
      }
      break;
    }
    case GR_INT64:
      append<int64_t>(tensor, count, &data);
      break;
    case GR_INT32:
      append<int32_t>(tensor, count, &data);
      break;
    case GR_INT8:
      append<int8_t>(tensor, count, &data);
      break;
    case GR_UINT8:
    case GR_BOOL:
      append<uint8_t>(tensor, count, &data);
      break;
    default:
      return unsupported("constants of " + dtype_name(gr_dtype_of(tensor.dtype)) +
                         " are not taken; give float32, float64 or bfloat16");
  }
  return data;
}

}  // namespace gradrack
