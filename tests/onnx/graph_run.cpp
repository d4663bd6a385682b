// SPDX-License-Identifier: Apache-2.0
// See graph_run.hpp.
#include "tests/onnx/graph_run.hpp"

#include "core/graph/builder_api.hpp"
#include "core/plugin/choose.hpp"
#include "core/plugin/registry.hpp"
#include "core/train/model_file.hpp"
#include "gradrack/model.h"

namespace gradrack::testing {

namespace {

template <typename Table>
Result<Chosen<Table>> choose_one(PluginRegistry& plugins, const std::string& kind,
                                 const std::string& name, const Texts& options, EventSink& events) {
  PluginChoice choice;
  choice.name = name;
  choice.path = kind;
  for (const auto& [key, value] : options) {
    GR_ASSIGN(YamlNode root, parse_yaml(key + ": " + value, "the option " + key));
    choice.options.push_back(std::move(root.entries.at(0)));
  }
  return choose<Table>(plugins, {kind, {std::move(choice)}}, events);
}

}  // namespace

HostTensors inputs_of(const SafetensorsFile& file) {
  constexpr std::string_view kPrefix = "input.";
  HostTensors inputs;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (entry.name.rfind(kPrefix, 0) != 0) continue;
    const auto bytes = file.bytes(entry);
    inputs[entry.name.substr(kPrefix.size())] = {
        entry.dtype, entry.shape, std::vector<std::byte>(bytes.begin(), bytes.end())};
  }
  return inputs;
}

Result<HostTensors> run_onnx(const OnnxRun& run, const HostTensors& inputs) {
  EventSink events;
  PluginRegistry plugins({{GRADRACK_PLUGIN_DIR, "tests"}}, events, {});
  Texts options = run.options;
  options.emplace_back("file", run.file);
  options.emplace_back("loss", "none");
  GR_ASSIGN(const Chosen<gr_model_t> model,
            choose_one<gr_model_t>(plugins, "model", "onnx", options, events));
  Graph graph;
  BuilderApi api(graph);
  const gr_builder_t builder = api.builder();
  gr_model_context_t context = {};
  context.struct_size = sizeof context;
  context.exporting = 1;
  gr_error_t err = {};
  const gr_model_t& table = model.instance.table();
  GR_TRY(status_from(table.build(table.self, &builder, &context, &err), err));

  GR_ASSIGN(const Chosen<gr_backend_t> first,
            choose_one<gr_backend_t>(plugins, "backend", run.backend, {}, events));
  GR_ASSIGN(const Chosen<gr_backend_t> rest,
            choose_one<gr_backend_t>(plugins, "backend", "reference", {}, events));
  GR_ASSIGN(const auto device, Device::make(run.backend, &first.instance.table()));
  GR_ASSIGN(const auto second, Device::make("reference", &rest.instance.table()));
  std::vector<Device*> devices = {device.get()};
  if (run.backend != "reference") devices.push_back(second.get());
  GR_ASSIGN(const HostTensors stored, initial_weights(model.instance, graph, 1));
  return run_once(graph, devices, stored, inputs);
}

}  // namespace gradrack::testing
