// SPDX-License-Identifier: Apache-2.0
// GraphBuilder: the host's graph builder with values, overloads and exceptions.
//
// Models and optimizers get one for the length of a call and say with it what is to be computed;
// nothing runs. Operators have ONNX's names and meaning, own ones are "gradrack.NAME". Invariant: a
// call either succeeds or throws Error with the host's own words. All calls are [plan].
// Dims: B batch, T tokens, D features, V vocabulary, N rows.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gradrack/error.hpp"
#include "gradrack/graph.h"
#include "gradrack/may_throw.hpp"

namespace gradrack::sdk {

/// A value of the graph; an empty one stands for an optional input that is left out.
struct Value {
  gr_value_t id = GR_NO_VALUE;
};

/// A number, or a name such as "batch" that is bound when a plan is made.
struct Dim : gr_dim_t {
  Dim(int64_t number) : gr_dim_t{number, nullptr} {}  // NOLINT: implicit by design
  Dim(const char* name) : gr_dim_t{0, name} {}        // NOLINT: implicit by design
  Dim(const gr_dim_t& dim) : gr_dim_t(dim) {}         // NOLINT: implicit by design
};

/// One attribute: {"axis", -1}, {"epsilon", 1e-5}, {"perm", {0, 2, 1, 3}}, {"reduction", "sum"}.
struct Attr {
  template <std::integral Int>
  Attr(const char* n, Int v) : name(n), value(static_cast<int64_t>(v)) {}
  Attr(const char* n, double v) : name(n), value(v) {}
  Attr(const char* n, const char* v) : name(n), value(std::string(v)) {}
  Attr(const char* n, std::initializer_list<int64_t> v) : name(n), value(std::vector<int64_t>(v)) {}
  Attr(const char* n, std::vector<int64_t> v) : name(n), value(std::move(v)) {}
  Attr(const char* n, std::vector<double> v) : name(n), value(std::move(v)) {}

  const char* name;
  std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, MayThrow>
      value;
};

/// Initial values; random ones depend on (seed, name of the parameter) alone.
inline gr_init_t init_constant(double value) { return {GR_INIT_CONSTANT, 0, value, 0}; }
inline gr_init_t init_normal(double mean, double std_dev) {
  return {GR_INIT_NORMAL, 0, mean, std_dev};
}

class GraphBuilder {
 public:
  explicit GraphBuilder(const gr_builder_t& builder) : api_(builder.api), graph_(builder.graph) {}

  // Sources.

  /// A value that each batch brings, from the data output of that name. `limit`: integers are in
  /// [0, limit); 0: no such promise.
  Value input(const char* name, gr_dtype_t dtype, std::vector<Dim> dims, int64_t limit = 0);
  /// A trained value. GR_FLOAT32 leaves its dtype to the precision policy.
  Value parameter(const std::string& name, std::vector<int64_t> dims, gr_init_t init,
                  int32_t role = GR_ROLE_WEIGHT, gr_dtype_t dtype = GR_FLOAT32);
  /// State that is kept but not trained, such as running statistics.
  Value buffer(const std::string& name, std::vector<int64_t> dims, gr_init_t init,
               gr_dtype_t dtype = GR_FLOAT32);
  /// `value` becomes the content of `buffer` when the step commits.
  void update_buffer(Value buffer, Value value);
  /// A dense constant of `dims`, row-major.
  Value ints(std::span<const int64_t> numbers, std::vector<int64_t> dims);
  Value ints(std::initializer_list<int64_t> numbers);  ///< int64 [n]
  /// Reals enter as float64 and are cast, so that a plan in double keeps all their digits.
  Value reals(std::span<const double> numbers, std::vector<int64_t> dims,
              gr_dtype_t dtype = GR_FLOAT32);
  Value scalar(double number, gr_dtype_t dtype = GR_FLOAT32);  ///< []
  Value boolean(bool flag);                                    ///< bool []
  /// A dense tensor of `dims` as it stands in memory, row-major; copied.
  Value constant(const void* data, gr_dtype_t dtype, std::vector<int64_t> dims);

  // Nodes.

