// SPDX-License-Identifier: Apache-2.0
// Files and recipes: see read_table.hpp.
#include "core/simulate/read_table.hpp"

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/text.hpp"
#include "core/config/yaml.hpp"
#include "core/simulate/recipe.hpp"
#include "core/state/atomic_file.hpp"

namespace gradrack {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;

Result<std::string> read_text(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return invalid_argument(path + ": is a folder, wanted a task table").in_area(Area::kConfig);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return file_error("read", path, errno).in_area(Area::kConfig);
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad() || text.bad())
    return io_error(path + ": cannot be read to its end").in_area(Area::kConfig);
  if (text.view().size() > kMaxBytes) {
    return invalid_argument(path + ": larger than 256 MiB: this is not a task table")
        .in_area(Area::kConfig);
  }
  return std::move(text).str();
}

std::vector<const Recipe*> recipes() { return {&pipeline_recipe(), &data_parallel_recipe()}; }

Result<const Recipe*> find_recipe(const YamlNode& root, const std::string& name) {
  std::vector<std::string> known;
  for (const Recipe* recipe : recipes()) known.emplace_back(recipe->name);
  const std::string wanted = "wanted one key of: " + join(known);
  const auto error = [&](const Place& place, const std::string& got) {
    return invalid_argument(place.text() + ": " + got + ", " + wanted).in_area(Area::kConfig);
  };
  if (root.kind != YamlNode::Kind::kMap || root.entries.empty()) {
    return error(root.place.line > 0 ? root.place : Place{name, 0, 0}, "not a map");
  }
  const YamlEntry& first = root.entries.front();
  if (root.entries.size() > 1) {
    return error(root.entries[1].place, "a second key '" + root.entries[1].key + "'");
  }
  for (const Recipe* recipe : recipes()) {
    if (first.key == recipe->name) return recipe;
  }
  return error(first.place, "unknown key '" + first.key + "'" + did_you_mean(first.key, known));
}

}  // namespace

int64_t ns_of_ms(double ms) { return std::llround(ms * 1e6); }

Result<SimTable> parse_recipe(std::string_view text, const std::string& name,
                              const std::vector<std::string>& sets) {
  GR_ASSIGN(YamlNode root, parse_yaml(text, name));
  for (const std::string& set : sets) GR_TRY(apply_set(root, set));
  GR_ASSIGN(const Recipe* const recipe, find_recipe(root, name));
  const YamlEntry& entry = root.entries.front();
  if (entry.value.kind != YamlNode::Kind::kMap) {
    return invalid_argument(entry.place.text() + ": " + recipe->name + ": wanted a map of keys")
        .in_area(Area::kConfig);
  }
  GR_ASSIGN(const OptionValues values,
            check_options({recipe->name, std::string("recipe ") + recipe->name, {}, false},
                          recipe->options, entry.value.entries, entry.place));
  Result<SimTable> made = recipe->make(values);
  if (!made.ok()) {
    return made.status().with_context(entry.place.text()).in_area(Area::kConfig);
  }
  made->name = name;
  return made;
}

Result<SimTable> load_table(const std::string& path, const std::vector<std::string>& sets) {
  const std::string ending = std::filesystem::path(path).extension().string();
  const bool recipe = ending == ".yaml" || ending == ".yml";
  if (!recipe && ending != ".json" && ending != ".csv") {
    return invalid_argument(path + ": ends with '" + ending +
                            "', wanted .json or .csv (tasks), or .yaml (a recipe)")
        .in_area(Area::kConfig);
  }
  if (!recipe && !sets.empty()) {
    return invalid_argument("--recipe " + sets.front() + ": " + path +
                            " is no recipe (.yaml): it says every task itself")
        .in_area(Area::kConfig);
  }
  GR_ASSIGN(const std::string text, read_text(path));
  if (recipe) return parse_recipe(text, path, sets);
  return ending == ".json" ? parse_json_table(text, path) : parse_csv_table(text, path);
}

}  // namespace gradrack
