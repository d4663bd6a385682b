// SPDX-License-Identifier: Apache-2.0
// The chain of a step's graph: see recompute_table.hpp.
#include "core/plan/recompute_table.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/plan/border.hpp"
#include "core/plan/work.hpp"

namespace gradrack {

namespace {

constexpr size_t kMostOptions = 6;  // beside the one that keeps everything
/// Where a node has no measured time: see kBytesPerNs of draft_finish.cpp, which a bound of flops
/// only meets in products.
constexpr int64_t kFlopsPerByte = 10;

int64_t cost_of(const BoundGraph& bound, size_t node) {
  if (!bound.needs_kernel(node)) return 0;
  const Work work = work_of(bound.graph->nodes()[node], bound);
  return std::max({int64_t{1}, work.flops, work.bytes * kFlopsPerByte});
}

/// When the bytes of a value that a node makes are live, in nodes of the program.
struct Span {
  int64_t bytes = 0;
  int32_t block = -1;  // whose forward node makes it; -1: something else does
  size_t made = 0;
  size_t last_forward = 0;   // its last reader among forward nodes; `made`: none
  size_t last = 0;           // of all
  int32_t last_block = -1;   // the last block with a forward reader
  bool in_backward = false;  // a backward node reads it
  bool in_own_backward = false;
};

std::vector<ForwardBlock> merged_blocks(std::vector<ForwardBlock> blocks) {
  const size_t most = ChainSolver::kMostBlocks;
  if (blocks.size() <= most) return blocks;
  std::vector<ForwardBlock> out(most);
  for (size_t k = 0; k < blocks.size(); ++k) {
    ForwardBlock& to = out[k * most / blocks.size()];
    to.begins = blocks[k].begins;
    to.stages.insert(to.stages.end(), blocks[k].stages.begin(), blocks[k].stages.end());
    to.nodes.insert(to.nodes.end(), blocks[k].nodes.begin(), blocks[k].nodes.end());
  }
  for (ForwardBlock& block : out) std::sort(block.nodes.begin(), block.nodes.end());
  return out;
}

/// Bytes live at each node, from spans that are added.
class LiveBytes {
 public:
  explicit LiveBytes(size_t nodes) : change_(nodes + 1, 0) {}
  void add(size_t from, size_t to, int64_t bytes) {
    change_[from] += bytes;
    change_[to + 1] -= bytes;
  }
  std::vector<int64_t> at_nodes() const {
    std::vector<int64_t> out;
    int64_t live = 0;
    for (size_t k = 0; k + 1 < change_.size(); ++k) out.push_back(live += change_[k]);
    return out;
  }

 private:
  std::vector<int64_t> change_;
};

class Tabulator {
 public:
  explicit Tabulator(const BoundGraph& bound)
      : bound_(bound), graph_(*bound.graph), wires_(find_wires(bound)) {}

  /// The peak alone.
  int64_t peak_bytes() {
    block_of_.assign(graph_.nodes().size(), -1);
    find_spans();
    return peak_of_spans();
  }

  RecomputeTable run() {
    out_.blocks = merged_blocks(forward_blocks(graph_));
    const size_t count = graph_.nodes().size();
    block_of_.assign(count, -1);
    std::vector<int32_t> by_stage(graph_.stages().size(), -1);
    for (size_t b = 0; b < out_.blocks.size(); ++b) {
      for (const size_t k : out_.blocks[b].nodes) block_of_[k] = static_cast<int32_t>(b);
      for (const int32_t stage : out_.blocks[b].stages) {
        by_stage[size_t(stage)] = static_cast<int32_t>(b);
      }
    }
    passes_.resize(out_.blocks.size());
    for (size_t k = 0; k < count; ++k) {
      const Node& node = graph_.nodes()[k];
      if (!bound_.live[k] || node.stage < 0 || by_stage[size_t(node.stage)] < 0) continue;
      Passes& passes = passes_[size_t(by_stage[size_t(node.stage)])];
      if (node.kind == GR_KIND_FORWARD) passes.forward.push_back(k);
      if (is_backward(node)) passes.backward.push_back(k);
    }
    find_spans();
    out_.chain.resize(out_.blocks.size());
    out_.again.resize(out_.blocks.size());
    count_live();
    for (size_t b = 0; b < out_.blocks.size(); ++b) {
      for (const size_t k : out_.blocks[b].nodes) out_.chain[b].forward_cost += cost_of(bound_, k);
      add_options(b);
    }
    return std::move(out_);
  }

 private:
  struct Passes {
    std::vector<size_t> forward, backward;
  };

