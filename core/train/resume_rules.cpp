// SPDX-License-Identifier: Apache-2.0
// Rules of resuming: see resume_rules.hpp.
#include "core/train/resume_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/compare.hpp"
#include "core/config/schema.hpp"

namespace gradrack {
namespace {

enum class Change { kFree, kAloud, kRefused };

bool is_under(const std::string& key, std::string_view parent) {
  return key == parent || (key.starts_with(parent) && key[parent.size()] == '.');
}

// Of data: how batches are brought, not what is in them.
constexpr std::string_view kFreeKeys[] = {
    "run.name",         "run.max_steps",    "run.max_tokens", "run.eval_interval",
    "run.eval_batches", "run.log_interval", "run.output",     "run.plan_cache_limit",
    "run.undo",         "run.resume",       "run.init_from",  "run.max_time",
    "plugins",          "scheduler",        "checkpoint",     "metrics",
    "memory",           "data.prefetch",    "data.workers",   "data.threads",
    "data.cache"};

// The option of the section's plugin, or nullptr.
const gr_option_t* find_option(const Factory& factory, const std::string& name) {
  for (const gr_option_t& option : factory.options) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

class Rules {
 public:
  explicit Rules(Session& session) : session_(session) {}

  Change of(const std::string& key) {
    for (const std::string_view free : kFreeKeys) {
      if (is_under(key, free)) return Change::kFree;
    }
    if (is_under(key, "backend")) return Change::kAloud;
    const gr_option_t* const option = plugin_option(key);
    const bool data_path =
        is_under(key, "data") && option != nullptr && option->type == GR_OPTION_PATH;
    return data_path ? Change::kAloud : Change::kRefused;
  }

  std::optional<std::string> default_of(const std::string& written) {
    const std::string key = without_index(written);
    const size_t dot = key.find('.');
    const SectionSchema* const section = find_section(key.substr(0, dot));
    if (section == nullptr || dot == std::string::npos) return {};
    const std::string name = key.substr(dot + 1);
    if (name == "plugin") return default_chain(*section);
    for (const gr_option_t& option : section->keys) {
      if (name == option.name) return text_of(option);
    }
    const gr_option_t* const option = plugin_option(key);
    return option != nullptr ? text_of(*option) : std::nullopt;
  }

 private:
  // "optimizer.lr" for "optimizer.0.lr": an entry of a chain has the keys of its section.
  static std::string without_index(std::string key) {
    const size_t begin = key.find('.') + 1;
    size_t end = begin;
    while (end < key.size() && key[end] >= '0' && key[end] <= '9') ++end;
    if (begin > 0 && end > begin && end < key.size()) key.erase(begin, end + 1 - begin);
    return key;
  }

  static std::optional<std::string> default_chain(const SectionSchema& section) {
    if (section.default_plugin == nullptr) return {};
    std::string names = section.default_plugin;  // "cpu|reference"
    std::replace(names.begin(), names.end(), '|', ',');
    return "[" + names + "]";
  }

  // Texts may hold what YAML would read as something else.
  static std::optional<std::string> text_of(const gr_option_t& option) {
    if (option.default_text == nullptr) return {};
    const bool text = option.type == GR_OPTION_STRING || option.type == GR_OPTION_PATH;
    return text ? yaml_quoted(option.default_text) : std::string(option.default_text);
  }

  // "optimizer.betas" of the first plugin of the chain that declares it.
  const gr_option_t* plugin_option(const std::string& written) {
    const std::string key = without_index(written);
    const std::string kind = key.substr(0, key.find('.'));
    const std::string name = key.substr(std::min(key.size(), kind.size() + 1));
    const RunConfig& config = session_.config;
    for (const PluginSection* section :
         {&config.model, &config.data, &config.optimizer, &config.lr_schedule, &config.precision}) {
      if (section->kind != kind) continue;
      for (const PluginChoice& choice : section->chain) {
        const Result<const Factory*> factory = session_.plugins->find(kind, choice.name);
        if (!factory.ok()) continue;
        if (const gr_option_t* option = find_option(**factory, name)) return option;
      }
    }
    return nullptr;
  }

  Session& session_;
};

}  // namespace

Status check_resumable(Session& session, const TrainerState& state, const std::string& checkpoint) {
  Result<YamlNode> before = parse_yaml(state.config, checkpoint);
  if (!before.ok()) {
    const bool no_memory = before.status().code() == GR_OUT_OF_MEMORY;
    return Status(no_memory ? GR_OUT_OF_MEMORY : GR_IO, before.status().message());
  }
  Rules rules(session);
  const std::vector<ConfigDifference> differences = compare_configs(
      *before, session.config.root, [&](const std::string& key) { return rules.default_of(key); });
  for (const ConfigDifference& each : differences) {
    const Change change = rules.of(each.key);
    if (change == Change::kFree) continue;
    const std::string text =
        fmt::format("{}: {}: got {}, the run in '{}' has {}", each.place.text(), each.key, each.now,
                    checkpoint, each.before);
    if (change == Change::kRefused) {
      return invalid_argument(text +
                              ": a run goes on with what it began with; put it back, or "
                              "begin another run from its weights with run.init_from")
          .in_area(Area::kConfig);
    }
    session.events.emit({"resume_changed",
                         Level::kWarn,
                         text + "; bits may differ from an uninterrupted run's",
                         {{"key", each.key}, {"before", each.before}, {"now", each.now}}});
  }
  // With run.max_tokens the data says first how many steps that is.
  return session.config.run.max_steps == 0 ? Status() : check_horizon(session, state, checkpoint);
}

Status check_horizon(const Session& session, const TrainerState& state,
                     const std::string& checkpoint) {
  const int64_t max_steps = session.config.run.max_steps;
  if (state.step <= max_steps) return {};
  return invalid_argument(fmt::format("run.max_steps: got {}, but '{}' is of step {}: raise it, or "
                                      "resume from an earlier checkpoint",
                                      max_steps, checkpoint, state.step))
      .in_area(Area::kConfig);
}

}  // namespace gradrack