  /// An operator with one output: node("Gelu", {x}), node("gradrack.AdamW", ...).
  Value node(const char* op, std::vector<Value> inputs, std::vector<Attr> attrs = {});
  /// An operator with `count` outputs.
  std::vector<Value> nodes(const char* op, const std::vector<Value>& inputs,
                           const std::vector<Attr>& attrs, uint32_t count);
  Value add(Value a, Value b) { return node("Add", {a, b}); }
  Value sub(Value a, Value b) { return node("Sub", {a, b}); }
  Value mul(Value a, Value b) { return node("Mul", {a, b}); }
  Value div(Value a, Value b) { return node("Div", {a, b}); }
  Value matmul(Value a, Value b) { return node("MatMul", {a, b}); }
  Value cast(Value x, gr_dtype_t to) { return node("Cast", {x}, {{"to", to}}); }
  /// A dim of 0 is copied from x, one of -1 is what remains.
  Value reshape(Value x, std::initializer_list<int64_t> dims) {
    return node("Reshape", {x, ints(dims)});
  }
  Value transpose(Value x, std::initializer_list<int64_t> perm) {
    return node("Transpose", {x}, {{"perm", perm}});
  }
  Value gather(Value table, Value indices) { return node("Gather", {table, indices}); }
  Value rms_norm(Value x, Value weight, double epsilon) {
    return node("RMSNormalization", {x, weight}, {{"epsilon", epsilon}});
  }
  Value layer_norm(Value x, Value weight, Value bias, double epsilon) {
    return node("LayerNormalization", {x, weight, bias}, {{"epsilon", epsilon}});
  }
  /// Zeroes each element with probability `ratio` and scales the others by 1 / (1 - ratio).
  Value dropout(Value x, double ratio) {
    return node("Dropout", {x, scalar(ratio, GR_FLOAT64), boolean(true)});
  }
  /// Declares objective `name`: cross entropy of `logits` [N, V] with `labels` [N] int64, summed
  /// over the labels that are not `ignore_index`, and their count.
  void softmax_cross_entropy(const char* name, Value logits, Value labels,
                             int64_t ignore_index = -100);

  // Results and structure.

  /// A scalar loss as a sum over targets and their number.
  void objective(const char* name, Value sum, Value count);
  /// A value that evaluation, `sample` and tests read by name.
  void output(const char* name, Value value);
  /// dtype and dims; dims hold text of the host, valid for the graph's life.
  gr_type_t type_of(Value value) const;
  gr_dtype_t dtype_of(Value value) const { return type_of(value).dtype; }

  /// While it lives, nodes and parameters belong to stage `name` (inside the outer one): the unit
  /// of scheduling, recompute and freezing.
  class Stage {
   public:
    Stage(GraphBuilder& g, const std::string& name);
    ~Stage();
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

   private:
    GraphBuilder& g_;
  };

 private:
  static gr_parameter_t describe(const std::string& name, const std::vector<Dim>& dims,
                                 gr_init_t init, int32_t role, gr_dtype_t dtype);

  const gr_graph_api_t* api_;
  gr_graph_t* graph_;
};

inline Value GraphBuilder::input(const char* name, gr_dtype_t dtype, std::vector<Dim> dims,
                                 int64_t limit) {
  gr_input_t raw{sizeof raw, dtype, name, dims.data(), static_cast<uint32_t>(dims.size()),
                 0,          limit};
  Value out;
  gr_error_t err{};
  check(api_->input(graph_, &raw, &out.id, &err), err);
  return out;
}

inline gr_parameter_t GraphBuilder::describe(const std::string& name, const std::vector<Dim>& dims,
                                             gr_init_t init, int32_t role, gr_dtype_t dtype) {
  return {sizeof(gr_parameter_t),
          dtype,
          name.c_str(),
          dims.data(),
          static_cast<uint32_t>(dims.size()),
          role,
          init};
}

inline Value GraphBuilder::parameter(const std::string& name, std::vector<int64_t> dims,
                                     gr_init_t init, int32_t role, gr_dtype_t dtype) {
  const std::vector<Dim> copy(dims.begin(), dims.end());
  const gr_parameter_t raw = describe(name, copy, init, role, dtype);
  Value out;
  gr_error_t err{};
  check(api_->parameter(graph_, &raw, &out.id, &err), err);
  return out;
}

inline Value GraphBuilder::buffer(const std::string& name, std::vector<int64_t> dims,
                                  gr_init_t init, gr_dtype_t dtype) {
  const std::vector<Dim> copy(dims.begin(), dims.end());
  const gr_parameter_t raw = describe(name, copy, init, GR_ROLE_WEIGHT, dtype);
  Value out;
  gr_error_t err{};
  check(api_->buffer(graph_, &raw, &out.id, &err), err);
  return out;
}

inline void GraphBuilder::update_buffer(Value buffer, Value value) {
  gr_error_t err{};
  check(api_->update_buffer(graph_, buffer.id, value.id, &err), err);
}

inline Value GraphBuilder::constant(const void* data, gr_dtype_t dtype, std::vector<int64_t> dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t k = dims.size(); k > 1; --k) strides[k - 2] = strides[k - 1] * dims[k - 1];
  DLTensor raw{};
  raw.data = const_cast<void*>(data);  // the host copies, it does not write
  raw.device = {kDLCPU, 0};
  raw.ndim = static_cast<int32_t>(dims.size());
  raw.dtype = gr_dl_dtype(dtype);
  raw.shape = dims.data();
  raw.strides = strides.data();
  Value out;
  gr_error_t err{};
  check(api_->constant(graph_, &raw, &out.id, &err), err);
  return out;
}

inline Value GraphBuilder::ints(std::span<const int64_t> numbers, std::vector<int64_t> dims) {
  return constant(numbers.data(), GR_INT64, std::move(dims));
}

