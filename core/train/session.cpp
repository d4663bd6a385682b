// SPDX-License-Identifier: Apache-2.0
// Opening a session: see session.hpp.
#include "core/train/session.hpp"

#include "core/base/log.hpp"

namespace gradrack {

Result<std::unique_ptr<Session>> open_session(const SessionRequest& request,
                                              EventSink::Listener recorder) {
  auto session = std::make_unique<Session>();
  session->events.add(log_event);
  if (recorder) session->events.add(std::move(recorder));
  GR_ASSIGN(session->config, load_run_config(request.config_path, request.sets));
  for (const std::string& text : session->config.defaults) {
    session->events.emit({"default", Level::kInfo, "default: " + text, {{"default", text}}});
  }
  session->plugins = std::make_unique<PluginRegistry>(
      search_folders(request.plugin_path, session->config.plugin_path, session->events),
      session->events);
  return session;
}

Result<std::vector<Selection>> validate_session(Session& session) {
  const RunConfig& config = session.config;
  std::vector<Selection> all;
  for (const PluginSection* section :
       {&config.model, &config.data, &config.optimizer, &config.lr_schedule, &config.precision,
        &config.scheduler, &config.backend}) {
    const ChainUse use = section == &config.backend ? ChainUse::kAll : ChainUse::kFirst;
    const Fallback fallback = use == ChainUse::kAll ? config.fallback : Fallback::kWarn;
    GR_ASSIGN(const std::vector<Selection> selected,
              select_plugins(*session.plugins, *section, use, fallback, session.events));
    all.insert(all.end(), selected.begin(), selected.end());
  }
  return all;
}

}  // namespace gradrack
