// SPDX-License-Identifier: Apache-2.0
// RunConfig: see run_config.hpp.
#include "core/config/run_config.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/base/text.hpp"
#include "core/config/include.hpp"
#include "core/config/plugin_section.hpp"
#include "core/config/run_rules.hpp"
#include "core/config/scalar.hpp"
#include "core/config/schema.hpp"

namespace gradrack {
namespace {

Status error_at(const Place& place, const std::string& message) {
  return invalid_argument(place.text() + ": " + message).in_area(Area::kConfig);
}

// `lr: 1` on top belongs somewhere: say where.
std::string home_of_key(const std::string& key) {
  for (const SectionSchema& section : section_schemas()) {
    for (const gr_option_t& option : section.keys) {
      if (key == option.name) {
        return "; it belongs into a section: write " + std::string(section.name) + "." + key;
      }
    }
  }
  return "";
}

Status check_sections(const YamlNode& root) {
  std::vector<std::string> names;
  for (const SectionSchema& section : section_schemas()) names.push_back(section.name);
  for (const YamlEntry& entry : root.entries) {
    if (find_section(entry.key) != nullptr) continue;
    if (entry.key == "include") {
      return error_at(entry.place, "include: stands in a run file alone, not in --set");
    }
    if (entry.key == "distributed") {
      return error_at(entry.place,
                      "distributed: not available yet; remove the section to run on one machine");
    }
    const std::string home = home_of_key(entry.key);
    if (!home.empty()) return error_at(entry.place, entry.key + ": unknown section" + home);
    return error_at(entry.place, entry.key + ": unknown section" + did_you_mean(entry.key, names) +
                                     "; known: " + join(names));
  }
  return {};
}

Result<OptionValues> host_section(const YamlNode& root, const char* name) {
  const SectionSchema& schema = *find_section(name);
  const YamlNode* node = root.find(name);
  const Place where = node != nullptr ? node->place : root.place;
  static const std::vector<YamlEntry> kNone;
  if (node != nullptr && node->kind != YamlNode::Kind::kMap) {
    return error_at(node->place,
                    std::string(name) + ": got " + describe(*node) + ", wanted a map of keys");
  }
  std::vector<std::string> other;  // keys that hold lists and maps: read by themselves
  if (std::string_view(name) == "run") other = run_rule_keys();
  if (std::string_view(name) == "metrics") other = {"sinks"};
  return check_options({name, "section '" + std::string(name) + "'", other, false}, schema.keys,
                       node != nullptr ? node->entries : kNone, where);
}

Status read_duration(const YamlNode& root, const char* section, const char* key,
                     const OptionValues& values, int64_t* seconds) {
  const std::string text = values.text(key);
  if (text.empty()) return {};
  const Result<int64_t> read = parse_duration(text);
  if (!read.ok()) {
    return error_at(root.find(section)->find(key)->place,
                    fmt::format("{}.{}: {}", section, key, read.status().message()));
  }
  *seconds = *read;
  return {};
}

Status check_horizon(const YamlNode& root, const OptionValues& values) {
  const bool steps = values.integer("max_steps") > 0, tokens = values.integer("max_tokens") > 0;
  if (steps != tokens) return {};
  const YamlNode* const run = root.find("run");
  const Place& place = run != nullptr ? run->place : root.place;
  if (steps) {
    return error_at(place, "run.max_steps and run.max_tokens both say how long: remove one");
  }
  return error_at(place, "run.max_steps: missing; wanted an integer >= 1, or run.max_tokens");
}

Status read_run(const YamlNode& root, RunConfig* config) {
  GR_ASSIGN(const OptionValues values, host_section(root, "run"));
  GR_TRY(check_horizon(root, values));
  RunSection& run = config->run;
  run.name = values.text("name");
  if (run.name.empty()) run.name = std::filesystem::path(config->file).stem().string();
  if (run.name.find('/') != std::string::npos) {
    return error_at(root.find("run")->place,
                    "run.name: got text '" + run.name + "', wanted a name without '/'");
  }
  run.seed = values.integer("seed");
  run.max_steps = values.integer("max_steps");
  run.max_tokens = values.integer("max_tokens");
  run.batch_size = values.integer("batch_size");
  run.accumulate_steps = values.integer("accumulate_steps");
  run.eval_interval = values.integer("eval_interval");
  run.eval_batches = values.integer("eval_batches");
  run.log_interval = values.integer("log_interval");
  run.max_grad_norm = values.number("max_grad_norm");
  run.error_if_nonfinite = values.flag("error_if_nonfinite");
  run.undo = values.flag("undo");
  run.output = values.text("output");
  if (run.output.empty()) run.output = "runs/" + run.name;
  run.resume = values.text("resume");
  GR_TRY(read_duration(root, "run", "max_time", values, &run.max_time_s));
  run.plan_cache_limit = values.integer("plan_cache_limit");
  const YamlNode& section = *root.find("run");
  GR_ASSIGN(run.objectives, read_objective_rules(section.find("objectives")));
  GR_ASSIGN(run.freeze, read_freeze_rules(section.find("freeze")));
  GR_ASSIGN(run.init_from, read_init_from(section.find("init_from")));
  return {};
}

Status read_sinks(const YamlNode* metrics, PluginSection* sinks) {
  const SectionSchema sink{"metrics", "writes figures", true, nullptr, {}};
  sinks->kind = sink.name;
  if (metrics == nullptr) return {};
  GR_ASSIGN(sinks->chain, read_plugin_list(sink, metrics->find("sinks"), "metrics.sinks"));
  return check_no_repeats(*sinks);
}

Status read_metrics(const YamlNode& root, RunConfig* config) {
  GR_ASSIGN(const OptionValues metrics, host_section(root, "metrics"));
  config->metrics_file = metrics.text("file");
  config->previews = metrics.integer("previews");
  config->trace_steps = metrics.integer("trace_steps");
  config->trace_from_step = metrics.integer("trace_from_step");
  GR_TRY(read_sinks(root.find("metrics"), &config->sinks));
  const bool steps_known = config->run.max_steps > 0;
  if (config->trace_steps == 0 || !steps_known) return {};
  if (config->trace_from_step <= config->run.max_steps) return {};
  return error_at(root.find("metrics")->place,
                  fmt::format("metrics.trace_from_step is {}, and run.max_steps {}: no step would "
                              "be traced; begin sooner, or set metrics.trace_steps to 0",
                              config->trace_from_step, config->run.max_steps));
}

Status read_checkpoint(const YamlNode& root, CheckpointSection* checkpoint) {
  GR_ASSIGN(const OptionValues values, host_section(root, "checkpoint"));
  checkpoint->interval = values.integer("interval");
  checkpoint->keep_last = values.integer("keep_last");
  checkpoint->keep_best = values.integer("keep_best");
  checkpoint->stop_on_error = values.text("on_error") == "stop";
  return read_duration(root, "checkpoint", "grace", values, &checkpoint->grace_s);
}

Status read_host_sections(const YamlNode& root, RunConfig* config) {
  GR_TRY(read_run(root, config));
  GR_ASSIGN(const OptionValues plugins, host_section(root, "plugins"));
  config->plugin_path = plugins.texts("path");
  config->allow_writable_plugins = plugins.flag("allow_writable");
  config->plugin_lock = plugins.text("lock");
  config->warn_of_duplicate_runtimes = plugins.text("duplicate_runtimes") == "warn";
  GR_TRY(read_checkpoint(root, &config->checkpoint));
  GR_TRY(read_metrics(root, config));
  GR_ASSIGN(const OptionValues memory, host_section(root, "memory"));
  const std::string recompute = memory.text("recompute");
  config->recompute = recompute == "off"      ? Recompute::kOff
                      : recompute == "stages" ? Recompute::kStages
                                              : Recompute::kAuto;
  const std::string limit = memory.text("limit");
  if (!limit.empty()) {
    const Result<int64_t> bytes = parse_bytes(limit);
    if (!bytes.ok()) {
      return error_at(root.find("memory")->find("limit")->place,
                      "memory.limit: " + bytes.status().message());
    }
    config->memory_limit_bytes = *bytes;
  }
  return {};
}

Status read_plugin_sections(const YamlNode& root, RunConfig* config) {
  PluginSection* const targets[] = {&config->model,       &config->data,      &config->optimizer,
                                    &config->lr_schedule, &config->precision, &config->scheduler,
                                    &config->backend};
  const char* const names[] = {"model",     "data",      "optimizer", "lr_schedule",
                               "precision", "scheduler", "backend"};
  for (size_t k = 0; k < std::size(names); ++k) {
    const SectionSchema& schema = *find_section(names[k]);
    GR_ASSIGN(*targets[k], read_plugin_section(schema, root.find(names[k]), root.place));
    if (!targets[k]->is_default) continue;
    std::vector<std::string> chain;
    for (const PluginChoice& choice : targets[k]->chain) chain.push_back(choice.name);
    config->defaults.push_back(std::string(names[k]) + ": " + join(chain, ", then "));
  }
  return {};
}

/// `keys` are not about one entry of the section's chain: they stand in its first.
Status check_chain_keys(const PluginSection& section, std::initializer_list<const char*> keys) {
  const std::vector<PluginChoice>& chain = section.chain;
  for (size_t k = 1; k < chain.size(); ++k) {
    for (const char* key : keys) {
      if (chain[k].path == chain[0].path || !chain[k].host->given(key)) continue;
      return error_at(
          chain[k].place,
          chain[k].path + "." + key + ": holds for the whole chain; write it in " + chain[0].path);
    }
  }
  return {};
}

Status read_chain_keys(RunConfig* config) {
  GR_TRY(check_chain_keys(config->backend, {"fallback", "record", "fuse"}));
  GR_TRY(check_chain_keys(config->scheduler, {"auto_off", "profile", "cache"}));
  GR_TRY(check_chain_keys(config->data, {"prefetch", "workers"}));
  const OptionValues& data = *config->data.chain.front().host;
  config->prefetch = data.integer("prefetch");
  config->data_workers = data.integer("workers");
  const OptionValues& scheduler = *config->scheduler.chain.front().host;
  config->auto_off = scheduler.flag("auto_off");
  config->profile = scheduler.flag("profile");
  if (scheduler.text("cache") != "auto") config->schedule_cache = scheduler.text("cache");
  const OptionValues& backend = *config->backend.chain.front().host;
  config->record = backend.flag("record");
  config->fuse_left_out = backend.texts("fuse");
  const bool word = config->fuse_left_out.size() == 1;
  config->fuse = !word || config->fuse_left_out[0] != "false";
  if (word && (!config->fuse || config->fuse_left_out[0] == "true")) config->fuse_left_out.clear();
  const std::string fallback = backend.text("fallback");
  config->fallback = fallback == "strict" ? Fallback::kStrict
                     : fallback == "warn" ? Fallback::kWarn
                                          : Fallback::kAllow;
  return {};
}

Result<RunConfig> make_config(YamlNode root, const std::string& name,
                              const std::vector<std::string>& sets) {
  if (root.kind == YamlNode::Kind::kNull) {
    return invalid_argument(name + ": nothing in it (no keys)").in_area(Area::kConfig);
  }
  if (root.kind != YamlNode::Kind::kMap) {
    return error_at(root.place, "got " + describe(root) +
                                    " at the top, wanted the sections of a "
                                    "run file (run, model, data, optimizer, ...)");
  }
  GR_ASSIGN(root, resolve_includes(std::move(root), name));
  for (const std::string& set : sets) GR_TRY(apply_set(root, set));
  RunConfig config;
  config.file = name;
  root.place = {name, 0, 0};  // for sections that are missing: no line to name
  GR_TRY(check_sections(root));
  GR_TRY(read_host_sections(root, &config));
  GR_TRY(read_plugin_sections(root, &config));
  GR_TRY(read_chain_keys(&config));
  config.root = std::move(root);
  return config;
}

}  // namespace

Result<RunConfig> load_run_config(const std::string& path, const std::vector<std::string>& sets) {
  GR_ASSIGN(YamlNode root, load_yaml(path));
  return make_config(std::move(root), path, sets);
}

Result<RunConfig> parse_run_config(std::string_view text, const std::string& name,
                                   const std::vector<std::string>& sets) {
  GR_ASSIGN(YamlNode root, parse_yaml(text, name));
  return make_config(std::move(root), name, sets);
}

double base_lr(const PluginChoice& optimizer) { return optimizer.host->number("lr"); }

Result<int64_t> parse_bytes(const std::string& text) {
  const Status wrong =
      invalid_argument("got '" + text + "', wanted a size > 0 such as \"512 MiB\" or \"2 GB\"");
  size_t digits = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0) {
    ++digits;
  }
  if (digits == 0 || digits > 15) return wrong;
  std::string unit = text.substr(digits);
  unit.erase(0, unit.find_first_not_of(' '));
  struct Unit {
    const char* name;
    double bytes;
  };
  constexpr Unit kUnits[] = {
      {"", 1},      {"B", 1},      {"kB", 1e3},      {"MB", 1e6},         {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776}};
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    const double bytes = static_cast<double>(std::stoll(text.substr(0, digits))) * known.bytes;
    if (bytes < 1 || bytes > 9e18) return wrong;
    return static_cast<int64_t>(bytes);
  }
  return wrong;
}

Result<int64_t> parse_duration(const std::string& text) {
  const Status wrong =
      invalid_argument("got '" + text + "', wanted a time > 0 such as 90s, 45m or 1h30m");
  int64_t seconds = 0;
  int64_t last_unit = std::numeric_limits<int64_t>::max();
  for (size_t at = 0; at < text.size();) {
    size_t digits = 0;
    while (at + digits < text.size() && std::isdigit(static_cast<unsigned char>(text[at + digits])))
      ++digits;
    if (digits == 0 || digits > 9 || at + digits == text.size()) return wrong;
    const char unit = text[at + digits];
    const int64_t unit_s = unit == 'h' ? 3600 : unit == 'm' ? 60 : unit == 's' ? 1 : 0;
    if (unit_s == 0 || unit_s >= last_unit) return wrong;
    seconds += std::stoll(text.substr(at, digits)) * unit_s;
    last_unit = unit_s;
    at += digits + 1;
  }
  if (seconds <= 0) return wrong;
  return seconds;
}

}  // namespace gradrack
