// SPDX-License-Identifier: Apache-2.0
// Opening a session: see session.hpp.
#include "core/train/session.hpp"

#include <filesystem>

#include "core/base/log.hpp"
#include "core/train/weights.hpp"

namespace gradrack {
namespace {

Result<LoadPolicy> load_policy(const SessionRequest& request, const RunConfig& config) {
  LoadPolicy policy;
  policy.allow_writable = request.allow_writable_plugins || config.allow_writable_plugins;
  policy.runtimes =
      config.warn_of_duplicate_runtimes ? DuplicateRuntimes::kWarn : DuplicateRuntimes::kRefuse;
  const std::string path = request.ignore_lock ? "" : lock_path_of(config);
  if (path.empty()) return policy;
  GR_ASSIGN(policy.lock, load_lock_file(path));
  return policy;
}

}  // namespace

std::string lock_path_of(const RunConfig& config) {
  if (!config.plugin_lock.empty()) return config.plugin_lock;
  const std::filesystem::path beside =
      std::filesystem::path(config.file).parent_path() / "plugins.lock";
  std::error_code error;
  return std::filesystem::exists(beside, error) ? beside.string() : "";
}

Result<std::unique_ptr<Session>> open_session(const SessionRequest& request,
                                              EventSink::Listener recorder) {
  auto session = std::make_unique<Session>();
  session->events.add(log_event);
  if (recorder) session->events.add(std::move(recorder));
  GR_ASSIGN(session->config, load_run_config(request.config_path, request.sets));
  for (const std::string& text : session->config.defaults) {
    session->events.emit({"default", Level::kInfo, "default: " + text, {{"default", text}}});
  }
  GR_ASSIGN(LoadPolicy policy, load_policy(request, session->config));
  session->plugins = std::make_unique<PluginRegistry>(
      search_folders(request.plugin_path, session->config.plugin_path, session->events),
      session->events, std::move(policy));
  return session;
}

Result<std::vector<Selection>> validate_session(Session& session) {
  const RunConfig& config = session.config;
  std::vector<Selection> all;
  for (const PluginSection* section : config.plugin_sections()) {
    const bool backend = section == &config.backend, optimizer = section == &config.optimizer;
    const ChainUse use = backend || optimizer ? ChainUse::kAll : ChainUse::kFirst;
    const Fallback fallback = backend ? config.fallback : Fallback::kWarn;
    GR_ASSIGN(const std::vector<Selection> selected,
              select_plugins(*session.plugins, *section, use, fallback, session.events));
    all.insert(all.end(), selected.begin(), selected.end());
    const std::string& mapping = config.run.init_from.mapping;
    if (section == &config.model && !mapping.empty()) {
      GR_TRY(mapping_for(mapping, session, *selected.front().choice).status());
    }
  }
  if (!config.sinks.chain.empty()) {
    GR_ASSIGN(const std::vector<Selection> sinks,
              select_plugins(*session.plugins, config.sinks, ChainUse::kAll, Fallback::kWarn,
                             session.events));
    all.insert(all.end(), sinks.begin(), sinks.end());
  }
  return all;
}

}  // namespace gradrack
