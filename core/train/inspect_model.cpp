// SPDX-License-Identifier: Apache-2.0
// `gradrack onnx inspect`: see export_model.hpp.
#include <fmt/format.h>

#include <cstdio>

#include "core/base/text.hpp"
#include "core/plan/lower.hpp"
#include "core/plugin/choose.hpp"
#include "core/rewrite/simplify.hpp"
#include "core/train/export_model.hpp"
#include "core/train/model_file.hpp"
#include "core/train/model_graph.hpp"

namespace gradrack {

namespace {

void line(const std::string& label, const std::string& text) {
  std::fputs(fmt::format("{:<12} {}\n", label, text).c_str(), stdout);
}

Result<PluginSection> section_of(const InspectModelRequest& request) {
  PluginChoice choice;
  choice.name = request.plugin;
  choice.path = "model";
  YamlNode options;
  options.kind = YamlNode::Kind::kMap;
  GR_TRY(apply_set(options, "file=" + yaml_quoted(request.file)));
  for (const std::string& set : request.sets) GR_TRY(apply_set(options, set));
  // A loss is no matter here; `none` fits every file that has an output.
  if (options.find("loss") == nullptr) GR_TRY(apply_set(options, "loss=none"));
  choice.options = std::move(options.entries);
  return PluginSection{"model", {std::move(choice)}};
}

void print_facts(const std::vector<ModelFact>& facts, bool weights) {
  std::string last;
  for (const ModelFact& fact : facts) {
    if (fact.value.empty() || (fact.topic == "weight" && !weights)) continue;
    line(fact.topic == last ? "" : fact.topic, fact.key + ": " + fact.value);
    last = fact.topic;
  }
}

void print_sources(const Graph& graph) {
  int64_t trained = 0, kept = 0;
  size_t tensors = 0;
  for (const Value& value : graph.values()) {
    const bool parameter = value.source == Source::kParameter;
    if (!parameter && value.source != Source::kBuffer) continue;
    int64_t count = 1;
    for (const Dim& dim : value.type.shape) count *= dim.is_number() ? dim.number() : 0;
    (parameter ? trained : kept) += count;
    tensors += parameter ? 1 : 0;
  }
  line("trained", fmt::format("{} in {} tensors; {} more are kept", trained, tensors, kept));
  std::string first = "inputs";
  for (const Value& value : graph.values()) {
    if (value.source != Source::kInput) continue;
    line(first, value.name + ": " + to_text(value.type));
    first = "";
  }
  first = "outputs";
  for (const auto& [name, id] : graph.outputs()) {
    line(first, name + ": " + to_text(graph.value(id).type));
    first = "";
  }
}

/// What each backend in reach would run of it, every symbol being 1.
Status print_placement(PluginRegistry& plugins, EventSink& events, const Graph& graph) {
  std::vector<Chosen<gr_backend_t>> backends;
  std::vector<std::unique_ptr<Device>> devices;
  for (const Factory* factory : plugins.all_of("backend")) {
    PluginChoice choice;
    choice.name = choice.path = factory->name;
    auto backend = choose<gr_backend_t>(plugins, {"backend", {std::move(choice)}}, events);
    if (!backend.ok()) continue;  // one that this machine has nothing for
    backends.push_back(std::move(*backend));
    GR_ASSIGN(auto device, Device::make(factory->name, &backends.back().instance.table()));
    devices.push_back(std::move(device));
  }
  Bindings bindings;
  for (const Value& value : graph.values()) {
    if (value.source != Source::kInput) continue;
    for (const Dim& dim : value.type.shape) {
      if (!dim.is_number()) bindings[dim.text()] = 1;
    }
  }
  std::string first = "runs on";
  for (const auto& device : devices) {
    const auto lowered = lower_by_chain(graph, bindings, {device.get()});
    const std::string text =
        lowered.ok() ? lowered->summary[0].text()
                     : device->name() + ": not all of it: " + lowered.status().message();
    line(first, text);
    first = "";
  }
  return {};
}

}  // namespace

Status inspect_model(PluginRegistry& plugins, EventSink& events,
                     const InspectModelRequest& request) {
  GR_ASSIGN(const PluginSection section, section_of(request));
  GR_ASSIGN(const Chosen<gr_model_t> model, choose<gr_model_t>(plugins, section, events));
  GR_ASSIGN(const std::vector<ModelFact> facts, model_facts(model.instance));
  print_facts(facts, request.weights);
  GR_ASSIGN(const Graph built, build_model(model.instance, GraphUse::kExport, nullptr));
  GR_ASSIGN(const Graph graph, simplify(built));
  print_sources(graph);
  return print_placement(plugins, events, graph);
}

}  // namespace gradrack
