// SPDX-License-Identifier: Apache-2.0
// Entries of the toy operators and the graph builder: see toy_ops.hpp.
#include "tests/support/toy_ops.hpp"

#include <gtest/gtest.h>

#include "core/graph/emitter.hpp"

namespace gradrack::toy {

namespace {

OpDef entry(const std::string& name, const std::string& inputs, const std::string& outputs) {
  OpDef op;
  op.name = name;
  op.doc = "Toy.";
  op.inputs = ports(inputs);
  op.outputs = ports(outputs);
  op.infer = [](InferContext& c) -> Status {
    for (size_t k = 0; k < c.output_count(); ++k) c.set_output(k, c.input(0));
    return {};
  };
  return op;
}

OpDef primitive(const std::string& name, const std::string& inputs,
                const std::string& outputs = "Y") {
  OpDef op = entry(name, inputs, outputs);
  op.primitive = true;
  return op;
}

void add(OpRegistry* registry, OpDef op) {
  const Status status = registry->add(std::move(op));
  ASSERT_TRUE(status.ok()) << status.message();
}

void add_composites(OpRegistry* registry) {
  OpDef square = entry("Square", "X", "Y");
  square.decompose = [](DecomposeContext& c) {
    c.set_output(0, c.e().mul(c.input(0), c.input(0)));
  };
  add(registry, std::move(square));
  OpDef poly = entry("Poly", "X", "Y");
  poly.decompose = [](DecomposeContext& c) {
    c.set_output(0, c.e().add(c.e().op("Square", {c.input(0)}), c.input(0)));
  };
  add(registry, std::move(poly));
}

void add_shapes(OpRegistry* registry) {
  OpDef shape = primitive("Shape", "X");
  shape.infer = [](InferContext& c) -> Status {
    const Shape& dims = c.input(0).shape;
    c.set_output(0, {GR_INT64, {Dim(static_cast<int64_t>(dims.size()))}});
    c.set_known(0, KnownInts(dims.begin(), dims.end()));
    return {};
  };
  add(registry, std::move(shape));
  OpDef reshape = entry("Reshape", "X, S", "Y");
  reshape.view = true;
  reshape.infer = [](InferContext& c) -> Status {
    if (c.known(1) == nullptr) return invalid_argument("the shape must be known");
    c.set_output(0, {c.input(0).dtype, Shape(c.known(1)->begin(), c.known(1)->end())});
    return {};
  };
  add(registry, std::move(reshape));
}

OpRegistry* make_registry() {
  auto* registry = new OpRegistry;  // lives as long as the program
  for (const char* name : {"Add", "Mul", "Move"}) add(registry, primitive(name, "A, B"));
  for (const char* name : {"Neg", "Twice", "Fail"}) add(registry, primitive(name, "X"));
  add(registry, primitive("Halves", "X", "Y, Z"));
  OpDef sum = primitive("Sum", "X");
  sum.infer = [](InferContext& c) -> Status {
    c.set_output(0, {c.input(0).dtype, {}});
    return {};
  };
  add(registry, std::move(sum));
  OpDef product = primitive("Product", "A, B");
  product.infer = [](InferContext& c) -> Status {
    c.set_output(0, {c.input(0).dtype, {c.input(0).shape[0], c.input(1).shape[1]}});
    return {};
  };
  add(registry, std::move(product));
  OpDef flat = entry("Flat", "X", "Y");
  flat.view = true;
  flat.infer = [](InferContext& c) -> Status {
    c.set_output(0, {c.input(0).dtype, {element_count(c.input(0).shape)}});
    return {};
  };
  add(registry, std::move(flat));
  add_shapes(registry);
  add_composites(registry);
  return registry;
}

}  // namespace

const OpRegistry& ops() {
  static const OpRegistry* const registry = make_registry();
  return *registry;
}

ValueId Builder::source(Source source, const std::string& name, Shape shape, gr_dtype_t dtype,
                        gr_init_t init) {
  Value value;
  value.source = source;
  value.name = name;
  value.type = {dtype, std::move(shape)};
  value.init = init;
  auto made = graph.add_source(std::move(value));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

ValueId Builder::constant(Shape shape, std::vector<double> numbers) {
  ConstantData data;
  data.reals = std::move(numbers);
  auto made = graph.add_constant({GR_FLOAT32, std::move(shape)}, std::move(data));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

ValueId Builder::op(const std::string& name, std::vector<ValueId> inputs) {
  return multi(name, std::move(inputs), 1)[0];
}

std::vector<ValueId> Builder::multi(const std::string& name, std::vector<ValueId> inputs,
                                    size_t outputs) {
  auto made = graph.add_node("", name, std::move(inputs), {}, outputs);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

void Builder::output(const std::string& name, ValueId id) {
  const Status status = graph.add_output(name, id);
  EXPECT_TRUE(status.ok()) << status.message();
}

void Builder::write(ValueId target, ValueId value) {
  const Status status = graph.add_write(target, value);
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace gradrack::toy
