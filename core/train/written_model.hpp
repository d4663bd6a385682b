// SPDX-License-Identifier: Apache-2.0
// WrittenModel: a graph with its weights, in the form in which a gr.model_writer/1 takes it.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/exec/run_once.hpp"
#include "core/train/model_file.hpp"

namespace gradrack {

/// Owns what table() points to, but for contents of weights and attributes: `graph` and `weights`
/// outlive it. Values of nodes are named after their stage and
/// operator, outputs of the graph by their names, sources keep theirs.
class WrittenModel {
 public:
  /// `weights` holds every parameter and buffer that a node reads. GR_NOT_FOUND names one that is
  /// missing. [main]
  static Result<std::unique_ptr<WrittenModel>> make(const Graph& graph, const HostTensors& weights,
                                                    const std::string& name,
                                                    const std::vector<ModelFact>& facts);

  const gr_written_model_t* table() const { return &table_; }

 private:
  WrittenModel() = default;
  Status add_values(const Graph& graph, const HostTensors& weights);
  Status add_value(const Graph& graph, const HostTensors& weights, ValueId id);
  void add_nodes(const Graph& graph);
  void add_outputs(const Graph& graph);
  void add_facts(const std::vector<ModelFact>& facts);
  std::string value_name(const Graph& graph, ValueId id) const;
  const gr_dim_t* keep_dims(const Shape& shape);
  const char* keep(std::string text);

  /// A node with what its table points to.
  struct Node {
    gr_node_t node;
    gr_written_node_t written;
    std::vector<gr_value_t> inputs, outputs;
    std::vector<gr_attr_t> attrs;
  };

  std::string name_;
  std::deque<std::string> texts_;
  std::deque<std::vector<gr_dim_t>> dims_;
  std::deque<std::vector<std::byte>> contents_;
  std::deque<Node> node_store_;
  std::deque<gr_written_value_t> value_store_;
  std::vector<gr_value_t> place_;  // of each value of the graph, or GR_NO_VALUE
  std::vector<const gr_written_value_t*> values_;
  std::vector<const gr_written_node_t*> nodes_;
  std::vector<gr_written_output_t> outputs_;
  std::vector<gr_model_fact_t> facts_;
  gr_written_model_t table_ = {};
};

}  // namespace gradrack