  void find_spans() {
    std::set<ValueId> elsewhere;  // in the Store, or the host's
    for (const auto& [name, id] : graph_.outputs()) elsewhere.insert(wires_.root[size_t(id)]);
    for (const Write& write : graph_.writes()) elsewhere.insert(wires_.root[size_t(write.value)]);
    for (size_t k = 0; k < graph_.nodes().size(); ++k) {
      if (!bound_.live[k]) continue;
      const Node& node = graph_.nodes()[k];
      for (const ValueId id : node.outputs) {
        if (wires_.root[size_t(id)] != id || bound_.at(id).constant || elsewhere.count(id) > 0) {
          continue;
        }
        spans_[id] = {bound_.at(id).bytes, block_of_[k], k, k, k};
      }
      for (const ValueId id : node.inputs) {
        if (id != GR_NO_VALUE) read(id, k);
      }
    }
  }

  void read(ValueId id, size_t reader) {
    const auto at = spans_.find(wires_.root[size_t(id)]);
    const Node& node = graph_.nodes()[reader];
    if (at == spans_.end() || node.op->view) return;
    Span& span = at->second;
    span.last = reader;
    if (is_backward(node)) {
      span.in_backward = true;
      const auto& own =
          span.block >= 0 ? out_.blocks[size_t(span.block)].stages : std::vector<int32_t>();
      span.in_own_backward |= std::find(own.begin(), own.end(), node.stage) != own.end();
    } else if (node.kind == GR_KIND_FORWARD) {
      span.last_forward = reader;
      span.last_block = std::max(span.last_block, block_of_[reader]);
    }
  }

  bool crosses(const Span& span, size_t boundary) const {
    return span.block >= 0 && size_t(span.block) <= boundary &&
           span.last_block > static_cast<int32_t>(boundary);
  }
  bool is_kept(const Span& span, size_t block) const {
    return span.block == static_cast<int32_t>(block) && span.in_backward && !crosses(span, block);
  }

  int64_t peak_of_spans() const {
    LiveBytes all(graph_.nodes().size());
    for (const auto& [id, span] : spans_) all.add(span.made, span.last, span.bytes);
    int64_t peak = 0;
    for (const int64_t bytes : all.at_nodes()) peak = std::max(peak, bytes);
    return peak;
  }

  void count_live() {
    const size_t count = graph_.nodes().size();
    LiveBytes other(count), forward(count), passing(count);
    for (const auto& [id, span] : spans_) {
      if (span.block < 0) {
        other.add(span.made, span.last, span.bytes);
        continue;
      }
      const auto block = static_cast<size_t>(span.block);
      if (!crosses(span, block)) {
        forward.add(span.made, span.last_forward, span.bytes);
        if (!is_kept(span, block)) passing.add(span.made, span.last_forward, span.bytes);
      } else if (span.in_own_backward) {
        out_.chain[block].backward_bytes += span.bytes;
      }
      for (size_t b = 0; b < out_.blocks.size(); ++b) {
        if (crosses(span, b)) out_.chain[b].boundary_bytes += span.bytes;
      }
    }
    const std::vector<int64_t> others = other.at_nodes(), runs = forward.at_nodes(),
                               saves = passing.at_nodes();
    out_.peak_bytes = peak_of_spans();
    for (size_t b = 0; b < out_.blocks.size(); ++b) {
      ChainBlock& block = out_.chain[b];
      for (const size_t k : passes_[b].forward) {
        block.run_bytes = std::max(block.run_bytes, others[k] + runs[k]);
        block.save_bytes = std::max(block.save_bytes, others[k] + saves[k]);
      }
      int64_t most = 0;
      for (const size_t k : passes_[b].backward) most = std::max(most, others[k]);
      block.backward_bytes += most;
      if (!passes_[b].backward.empty()) block.gradient_bytes = others[passes_[b].backward.back()];
    }
  }

  /// The kept bytes of each node of a block that makes some.
  std::map<size_t, int64_t> kept_nodes(size_t b) const {
    std::map<size_t, int64_t> bytes;
    for (const auto& [id, span] : spans_) {
      if (is_kept(span, b)) bytes[span.made] += span.bytes;
    }
    return bytes;
  }

  /// Nodes that are forgotten when of the kept ones all but `again` stay.
  std::vector<size_t> forgotten(size_t b, const std::map<size_t, int64_t>& kept,
                                const std::set<size_t>& again) const {
    std::set<size_t> stay;
    for (const auto& [node, bytes] : kept) {
      if (again.count(node) == 0) stay.insert(node);
    }
    for (const auto& [id, span] : spans_) {
      if (span.block == static_cast<int32_t>(b) && crosses(span, b) && span.in_own_backward) {
        stay.insert(span.made);
      }
    }
    std::vector<size_t> out;
    for (const size_t k : out_.blocks[b].nodes) {
      const Node& node = graph_.nodes()[k];
      const ValueId root = node.op->view ? wires_.root[size_t(node.inputs[0])] : GR_NO_VALUE;
      const int32_t maker = root == GR_NO_VALUE ? -1 : graph_.value(root).node;
      const size_t decides = maker >= 0 ? size_t(maker) : k;
      if (stay.count(decides) == 0) out.push_back(k);
    }
    return out;
  }

