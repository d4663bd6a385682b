// SPDX-License-Identifier: Apache-2.0
// The JSON schema of run files (draft 7, which editors know): see config_command.hpp.
//
// A value of another type than text may be text with ${NAME} in it; sections that a file includes
// may lack what the included one has.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/text.hpp"
#include "core/cli/config_command.hpp"
#include "core/config/schema.hpp"

namespace gradrack {
namespace {

using Json = nlohmann::ordered_json;

Json variable() { return {{"type", "string"}, {"pattern", "\\$\\{[A-Za-z_]"}}; }

Json map_of(Json properties, std::vector<std::string> required) {
  Json map = {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) map["required"] = std::move(required);
  return map;
}

void add_bounds(const gr_option_t& option, Json* type) {
  const auto bound = [&](double value, uint32_t flag, const char* closed, const char* open) {
    if (!std::isfinite(value)) return;
    (*type)[(option.flags & flag) != 0 ? open : closed] = value;
  };
  bound(option.min, GR_OPTION_MIN_EXCLUSIVE, "minimum", "exclusiveMinimum");
  bound(option.max, GR_OPTION_MAX_EXCLUSIVE, "maximum", "exclusiveMaximum");
}

// Of one value: an option's, or an element of its list.
Json scalar_of(const gr_option_t& option) {
  Json type = Json::object();
  switch (option.type) {
    case GR_OPTION_BOOL:
      return {{"type", "boolean"}};
    case GR_OPTION_INT:
    case GR_OPTION_INT_LIST:
      type["type"] = "integer";
      add_bounds(option, &type);
      return type;
    case GR_OPTION_FLOAT:
    case GR_OPTION_FLOAT_LIST:
      type["type"] = "number";
      add_bounds(option, &type);
      return type;
    default:
      if (option.choices != nullptr) return {{"enum", split_choices(option.choices)}};
      return {{"type", "string"}};
  }
}

Json list_of(const gr_option_t& option) {
  Json list = {{"type", "array"}, {"items", scalar_of(option)}};
  if (option.list_length > 0) {
    list["minItems"] = option.list_length;
    list["maxItems"] = option.list_length;
  }
  return list;
}

Json value_of(const gr_option_t& option) {
  const bool text = option.type == GR_OPTION_STRING || option.type == GR_OPTION_PATH;
  Json value = Json::object();
  if (text && option.choices == nullptr) {
    value = scalar_of(option);
  } else {
    Json forms = Json::array();
    const bool list = option.type >= GR_OPTION_INT_LIST;
    forms.push_back(list ? list_of(option) : scalar_of(option));
    if (option.type == GR_OPTION_STRING_LIST) forms.push_back(scalar_of(option));
    if (is_switch_or_list(option)) forms.push_back({{"type", "boolean"}});
    forms.push_back(variable());
    value["anyOf"] = std::move(forms);
  }
  std::string help = option.help != nullptr ? option.help : "";
  if (option.default_text != nullptr && *option.default_text != '\0') {
    help += std::string(help.empty() ? "" : "; ") + "default " + option.default_text;
  }
  value["description"] = help;
  return value;
}

Json properties_of(const OptionTable& table) {
  Json properties = Json::object();
  for (const gr_option_t& option : table) properties[option.name] = value_of(option);
  return properties;
}

std::vector<std::string> required_of(const OptionTable& table) {
  std::vector<std::string> names;
  for (const gr_option_t& option : table) {
    if ((option.flags & GR_OPTION_REQUIRED) != 0) names.push_back(option.name);
  }
  return names;
}

class Schema {
 public:
  Schema(PluginRegistry& registry, EventSink& events) {
    for (const auto& candidate : registry.catalogue()) {
      for (const Offer& offer : candidate->offers()) {
        const Result<const Factory*> factory = registry.find(offer.kind, offer.name);
        if (factory.ok()) {
          by_kind_[offer.kind].push_back(*factory);
          continue;
        }
        events.emit({"schema_left_out",
                     Level::kWarn,
                     offer.kind + " '" + offer.name + "': " + factory.status().message(),
                     {{"kind", offer.kind}, {"plugin", offer.name}}});
      }
    }
  }

