// SPDX-License-Identifier: Apache-2.0
// ShapeRig: asks a shape rule one question, and gives its answer or its refusal as text.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.hpp"

namespace gradrack::test {

class ShapeRig {
 public:
  /// An input of that shape.
  ValueId x(Shape shape, gr_dtype_t dtype = GR_FLOAT32) {
    Value value;
    value.source = Source::kInput;
    value.name = "x" + std::to_string(graph.values().size());
    value.type = {dtype, std::move(shape)};
    return *graph.add_source(std::move(value));
  }
  /// An int64 [n] constant.
  ValueId ints(std::vector<int64_t> numbers) {
    const Type type{GR_INT64, {Dim(static_cast<int64_t>(numbers.size()))}};
    return *graph.add_constant(type, ConstantData{{}, std::move(numbers)});
  }
  ValueId op(std::string_view name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    auto made = graph.add_node("", name, std::move(inputs), std::move(attrs), 1);
    last_error = made.ok() ? "" : made.status().message();
    last_code = made.status().code();
    return made.ok() ? (*made)[0] : static_cast<ValueId>(GR_NO_VALUE);
  }
  /// "[2, 3]", or "refused".
  std::string shape(std::string_view name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    const ValueId id = op(name, std::move(inputs), std::move(attrs));
    return id == GR_NO_VALUE ? "refused" : to_text(graph.value(id).type.shape);
  }
  bool error_has(std::string_view text) const { return last_error.find(text) != std::string::npos; }

  Graph graph;
  std::string last_error;
  int32_t last_code = GR_OK;
};

}  // namespace gradrack::test
