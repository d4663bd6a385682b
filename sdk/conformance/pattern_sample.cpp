// SPDX-License-Identifier: Apache-2.0
// The search for samples: see pattern_sample.hpp.
#include "sdk/conformance/pattern_sample.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "sdk/conformance/op_cases.hpp"

namespace gradrack::conform {
namespace {

using Dims = std::vector<int64_t>;

constexpr int kMostNodes = 60000;        // added in one search, in all tries
constexpr int64_t kMostElements = 5000;  // of an input
constexpr size_t kRows = 12;             // of the table, that a statement is tried on
constexpr int kRunTries = 300;           // random runs

/// The rows of the table for an operator, small ones with elements; Casts to bfloat16 too.
std::vector<OpCase> rows_of(const std::string& op) {
  static const std::vector<OpCase> all = all_op_cases();
  std::vector<OpCase> out;
  if (op == "Cast") out.push_back({"Cast", {f({6, 16})}, {{"to", int64_t{GR_BFLOAT16}}}});
  for (const OpCase& row : all) {
    if (row.op != op || largest_input(row) > kMostElements) continue;
    const auto empty = [](const InputSpec& input) {
      return input.fill != Fill::kAbsent && element_count(input) == 0;
    };
    if (std::none_of(row.inputs.begin(), row.inputs.end(), empty)) out.push_back(row);
  }
  return out;
}

Dims dims_of(const Graph& graph, ValueId id) {
  Dims dims;
  for (const Dim& dim : graph.value(id).type.shape) {
    dims.push_back(dim.is_number() ? dim.number() : 0);
  }
  return dims;
}

class Search {
 public:
  Search(const PatternText& pattern, uint64_t seed, size_t most,
         const std::function<bool(const PatternSample&)>& takes)
      : pattern_(pattern), random_(seed), most_(most), takes_(takes) {}

  std::vector<PatternSample> run() {
    if (pattern_.is_set()) {
      for (int k = 0; k < kRunTries && found_.size() < most_; ++k) try_run();
    } else {
      grow(0, PatternSample{Graph(), {}, {}},
           std::vector<ValueId>(pattern_.values.size(), GR_NO_VALUE));
    }
    return std::move(found_);
  }

 private:
  size_t below(size_t n) { return random_() % n; }

  static ValueId add_source(const InputSpec& spec, PatternSample* sample) {
    Value value;
    value.source = Source::kInput;
    value.name = "x" + std::to_string(sample->inputs.size());
    value.type = {spec.dtype, Shape(spec.dims.begin(), spec.dims.end())};
    sample->inputs.push_back(spec);
    auto made = sample->graph.add_source(std::move(value));
    return made.ok() ? *made : GR_NO_VALUE;
  }

  /// Scores that a statement before made may have fewer classes than the row that labels are from.
  static void keep_labels_within_classes(const std::string& op, const std::vector<ValueId>& inputs,
                                         PatternSample* sample) {
    const bool loss = op == "SoftmaxCrossEntropyLoss";
    if (!loss && op != "gradrack.SoftmaxCrossEntropyLossGrad") return;
    const size_t scores = loss ? 0 : 1;
    const Value& labels = sample->graph.value(inputs[scores + 1]);
    const Dims dims = dims_of(sample->graph, inputs[scores]);
    if (labels.source != Source::kInput || dims.size() < 2) return;
    InputSpec& spec = sample->inputs[std::stoul(labels.name.substr(1))];
    spec.limit = std::min(spec.limit, dims[1]);
  }

  bool add_node(const std::string& op, const std::vector<ValueId>& inputs, const Attrs& attrs,
                size_t outputs, PatternSample* sample) {
    if (--steps_ < 0) return false;
    keep_labels_within_classes(op, inputs, sample);
    OpCase named;
    named.op = op;
    auto made = sample->graph.add_node(named.domain(), named.name(), inputs, attrs, outputs);
    if (!made.ok()) return false;
    sample->nodes.push_back(sample->graph.nodes().size() - 1);
    return true;
  }

  /// Shapes that an input may have beside those that are there.
  static std::vector<Dims> shapes_beside(const PatternSample& sample) {
    std::set<Dims> out = {{}};
    for (size_t id = 0; id < sample.graph.values().size(); ++id) {
      const Dims dims = dims_of(sample.graph, static_cast<ValueId>(id));
      out.insert(dims);
      if (dims.empty()) continue;
      out.insert({dims.back()});
      out.insert({dims.back(), dims.back()});
      out.insert({dims.back(), 24});
      out.insert({24, dims.back()});
      out.insert({dims[0]});
      out.insert(Dims(dims.begin(), dims.end() - 1));
    }
    return {out.begin(), out.end()};
  }