  /// What making `nodes` anew costs, with what of `forgotten` they need.
  int64_t cost_again(const std::set<size_t>& nodes, const std::vector<size_t>& forgotten) const {
    std::set<size_t> made(nodes.begin(), nodes.end());
    std::vector<size_t> open(nodes.begin(), nodes.end());
    int64_t cost = 0;
    while (!open.empty()) {
      const size_t node = open.back();
      open.pop_back();
      cost += cost_of(bound_, node);
      for (const ValueId id : graph_.nodes()[node].inputs) {
        const int32_t maker = id == GR_NO_VALUE ? -1 : graph_.value(id).node;
        if (maker < 0 ||
            !std::binary_search(forgotten.begin(), forgotten.end(), static_cast<size_t>(maker))) {
          continue;
        }
        if (made.insert(size_t(maker)).second) open.push_back(size_t(maker));
      }
    }
    return cost;
  }

  /// Ways to keep a block: the cheapest nodes a byte are made anew, more and more of them.
  void add_options(size_t b) {
    const std::map<size_t, int64_t> kept = kept_nodes(b);
    ChainBlock& block = out_.chain[b];
    int64_t all = 0;
    std::vector<std::pair<double, size_t>> ranked;
    for (const auto& [node, bytes] : kept) {
      all += bytes;
      if (bytes == 0 || block_of_[node] < 0) continue;
      const int64_t cost = cost_again({node}, forgotten(b, kept, {node}));
      ranked.emplace_back(static_cast<double>(cost) / static_cast<double>(bytes), node);
    }
    block.options[0].kept_bytes = all;
    out_.again[b].push_back({});
    std::sort(ranked.begin(), ranked.end());
    std::set<size_t> again;
    int64_t bytes = 0;
    for (size_t k = 0; k < ranked.size(); ++k) {
      again.insert(ranked[k].second);
      bytes += kept.at(ranked[k].second);
      // As many options as fit, at even distances; the last leaves nothing kept.
      const size_t step = k * kMostOptions / ranked.size();
      if (k + 1 < ranked.size() && (k + 1) * kMostOptions / ranked.size() == step) continue;
      std::vector<size_t> nodes = forgotten(b, kept, again);
      const int64_t cost = cost_again(again, nodes);
      if (cost > block.forward_cost) break;
      block.options.push_back({all - bytes, bytes, cost});
      out_.again[b].push_back(std::move(nodes));
    }
  }

  const BoundGraph& bound_;
  const Graph& graph_;
  const Wires wires_;
  RecomputeTable out_;
  std::vector<int32_t> block_of_;  // of each node that may be forgotten
  std::vector<Passes> passes_;     // by block
  std::map<ValueId, Span> spans_;  // by root
};

}  // namespace

RecomputeTable recompute_table(const BoundGraph& bound) { return Tabulator(bound).run(); }

int64_t live_peak_bytes(const BoundGraph& bound) { return Tabulator(bound).peak_bytes(); }

std::vector<Forget> forgets_of(const RecomputeTable& table, const ChainPlan& plan) {
  std::vector<Forget> forgets;
  for (size_t b = 0; b < plan.option.size(); ++b) {
    const std::vector<size_t>& nodes = table.again[b][plan.option[b]];
    if (!nodes.empty()) forgets.push_back({table.blocks[b].begins, nodes});
  }
  for (const ChainRerun& rerun : plan.reruns) {
    Forget forget{table.blocks[rerun.last].begins};
    for (size_t b = rerun.first; b <= rerun.last; ++b) {
      const std::vector<size_t>& nodes = table.blocks[b].nodes;
      forget.nodes.insert(forget.nodes.end(), nodes.begin(), nodes.end());
    }
    std::sort(forget.nodes.begin(), forget.nodes.end());
    forgets.push_back(std::move(forget));
  }
  return forgets;
}

RecomputeCost cost_of_clones(const BoundGraph& bound, const std::vector<size_t>& cloned) {
  const Graph& graph = *bound.graph;
  RecomputeCost cost;
  std::vector<size_t> by_stage(graph.stages().size(), 0);
  for (const size_t k : cloned) {
    if (!bound.needs_kernel(k)) continue;
    ++cost.nodes;
    ++by_stage[size_t(graph.nodes()[k].stage)];
    cost.flops += work_of(graph.nodes()[k], bound).flops;
  }
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    if (bound.needs_kernel(k)) cost.step_flops += work_of(graph.nodes()[k], bound).flops;
  }
  for (size_t s = 0; s < by_stage.size(); ++s) {
    if (by_stage[s] > 0) cost.stages.emplace_back(graph.stages()[s], by_stage[s]);
  }
  return cost;
}

}  // namespace gradrack
