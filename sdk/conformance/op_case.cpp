// SPDX-License-Identifier: Apache-2.0
// The makers of rows, the drawing of contents, the one-node graph: see op_case.hpp.
#include "sdk/conformance/op_case.hpp"

#include <algorithm>
#include <random>

#include "sdk/conformance/host_array.hpp"

namespace gradrack::conform {
namespace {

InputSpec spec(gr_dtype_t dtype, std::vector<int64_t> dims, Fill how) {
  InputSpec out;
  out.dtype = dtype;
  out.dims = std::move(dims);
  out.fill = how;
  return out;
}

double draw(const InputSpec& input, size_t k, std::mt19937_64& random) {
  switch (input.fill) {
    case Fill::kPositive:
      if (!is_real(input.dtype)) return static_cast<double>(1 + random() % 8);
      return std::uniform_real_distribution<double>(0.1, 2.0)(random);
    case Fill::kBool:
      return static_cast<double>(random() % 2);
    case Fill::kIndex:
      return static_cast<double>(random() % static_cast<uint64_t>(input.limit));
    case Fill::kInts:
      return static_cast<double>(input.ints[k]);
    case Fill::kNumber:
      return input.number;
    default:
      if (!is_real(input.dtype)) return static_cast<double>(random() % 9) - 4.0;
      return std::normal_distribution<double>(0.0, 1.0)(random);
  }
}

bool drawn_as_number(const InputSpec& input) {
  return input.fill == Fill::kNormal || input.fill == Fill::kPositive;
}

Result<ValueId> declare(Graph& graph, const InputSpec& input, size_t k, Source source) {
  if (input.fill == Fill::kAbsent) return ValueId{GR_NO_VALUE};
  Value value;
  value.type = {input.dtype, Shape(input.dims.begin(), input.dims.end())};
  if (input.fill == Fill::kInts) return graph.add_constant(value.type, {{}, input.ints});
  if (input.constant) {
    return is_real(input.dtype)
               ? graph.add_constant(value.type, {{input.number}, {}})
               : graph.add_constant(value.type, {{}, {static_cast<int64_t>(input.number)}});
  }
  value.source = is_real(input.dtype) && drawn_as_number(input) ? source : Source::kInput;
  value.name = "x" + std::to_string(k);
  return graph.add_source(std::move(value));
}

}  // namespace

InputSpec f(std::vector<int64_t> dims) { return spec(GR_FLOAT32, std::move(dims), Fill::kNormal); }
InputSpec pos(std::vector<int64_t> dims) {
  return spec(GR_FLOAT32, std::move(dims), Fill::kPositive);
}
InputSpec wide(std::vector<int64_t> dims) {
  return spec(GR_FLOAT64, std::move(dims), Fill::kNormal);
}
InputSpec mask(std::vector<int64_t> dims) { return spec(GR_BOOL, std::move(dims), Fill::kBool); }
InputSpec index(std::vector<int64_t> dims, int64_t limit) {
  InputSpec out = spec(GR_INT64, std::move(dims), Fill::kIndex);
  out.limit = limit;
  return out;
}
InputSpec ints(std::vector<int64_t> values) {
  InputSpec out = spec(GR_INT64, {static_cast<int64_t>(values.size())}, Fill::kInts);
  out.ints = std::move(values);
  return out;
}
InputSpec num(gr_dtype_t dtype, double value) {
  InputSpec out = spec(dtype, {}, Fill::kNumber);
  out.number = value;
  return out;
}
InputSpec known(gr_dtype_t dtype, double value) {
  InputSpec out = num(dtype, value);
  out.constant = true;
  return out;
}
InputSpec none() { return spec(GR_FLOAT32, {}, Fill::kAbsent); }

std::string OpCase::domain() const { return op.rfind("gradrack.", 0) == 0 ? "gradrack" : ""; }

std::string OpCase::name() const { return domain().empty() ? op : op.substr(9); }

std::string OpCase::text() const {
  std::string out = op + "(";
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Type type{inputs[k].dtype, Shape(inputs[k].dims.begin(), inputs[k].dims.end())};
    const bool absent = inputs[k].fill == Fill::kAbsent;
    out += (k > 0 ? ", " : "") + (absent ? std::string("-") : to_text(type));
  }
  const std::string settings = attrs.text();
  return out + ")" + (settings.empty() ? "" : " " + settings);
}

int64_t element_count(const InputSpec& input) {
  int64_t count = 1;
  for (const int64_t dim : input.dims) count *= dim;
  return count;
}

int64_t largest_input(const OpCase& c) {
  int64_t most = 0;
  for (const InputSpec& input : c.inputs) most = std::max(most, element_count(input));
  return most;
}

gr_dtype_t main_dtype(const OpCase& c) {
  for (const InputSpec& input : c.inputs) {
    if (drawn_as_number(input)) return input.dtype;
  }
  return c.inputs.empty() ? gr_dtype_t{GR_FLOAT32} : c.inputs[0].dtype;
}

OpCase retype(OpCase c, gr_dtype_t dtype) {
  for (InputSpec& input : c.inputs) {
    if (input.dtype != GR_FLOAT32 || input.fill == Fill::kAbsent) continue;
    input.dtype = dtype;
    if (dtype == GR_BOOL && drawn_as_number(input)) input.fill = Fill::kBool;
  }
  return c;
}

std::vector<std::vector<double>> draw_contents(const OpCase& c, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<double>> out;
  for (const InputSpec& input : c.inputs) {
    out.emplace_back();
    if (input.fill == Fill::kAbsent) continue;
    for (int64_t k = 0; k < element_count(input); ++k) {
      const double number = draw(input, static_cast<size_t>(k), random);
      out.back().push_back(round_to(input.dtype, number));
    }
  }
  return out;
}

Result<Graph> case_graph(const OpCase& c, Source source) {
  Graph graph;
  std::vector<ValueId> inputs;
  for (size_t k = 0; k < c.inputs.size(); ++k) {
    GR_ASSIGN(const ValueId id, declare(graph, c.inputs[k], k, source));
    inputs.push_back(id);
  }
  GR_ASSIGN(const std::vector<ValueId> outputs,
            graph.add_node(c.domain(), c.name(), inputs, c.attrs, c.outputs));
  for (size_t k = 0; k < outputs.size(); ++k) {
    GR_TRY(graph.add_output(std::to_string(k), outputs[k]));
  }
  return graph;
}

}  // namespace gradrack::conform