  /// Goes on with a statement; `values`: what the names stand for so far.
  void grow(size_t statement, const PatternSample& sample, const std::vector<ValueId>& values) {
    if (found_.size() >= most_ || steps_ < 0) return;
    if (statement == pattern_.nodes.size()) return finish(sample);
    const size_t before = found_.size();
    for (const std::string& op : pattern_.nodes[statement].ops) {
      std::vector<OpCase> rows = rows_of(op);
      std::shuffle(rows.begin(), rows.end(), random_);
      if (statement > 0) rows = of_each_setting(std::move(rows));
      for (const OpCase& row : rows) {
        for (const gr_dtype_t dtype : {gr_dtype_t{GR_FLOAT32}, gr_dtype_t{GR_BFLOAT16}}) {
          place(statement, op, dtype == GR_FLOAT32 ? row : retype(row, dtype), 0, {}, sample,
                values);
          // A few ways behind each beginning, so that samples differ.
          if (statement > 0 && found_.size() > before) return;
        }
      }
    }
  }

  /// One row for each of the first settings: later shapes come from what is there.
  static std::vector<OpCase> of_each_setting(std::vector<OpCase> rows) {
    std::set<std::string> seen;
    std::erase_if(rows, [&](const OpCase& row) {
      std::string setting = row.attrs.text();
      for (const InputSpec& input : row.inputs) {
        setting += input.fill == Fill::kAbsent ? " -" : " " + dtype_name(input.dtype);
      }
      return seen.size() == kRows || !seen.insert(setting).second;
    });
    return rows;
  }

  /// Chooses input `port` and those behind it, then adds the node.
  void place(size_t statement, const std::string& op, const OpCase& row, size_t port,
             const std::vector<ValueId>& inputs, const PatternSample& sample,
             const std::vector<ValueId>& values) {
    if (found_.size() >= most_ || steps_ < 0) return;
    const PatternNode& node = pattern_.nodes[statement];
    const size_t ports =
        node.more_inputs ? std::max(row.inputs.size(), node.inputs.size()) : node.inputs.size();
    if (port == ports) return add(statement, op, row, inputs, sample, values);
    const auto go_on = [&](ValueId id, const PatternSample& with,
                           const std::vector<ValueId>& bound) {
      std::vector<ValueId> more = inputs;
      more.push_back(id);
      place(statement, op, row, port + 1, more, with, bound);
    };
    const int name = port < node.inputs.size() ? node.inputs[port] : PatternNode::kAnything;
    const bool named = name != PatternNode::kAnything;
    const bool in_row = port < row.inputs.size();
    if (named && values[size_t(name)] != GR_NO_VALUE) {
      const gr_dtype_t is = sample.graph.value(values[size_t(name)]).type.dtype;
      if (!in_row || row.inputs[port].dtype == is) go_on(values[size_t(name)], sample, values);
      return;
    }
    if (!in_row || row.inputs[port].fill == Fill::kAbsent) {
      if (!named) go_on(GR_NO_VALUE, sample, values);
      if (!named || !in_row) return;
    }
    for (InputSpec& spec : specs_of(row.inputs[port], statement, op, port, sample)) {
      PatternSample with = sample;
      std::vector<ValueId> bound = values;
      const ValueId id = add_source(spec, &with);
      if (named) bound[size_t(name)] = id;
      go_on(id, with, bound);
    }
  }

  /// The row's own input, and for later statements its kind of contents in other shapes: first
  /// those that earlier nodes of this operator read there.
  static std::vector<InputSpec> specs_of(const InputSpec& own, size_t statement,
                                         const std::string& op, size_t port,
                                         const PatternSample& sample) {
    if (statement == 0 || own.fill == Fill::kInts) return {own};
    std::vector<Dims> shapes;
    const auto offer = [&](const Dims& dims) {
      if (std::find(shapes.begin(), shapes.end(), dims) == shapes.end()) shapes.push_back(dims);
    };
    for (const size_t k : sample.nodes) {
      const Node& node = sample.graph.nodes()[k];
      if (node.op->full_name() != op || port >= node.inputs.size()) continue;
      if (node.inputs[port] != GR_NO_VALUE) offer(dims_of(sample.graph, node.inputs[port]));
    }
    offer(own.dims);
    for (const Dims& dims : shapes_beside(sample)) offer(dims);
    std::vector<InputSpec> out;
    for (const Dims& dims : shapes) {
      InputSpec spec = own;
      spec.dims = dims;
      if (element_count(spec) <= kMostElements) out.push_back(spec);
    }
    return out;
  }