  Json whole() {
    Json properties = {{"include", text_or_list({{"type", "string"}})}};
    std::vector<std::string> required;
    for (const SectionSchema& section : section_schemas()) {
      Json schema = section.plugin ? plugin_section(section) : host_section(section);
      schema["description"] = section.help;
      properties[section.name] = std::move(schema);
      if (section.default_plugin == nullptr) required.push_back(section.name);
    }
    const auto at_least_one = [](const char* key) -> Json {
      return {{"required", {key}}, {"properties", {{key, {{"minimum", 1}}}}}};
    };
    Json run = {{"required", required_of(find_section("run")->keys)},
                {"anyOf", {at_least_one("max_steps"), at_least_one("max_tokens")}}};
    Json complete = {{"required", std::move(required)}, {"properties", {{"run", std::move(run)}}}};
    Json out = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                {"title", "Gradrack run file"},
                {"type", "object"},
                {"properties", std::move(properties)},
                {"additionalProperties", false},
                {"if", {{"not", {{"required", {"include"}}}}}},
                {"then", std::move(complete)}};
    return out;
  }

 private:
  static Json text_or_list(Json item) {
    return {{"anyOf", {item, {{"type", "array"}, {"items", item}, {"minItems", 1}}}}};
  }

  Json names_of(const std::string& kind) {
    Json names = Json::array();
    for (const Factory* factory : by_kind_[kind]) names.push_back(factory->name);
    return {{"enum", names}};
  }

  // Keys of host section `run` and `metrics` that are no rows of a table.
  Json host_section(const SectionSchema& section) {
    Json properties = properties_of(section.keys);
    const std::string name = section.name;
    if (name == "run") {
      properties["objectives"] = {
          {"type", "object"},
          {"additionalProperties", map_of(properties_of(objective_keys()), {})}};
      properties["freeze"] = {{"type", "array"},
                              {"items", map_of(properties_of(freeze_keys()), {})}};
      properties["init_from"] = {
          {"anyOf",
           Json::array({{{"type", "string"}},
                        map_of(properties_of(init_from_keys()), required_of(init_from_keys()))})},
          {"description", "weights to begin with: a run, a checkpoint or a safetensors file"}};
    }
    if (name == "metrics") properties["sinks"] = plugin_list("metrics");
    return map_of(std::move(properties), {});
  }

  // NAME, {plugin: NAME, ...}, or a list of either.
  Json plugin_list(const std::string& kind) {
    Json one = {{"anyOf", {names_of(kind), plugin_map(kind, {}, Json::object())}}};
    return text_or_list(std::move(one));
  }

  // A map whose keys depend on what `plugin` is: by if and then, so that an editor offers them.
  Json plugin_map(const std::string& kind, const OptionTable& host, const Json& more) {
    Json names = names_of(kind);
    Json chain = {{"type", "array"}, {"items", names}, {"minItems", 1}};
    Json cases = Json::array();
    Json all = properties_of(host);
    all.update(more);
    Json common = all;
    for (const Factory* factory : by_kind_[kind]) {
      Json own = common;
      own.update(properties_of(factory->options));
      own["plugin"] = {{"const", factory->name}};
      for (const auto& [key, value] : own.items()) {
        if (key != "plugin" && !all.contains(key)) all[key] = true;  // ranges differ by plugin
      }
      std::vector<std::string> required = required_of(host);
      required.insert(required.begin(), "plugin");
      for (const std::string& name : required_of(factory->options)) required.push_back(name);
      cases.push_back(
          {{"if",
            {{"properties", {{"plugin", {{"const", factory->name}}}}}, {"required", {"plugin"}}}},
           {"then", map_of(std::move(own), std::move(required))}});
    }
    all["plugin"] = {{"anyOf", {std::move(names), std::move(chain)}}};
    Json map = map_of(std::move(all), {});
    if (!cases.empty()) map["allOf"] = std::move(cases);
    return map;
  }

  Json plugin_section(const SectionSchema& section) {
    Json more = Json::object();
    if (std::string_view(section.name) == "optimizer") {
      // A group's other keys override options of whichever optimizer it is.
      more["groups"] = {
          {"type", "array"},
          {"items", {{"type", "object"}, {"properties", properties_of(group_keys())}}}};
      more["wrap"] = plugin_list("optimizer");
    }
    return text_or_list(plugin_map(section.name, section.keys, more));
  }

  std::map<std::string, std::vector<const Factory*>> by_kind_;
};

}  // namespace

std::string config_schema(PluginRegistry& registry, EventSink& events) {
  return Schema(registry, events).whole().dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gradrack
