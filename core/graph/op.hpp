// SPDX-License-Identifier: Apache-2.0
// OpDef: all that one operator is, in one entry: ports, attributes, shape rule, gradient rule,
// decomposition, documentation.
//
// Families of entries live in core/graph/ops/*.cpp; adding an operator is adding one entry there
// and a kernel per backend that wants it. Invariant: an operator that is not `primitive` has a
// decomposition, so a backend with the primitives alone runs everything.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/attrs.hpp"
#include "core/graph/dim.hpp"
#include "gradrack/graph.h"

namespace gradrack {

class Emitter;

/// dtype and symbolic dims of a value.
struct Type {
  gr_dtype_t dtype = GR_FLOAT32;
  Shape shape;
  bool operator==(const Type& o) const { return dtype == o.dtype && shape == o.shape; }
};

/// Integer contents known while the graph is built: shapes, axes, starts and ends.
using KnownInts = std::vector<Dim>;

/// What a shape rule sees and answers. Inputs left out have no type.
class InferContext {
 public:
  virtual ~InferContext() = default;
  virtual size_t input_count() const = 0;
  virtual bool has_input(size_t k) const = 0;
  virtual const Type& input(size_t k) const = 0;
  /// Contents of input k when known (constant or made from Shape), else nullptr.
  virtual const KnownInts* known(size_t k) const = 0;
  /// Scalar or 1-element floating constant; false when not constant.
  virtual bool known_float(size_t k, double* out) const = 0;
  virtual const Attrs& attrs() const = 0;
  virtual size_t output_count() const = 0;
  virtual void set_output(size_t k, Type type) = 0;
  /// Marks output k's integer contents as known.
  virtual void set_known(size_t k, KnownInts contents) = 0;
};

/// What a gradient rule sees and answers. It emits nodes through `e` and never reads a null
/// gradient.
class GradContext {
 public:
  virtual ~GradContext() = default;
  virtual Emitter& e() = 0;
  virtual const Attrs& attrs() const = 0;
  virtual size_t input_count() const = 0;
  /// Ids of the forward node's values; GR_NO_VALUE when left out.
  virtual gr_value_t input(size_t k) const = 0;
  virtual gr_value_t output(size_t k) const = 0;
  virtual size_t output_count() const = 0;
  /// Gradient of output k; GR_NO_VALUE when no objective depends on it.
  virtual gr_value_t grad_output(size_t k) const = 0;
  /// False when nobody wants the gradient of input k: emit nothing for it.
  virtual bool needs(size_t k) const = 0;
  virtual void set_grad(size_t k, gr_value_t grad) = 0;
};

/// What a decomposition sees: the node's inputs and attributes; it emits and names the outputs.
class DecomposeContext {
 public:
  virtual ~DecomposeContext() = default;
  virtual Emitter& e() = 0;
  virtual const Attrs& attrs() const = 0;
  virtual size_t input_count() const = 0;
  virtual gr_value_t input(size_t k) const = 0;
  virtual size_t output_count() const = 0;
  virtual void set_output(size_t k, gr_value_t value) = 0;
};

struct PortDef {
  std::string name;
  bool optional = false;
  bool variadic = false;  // the last input only
};

struct AttrDef {
  std::string name;
  int32_t type = GR_ATTR_INT;  // GR_ATTR_*
  bool required = false;
  bool has_default = false;
  AttrValue default_value = int64_t{0};
};

/// Shorthands for tables: attr with default, required attr, optional attr without default.
AttrDef attr(std::string name, AttrValue default_value);
AttrDef required_attr(std::string name, int32_t type);
AttrDef optional_attr(std::string name, int32_t type);

/// Parses "X, W, B?, rest*" into ports: `?` optional, `*` variadic.
std::vector<PortDef> ports(std::string_view text);

struct OpDef {
  std::string domain;  // "" is ONNX
  std::string name;
  std::string doc;  // one or two sentences, with the formula
  std::vector<PortDef> inputs;
  std::vector<PortDef> outputs;
  std::vector<AttrDef> attrs;

  bool primitive = false;
  /// The output is the first input's bytes under another shape: no kernel, no copy.
  bool view = false;
  /// The gradient is zero or undefined by nature (comparisons, Shape): autodiff stops here.
  bool non_differentiable = false;
  /// Index of an optional bool scalar input that, when false, makes the node return its old state:
  /// output k = input gated_state[k]. The host wires the step's commit flag to it. -1: none.
  int gate_input = -1;
  std::vector<int> gated_state;

  std::function<Status(InferContext&)> infer;
  /// Null: autodiff goes through the decomposition.
  std::function<void(GradContext&)> grad;
  /// Null exactly when primitive or view.
  std::function<void(DecomposeContext&)> decompose;

  std::string full_name() const { return domain.empty() ? name : domain + "." + name; }
};

/// All operators, by domain and name. Filled once, before any graph; read-only afterwards. [any]
class OpRegistry {
 public:
  /// Refuses a second entry of one name and an entry that breaks the invariant.
  Status add(OpDef op);
  const OpDef* find(std::string_view domain, std::string_view name) const;
  /// The known name nearest to `name`, for messages.
  std::string nearest(std::string_view name) const;
  /// Sorted by full name.
  std::vector<const OpDef*> all() const;

  /// The built-in operators.
  static const OpRegistry& builtin();

 private:
  std::map<std::string, OpDef, std::less<>> ops_;
};

}  // namespace gradrack