  void add(size_t statement, const std::string& op, const OpCase& row,
           const std::vector<ValueId>& inputs, const PatternSample& sample,
           std::vector<ValueId> values) {
    const PatternNode& node = pattern_.nodes[statement];
    PatternSample with = sample;
    const size_t wanted = node.more_outputs ? 0 : node.outputs.size();
    if (!add_node(op, inputs, row.attrs, wanted, &with)) return;
    const std::vector<ValueId>& made = with.graph.nodes().back().outputs;
    for (size_t k = 0; k < node.outputs.size() && k < made.size(); ++k) {
      if (node.outputs[k] >= 0) values[size_t(node.outputs[k])] = made[k];
    }
    grow(statement + 1, with, values);
  }

  /// A random run: each node reads the one before it, and something of its shape or smaller.
  void try_run() {
    const std::vector<std::string> ops(pattern_.set.begin(), pattern_.set.end());
    PatternSample sample{Graph(), {}, {}};
    const std::vector<OpCase> first = rows_of(ops[below(ops.size())]);
    if (first.empty()) return;
    InputSpec base = first[below(first.size())].inputs[0];
    if (below(2) == 0 && base.dtype == GR_FLOAT32) base.dtype = GR_BFLOAT16;
    std::vector<ValueId> values = {add_source(base, &sample)};
    for (size_t k = 2 + below(5), tries = 0; sample.nodes.size() < k && tries < 20; ++tries) {
      const std::string& op = ops[below(ops.size())];
      const std::vector<OpCase> rows = rows_of(op);
      if (rows.empty()) continue;
      const OpCase& row = rows[below(rows.size())];
      std::vector<ValueId> inputs = {values.back()};
      PatternSample with = sample;
      for (size_t port = 1; port < row.inputs.size(); ++port) {
        InputSpec spec = row.inputs[port];
        const size_t way = below(4);
        if (way == 0) {
          inputs.push_back(values[below(values.size())]);
          continue;
        }
        const Dims dims = dims_of(sample.graph, values.back());
        spec.dims = way == 1 || dims.empty() ? dims : way == 2 ? Dims{dims.back()} : Dims{};
        spec.dtype = sample.graph.value(values.back()).type.dtype;
        inputs.push_back(add_source(spec, &with));
      }
      if (!add_node(op, inputs, row.attrs, 1, &with)) continue;
      if (dims_of(with.graph, with.graph.nodes().back().outputs[0]) != base.dims) continue;
      values.push_back(with.graph.nodes().back().outputs[0]);
      sample = std::move(with);
    }
    if (sample.nodes.size() >= 2) finish(sample);
  }

  void finish(PatternSample sample) {
    std::set<ValueId> read;
    for (const Node& node : sample.graph.nodes())
      read.insert(node.inputs.begin(), node.inputs.end());
    for (const Node& node : sample.graph.nodes()) {
      for (const ValueId id : node.outputs) {
        if (read.count(id) > 0) continue;
        if (!sample.graph.add_output("y" + std::to_string(id), id).ok()) return;
      }
    }
    PatternSample all = sample;
    if (takes_(sample)) {
      found_.push_back(std::move(sample));
    } else if (show_all(&all) && takes_(all)) {
      found_.push_back(std::move(all));
    }
  }

  const PatternText& pattern_;
  std::mt19937_64 random_;
  size_t most_;
  const std::function<bool(const PatternSample&)>& takes_;
  std::vector<PatternSample> found_;
  int steps_ = kMostNodes;
};

}  // namespace

bool show_all(PatternSample* sample) {
  std::set<ValueId> shown;
  for (const auto& [name, id] : sample->graph.outputs()) shown.insert(id);
  for (const size_t k : sample->nodes) {
    const std::vector<ValueId> made = sample->graph.nodes()[k].outputs;
    for (const ValueId id : made) {
      if (!shown.insert(id).second) continue;
      if (!sample->graph.add_output("y" + std::to_string(id), id).ok()) return false;
    }
  }
  return true;
}

std::string PatternSample::text() const {
  std::string out;
  for (const size_t k : nodes) {
    const Node& node = graph.nodes()[k];
    out += (out.empty() ? "" : "; ") + node.op->full_name() + "(";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      out += i > 0 ? ", " : "";
      out += id == GR_NO_VALUE ? "-" : to_text(graph.value(id).type);
    }
    out += ")" + (node.attrs.items().empty() ? "" : " {" + node.attrs.text() + "}");
  }
  return out;
}

std::vector<PatternSample> pattern_samples(const PatternText& pattern, uint64_t seed, size_t most,
                                           const std::function<bool(const PatternSample&)>& takes) {
  return Search(pattern, seed, most, takes).run();
}

}  // namespace gradrack::conform