inline Value GraphBuilder::ints(std::initializer_list<int64_t> numbers) {
  return constant(numbers.begin(), GR_INT64, {static_cast<int64_t>(numbers.size())});
}

inline Value GraphBuilder::reals(std::span<const double> numbers, std::vector<int64_t> dims,
                                 gr_dtype_t dtype) {
  const Value wide = constant(numbers.data(), GR_FLOAT64, std::move(dims));
  return dtype == GR_FLOAT64 ? wide : cast(wide, dtype);
}

inline Value GraphBuilder::scalar(double number, gr_dtype_t dtype) {
  const auto narrow = static_cast<float>(number);
  if (dtype == GR_FLOAT32 && static_cast<double>(narrow) == number) {
    return constant(&narrow, GR_FLOAT32, {});
  }
  return reals({&number, 1}, {}, dtype);
}

inline Value GraphBuilder::boolean(bool flag) {
  const uint8_t byte = flag ? 1 : 0;
  return constant(&byte, GR_BOOL, {});
}

namespace detail {

/// An Attr as the host reads it; points into `attr`.
inline gr_attr_t raw_attr(const Attr& attr) {
  gr_attr_t raw{};
  raw.name = attr.name;
  if (const auto* i = std::get_if<int64_t>(&attr.value)) {
    raw.type = GR_ATTR_INT;
    raw.i = *i;
  } else if (const auto* f = std::get_if<double>(&attr.value)) {
    raw.type = GR_ATTR_FLOAT;
    raw.f = *f;
  } else if (const auto* s = std::get_if<std::string>(&attr.value)) {
    raw.type = GR_ATTR_STRING;
    raw.s = s->c_str();
  } else if (const auto* reals = std::get_if<std::vector<double>>(&attr.value)) {
    raw.type = GR_ATTR_FLOATS;
    raw.floats = reals->data();
    raw.count = reals->size();
  } else {
    const auto& list = std::get<std::vector<int64_t>>(attr.value);
    raw.type = GR_ATTR_INTS;
    raw.ints = list.data();
    raw.count = list.size();
  }
  return raw;
}

}  // namespace detail

inline std::vector<Value> GraphBuilder::nodes(const char* op, const std::vector<Value>& inputs,
                                              const std::vector<Attr>& attrs, uint32_t count) {
  const std::string full = op;
  const size_t dot = full.rfind('.');
  const std::string domain = dot == std::string::npos ? "" : full.substr(0, dot);
  std::vector<gr_attr_t> raw_attrs;
  for (const Attr& attr : attrs) raw_attrs.push_back(detail::raw_attr(attr));
  std::vector<gr_value_t> ids;
  for (const Value value : inputs) ids.push_back(value.id);

  gr_node_t raw{};
  raw.struct_size = sizeof raw;
  raw.input_count = static_cast<uint32_t>(ids.size());
  raw.domain = domain.c_str();
  raw.op = dot == std::string::npos ? op : op + dot + 1;
  raw.inputs = ids.data();
  raw.attrs = raw_attrs.data();
  raw.attr_count = static_cast<uint32_t>(raw_attrs.size());
  raw.output_count = count;
  std::vector<gr_value_t> out(count, GR_NO_VALUE);
  gr_error_t err{};
  check(api_->node(graph_, &raw, out.data(), &err), err);
  std::vector<Value> outputs;
  for (const gr_value_t id : out) outputs.push_back({id});
  return outputs;
}

inline Value GraphBuilder::node(const char* op, std::vector<Value> inputs,
                                std::vector<Attr> attrs) {
  return nodes(op, inputs, attrs, 1)[0];
}

inline void GraphBuilder::softmax_cross_entropy(const char* name, Value logits, Value labels,
                                                int64_t ignore_index) {
  const Value sum = node("SoftmaxCrossEntropyLoss", {logits, labels},
                         {{"reduction", "sum"}, {"ignore_index", ignore_index}});
  objective(name, sum, node("gradrack.CountTargets", {labels}, {{"ignore_index", ignore_index}}));
}

inline void GraphBuilder::objective(const char* name, Value sum, Value count) {
  gr_error_t err{};
  check(api_->objective(graph_, name, sum.id, count.id, &err), err);
}

inline void GraphBuilder::output(const char* name, Value value) {
  gr_error_t err{};
  check(api_->output(graph_, name, value.id, &err), err);
}

inline gr_type_t GraphBuilder::type_of(Value value) const {
  gr_type_t out{};
  out.struct_size = sizeof out;
  gr_error_t err{};
  check(api_->type_of(graph_, value.id, &out, &err), err);
  return out;
}

inline GraphBuilder::Stage::Stage(GraphBuilder& g, const std::string& name) : g_(g) {
  gr_error_t err{};
  check(g_.api_->push_stage(g_.graph_, name.c_str(), &err), err);
}

inline GraphBuilder::Stage::~Stage() {
  gr_error_t err{};  // a pop that matches its push cannot fail
  (void)g_.api_->pop_stage(g_.graph_, &err);
}

}  // namespace gradrack::sdk
