// SPDX-License-Identifier: Apache-2.0
// Opening a session: see session.hpp.
#include "core/train/session.hpp"

#include "core/base/log.hpp"
#include "core/plugin/choose.hpp"

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

Status validate_session(Session& session) {
  const RunConfig& config = session.config;
  for (const PluginSection* section : {&config.model, &config.data, &config.optimizer,
                                       &config.lr_schedule, &config.precision, &config.scheduler}) {
    GR_TRY(select_plugins(*session.plugins, *section, ChainUse::kFirst, Fallback::kWarn,
                          session.events)
               .status());
  }
  return select_plugins(*session.plugins, config.backend, ChainUse::kAll, config.fallback,
                        session.events)
      .status();
}

}  // namespace gradrack
