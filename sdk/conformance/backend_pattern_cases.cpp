// SPDX-License-Identifier: Apache-2.0
// L3: gr.fusion/1: each declared pattern is run as one kernel and compared with its nodes one by
// one, on the same backend. Not applicable to a backend without the extension.
//
// Samples come from the pattern's expression (pattern_sample.hpp), where the backend claims the
// nodes and the group; once with its last results alone, once with everything that it makes read
// outside. Invariant: the nodes alone are the oracle, whatever they are worth themselves.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/plan/border.hpp"
#include "core/plan/claim.hpp"
#include "core/plan/node_views.hpp"
#include "sdk/conformance/backend_bench.hpp"
#include "sdk/conformance/pattern_sample.hpp"
#include "sdk/conformance/tolerance.hpp"

namespace gradrack::conform {
namespace {

constexpr size_t kMostSamples = 6;  // a pattern
constexpr size_t kMostShown = 6;

class PatternTrial {
 public:
  PatternTrial(const Bench& bench, const BackendPattern& pattern,
               std::vector<std::string>* failures)
      : bench_(bench), pattern_(pattern), failures_(*failures) {}

  /// The number of samples that were compared.
  Result<size_t> run() {
    const auto takes = [this](const PatternSample& sample) {
      const auto claimed = claims(sample);
      return claimed.ok() && *claimed;
    };
    const auto samples = pattern_samples(pattern_.text, bench_.seed, kMostSamples, takes);
    for (const PatternSample& sample : samples) {
      GR_TRY(compare_with_nodes(sample));
      PatternSample shown = sample;
      if (!show_all(&shown)) return internal_error("a sample's results cannot be its outputs");
      GR_ASSIGN(const bool claimed, claims(shown));
      if (claimed) GR_TRY(compare_with_nodes(shown));
    }
    return samples.size();
  }

 private:
  /// The nodes one by one, and the group.
  Result<bool> claims(const PatternSample& sample) const {
    GR_ASSIGN(const BoundGraph bound, bind_graph(sample.graph, {}));
    GR_ASSIGN(const std::vector<Claim> claims,
              ask_claims(*bench_.tested->device(), bound, sample.nodes));
    for (const Claim& claim : claims) {
      if (!claim.yes) return false;
    }
    const Wires wires = find_wires(bound);
    NodeGroup group = sample.nodes;
    std::sort(group.begin(), group.end());
    const Border border = border_of_match(bound, wires, group);
    NodeViews views(bound, &wires.root);
    for (const size_t k : sample.nodes) views.add(k);
    const std::vector<gr_value_type_t> inputs = views.types_of(border.inputs);
    const std::vector<gr_value_type_t> outputs = views.types_of(border.outputs);
    gr_group_t asked = views.group(inputs, outputs);
    asked.pattern = pattern_.index + 1;
    gr_claim_t claim = {};
    claim.struct_size = sizeof claim;
    gr_error_t err = {};
    const gr_fusion_t* const fusion = fusion_of(bench_.tested->table());
    const int32_t code = fusion->claim_group(fusion->self, pattern_.index, &asked, &claim, &err);
    GR_TRY(status_from(code, err).with_context(pattern_.name + ": claim_group"));
    return claim.verdict == GR_CLAIM_YES;
  }

  void fail(const PatternSample& sample, const std::string& text) {
    const std::string line = pattern_.name + ": " + sample.text() + ": " + text;
    if (std::find(failures_.begin(), failures_.end(), line) == failures_.end()) {
      failures_.push_back(line);
    }
  }

  /// What the roundings of all nodes may add up to.
  static double room(const PatternSample& sample) {
    double sum = 0;
    for (const size_t k : sample.nodes) {
      const Node& node = sample.graph.nodes()[k];
      double most = 0;
      for (const auto* ids : {&node.inputs, &node.outputs}) {
        for (const ValueId id : *ids) {
          if (id == GR_NO_VALUE || !is_real(sample.graph.value(id).type.dtype)) continue;
          most = std::max(most, tolerance(node.op->full_name(), sample.graph.value(id).type.dtype));
        }
      }
      sum += most;
    }
    return 2 * sum;
  }

  std::map<std::string, HostArray> draw(const PatternSample& sample) const {
    OpCase drawn;
    drawn.inputs = sample.inputs;
    return source_arrays(drawn, draw_contents(drawn, bench_.seed));
  }

