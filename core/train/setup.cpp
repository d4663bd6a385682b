// SPDX-License-Identifier: Apache-2.0
// Setup: see setup.hpp.
#include "core/train/setup.hpp"

#include <fmt/format.h>

#include "core/train/settle_precision.hpp"

namespace gradrack {

namespace {

// "cpu {threads: 2}, reference {}".
std::string chain_text(const PluginSection& section) {
  std::string text;
  for (const PluginChoice& choice : section.chain) {
    YamlNode options;
    options.kind = YamlNode::Kind::kMap;
    options.entries = choice.options;
    text += (text.empty() ? "" : ", ") + choice.name + " " + to_yaml(options);
  }
  return text;
}

}  // namespace

std::vector<Device*> Setup::device_list() const {
  std::vector<Device*> list;
  for (const auto& device : machine->devices) list.push_back(device.get());
  return list;
}

std::string Machine::plans_text() const {
  const SegmentStatistics s = segments->statistics();
  return fmt::format("{}; segments {} built, {} reused, {} kernels", plans.statistics().text(),
                     s.built, s.reused, s.kernels);
}

Result<std::shared_ptr<Machine>> make_machine(Session& session) {
  const RunConfig& config = session.config;
  auto machine = std::make_shared<Machine>(static_cast<size_t>(config.run.plan_cache_limit));
  machine->chain = chain_text(config.backend);
  machine->plans.listen([&events = session.events](const Event& event) { events.emit(event); });
  GR_ASSIGN(machine->backends, choose_all<gr_backend_t>(*session.plugins, config.backend,
                                                        config.fallback, session.events));
  for (const Chosen<gr_backend_t>& backend : machine->backends) {
    GR_ASSIGN(std::unique_ptr<Device> device,
              Device::make(backend.instance.name(), &backend.instance.table()));
    machine->devices.push_back(std::move(device));
  }
  return machine;
}

Result<Setup> make_setup(Session& session, std::shared_ptr<Machine> machine) {
  PluginRegistry& plugins = *session.plugins;
  EventSink& events = session.events;
  const RunConfig& config = session.config;
  Setup setup;
  if (machine == nullptr) {
    GR_ASSIGN(machine, make_machine(session));
  } else if (machine->chain != chain_text(config.backend)) {
    return invalid_argument(fmt::format("{}: backend is {}, but the devices of this process are {}",
                                        config.file, chain_text(config.backend), machine->chain));
  }
  setup.machine = std::move(machine);
  GR_ASSIGN(setup.data, choose<gr_data_t>(plugins, config.data, events));
  GR_ASSIGN(setup.model, choose<gr_model_t>(plugins, config.model, events));
  GR_ASSIGN(setup.precision, choose<gr_precision_t>(plugins, config.precision, events));
  const Instance<gr_precision_t>& precision = setup.precision->instance;
  GR_ASSIGN(setup.precision_reason,
            settle_precision(precision.table(), *setup.machine->devices.front()));
  if (!setup.precision_reason.empty()) {
    events.emit({"precision", Level::kInfo,
                 fmt::format("precision {}: {}", precision.name(), setup.precision_reason)});
  }
  GR_ASSIGN(setup.scheduler, choose<gr_scheduler_t>(plugins, config.scheduler, events));
  GR_ASSIGN(setup.lr_schedule, choose<gr_lr_schedule_t>(plugins, config.lr_schedule, events));
  GR_ASSIGN(setup.optimizers, choose_optimizers(plugins, config.optimizer, events));
  return setup;
}

}  // namespace gradrack