  Status compare_with_nodes(const PatternSample& sample) {
    const auto sources = draw(sample);
    GR_ASSIGN(const Evaluation nodes, evaluate(sample.graph, sources, {bench_.tested}));
    GR_ASSIGN(const BoundGraph bound, bind_graph(sample.graph, {}));
    const auto kernel =
        KernelRun::prepare_match(*bench_.tested, bound, sample.nodes, pattern_.index);
    if (!kernel.ok()) {
      fail(sample, "claimed, but " + kernel.status().message());
      return {};
    }
    const std::string info = kernel->info_fault();
    if (!info.empty()) {
      fail(sample, info);
      return {};
    }
    const Contents contents = contents_of(sample.graph, sources);
    GR_ASSIGN(const std::vector<HostArray> base, launch(sample, *kernel, contents, {}));
    for (size_t k = 0; k < base.size(); ++k) {
      const std::string fault =
          compare(base[k], wanted(sample.graph, nodes, kernel->outputs()[k]), room(sample));
      if (!fault.empty()) fail(sample, fmt::format("output {}, {}", k, fault));
    }
    const std::pair<LaunchStyle, const char*> styles[] = {
        {{}, "two launches on equal inputs differ"},
        {{0xff, 0xff, 0x00, false, false}, "depends on bytes that it may not read"},
        {{0x5a, 0x5a, 0xff, true, false}, "another result in place, as in_place allows"}};
    for (const auto& [style, what] : styles) {
      GR_ASSIGN(const std::vector<HostArray> other, launch(sample, *kernel, contents, style));
      for (size_t k = 0; k < base.size() && k < other.size(); ++k) {
        const std::string fault = compare_bits(base[k], other[k]);
        if (!fault.empty()) fail(sample, fmt::format("{}: output {}, {}", what, k, fault));
      }
    }
    return {};
  }

  Result<std::vector<HostArray>> launch(const PatternSample& sample, const KernelRun& kernel,
                                        const Contents& contents, const LaunchStyle& style) {
    std::vector<std::string> faults;
    auto outputs = kernel.launch(contents, style, &faults);
    for (const std::string& fault : faults) fail(sample, fault);
    if (outputs.ok()) return outputs;
    fail(sample, "claimed, but launch fails: " + outputs.status().message());
    return std::vector<HostArray>();
  }

  static HostArray wanted(const Graph& graph, const Evaluation& nodes, ValueId id) {
    for (size_t k = 0; k < graph.outputs().size(); ++k) {
      if (graph.outputs()[k].second == id) return nodes.outputs[k];
    }
    return {};
  }

  const Bench& bench_;
  const BackendPattern& pattern_;
  std::vector<std::string>& failures_;
};

Outcome declared(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  if (fusion_of(bench.tested->table()) == nullptr) return not_applicable("no " GR_EXT_FUSION);
  CONFORM_ASSIGN(const std::vector<BackendPattern> patterns, patterns_of(bench.tested->table()));
  for (const BackendPattern& pattern : patterns) {
    if (pattern.help.empty()) return fail("pattern " + pattern.name + " has no help");
    std::vector<std::string> ops(pattern.text.set.begin(), pattern.text.set.end());
    for (const PatternNode& node : pattern.text.nodes) {
      ops.insert(ops.end(), node.ops.begin(), node.ops.end());
    }
    for (const std::string& op : ops) {
      OpCase named;
      named.op = op;
      const OpDef* const def = OpRegistry::builtin().find(named.domain(), named.name());
      if (def == nullptr) return fail("pattern " + pattern.name + ": no operator " + op);
      if (def->view) {
        return fail("pattern " + pattern.name + ": " + op +
                    " is a view, and patterns look through views");
      }
    }
  }
  Outcome out = pass();
  out.text = fmt::format("{} patterns", patterns.size());
  return out;
}

Outcome agree(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  if (fusion_of(bench.tested->table()) == nullptr) return not_applicable("no " GR_EXT_FUSION);
  CONFORM_ASSIGN(const std::vector<BackendPattern> patterns, patterns_of(bench.tested->table()));
  std::vector<std::string> failures, tried, untried;
  for (const BackendPattern& pattern : patterns) {
    CONFORM_ASSIGN(const size_t samples, PatternTrial(bench, pattern, &failures).run());
    if (samples == 0) {
      untried.push_back(pattern.name);
    } else {
      tried.push_back(fmt::format("{} {}", pattern.name, samples));
    }
  }
  if (!failures.empty()) {
    const size_t more = failures.size() - std::min(failures.size(), kMostShown);
    failures.resize(failures.size() - more);
    return fail(join(failures, "\n") + (more > 0 ? fmt::format("\n... and {} more", more) : ""));
  }
  if (tried.empty()) return not_applicable("no sample was found for: " + join(untried));
  Outcome out = pass();
  out.text = "samples: " + join(tried);
  if (!untried.empty()) out.text += "; none found, so not tried: " + join(untried);
  return out;
}

}  // namespace

void add_pattern_cases(std::vector<Case>* cases) {
  cases->push_back({"L3.patterns.declared", 3, "patterns have names, help and known operators",
                    declared, "L3.patterns"});
  cases->push_back({"L3.patterns.agree", 3, "each pattern gives what its nodes give one by one",
                    agree, "L3.patterns"});
}

}  // namespace gradrack::conform
