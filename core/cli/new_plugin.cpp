// SPDX-License-Identifier: Apache-2.0
// `plugins new`: see new_plugin.hpp. Checks first, then files, then what to do next.
#include "core/cli/new_plugin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/base/folder.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxName = 64;

fs::path template_folder() { return fs::path(install_prefix()) / "share/gradrack/templates"; }

/// Languages by kind: {"optimizer": ["c", "cpp", "rust"]}. Empty without templates.
std::map<std::string, std::vector<std::string>> find_templates() {
  std::map<std::string, std::vector<std::string>> found;
  for (const std::string& folder : names_in_or_none(template_folder().string())) {
    const size_t dash = folder.find('-');
    if (dash != std::string::npos) found[folder.substr(0, dash)].push_back(folder.substr(dash + 1));
  }
  return found;
}

Status check_name(const std::string& name) {
  const auto small = [](char c) { return (c >= 'a' && c <= 'z'); };
  const auto legal = [&](char c) { return small(c) || (c >= '0' && c <= '9') || c == '_'; };
  if (!name.empty() && name.size() <= kMaxName && small(name[0]) &&
      std::all_of(name.begin(), name.end(), legal)) {
    return {};
  }
  return invalid_argument(
      fmt::format("plugin name '{}': wanted a letter, then letters, digits and _ ([a-z][a-z0-9_]*, "
                  "at most {}): run files and files are named so",
                  printable(name), kMaxName));
}

Status check_template(const NewPluginRequest& request) {
  const auto templates = find_templates();
  if (templates.empty()) {
    return not_found(template_folder().string() +
                     ": no templates there; they come with the SDK: `cmake --install BUILD`");
  }
  const auto at = templates.find(request.kind);
  if (at == templates.end()) {
    std::vector<std::string> kinds;
    for (const auto& [kind, languages] : templates) kinds.push_back(kind);
    return invalid_argument("no template for kind '" + printable(request.kind) + "'" +
                            did_you_mean(request.kind, kinds) + "; there are:\n" +
                            template_table());
  }
  const auto& languages = at->second;
  if (std::find(languages.begin(), languages.end(), request.language) != languages.end()) return {};
  return invalid_argument("no template for kind '" + request.kind + "' in '" +
                          printable(request.language) + "'; there are: " + join(languages));
}

Status check_unused(PluginRegistry& registry, const NewPluginRequest& request) {
  const Result<const Factory*> known = registry.find(request.kind, request.name);
  if (!known.ok()) return {};
  return invalid_argument(request.kind + " plugin '" + request.name + "' is there already (" +
                          (*known)->library +
                          "), and two of one name shut each other out: choose another name");
}

Status check_target(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(folder, error))) return {};
  const bool empty = fs::is_directory(folder, error) && fs::is_empty(folder, error) && !error;
  if (empty) return {};
  return invalid_argument(folder.string() +
                          ": is there and not an empty folder; nothing was written. Choose another "
                          "with --into FOLDER, or remove it");
}

std::string camel(const std::string& name) {
  std::string out;
  bool up = true;
  for (const char c : name) {
    if (c != '_') out += up && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    up = c == '_';
  }
  return out;
}

void replace_all(std::string* text, const std::string& from, const std::string& to) {
  for (size_t at = text->find(from); at != std::string::npos; at = text->find(from, at)) {
    text->replace(at, from.size(), to);
    at += to.size();
  }
}

Status write_file(const fs::path& from, const fs::path& to, const NewPluginRequest& request) {
  std::ifstream in(from, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return io_error(from.string() + ": cannot be read");
  std::ofstream out(to, std::ios::binary);
  out << rename_template(text.str(), request.kind, request.name);
  out.close();
  if (!out) return io_error(to.string() + ": cannot be written; its folder is incomplete");
  std::error_code error;
  const bool program =
      (fs::status(from, error).permissions() & fs::perms::owner_exec) != fs::perms::none;
  if (program && !error) fs::permissions(to, fs::perms(0755), error);
  return error ? io_error(to.string() + ": " + error.message()) : Status();
}

/// Copies the files of one template folder; `written` collects the names.
Status write_folder(const fs::path& from, const fs::path& to, const NewPluginRequest& request,
                    std::vector<std::string>* written) {
  const Result<std::vector<std::string>> files = names_in(from.string());
  if (!files.ok()) return files.status().with_context(from.string());
  for (const std::string& file : *files) {
    if (!fs::is_regular_file(from / file)) continue;
    const std::string name = rename_template(file, request.kind, request.name);
    GR_TRY(write_file(from / file, to / name, request));
    written->push_back(name);
  }
  return {};
}

/// Where the shell finds `program`, or "".
fs::path on_path(const std::string& program) {
  const char* value = std::getenv("PATH");
  std::istringstream folders(value == nullptr ? "" : value);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code error;
    if (!folder.empty() && fs::is_regular_file(fs::path(folder) / program, error)) {
      return fs::path(folder) / program;
    }
  }
  return {};
}

/// A path as a word of the shell.
std::string shell_word(const std::string& path) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("/._-+", c) != nullptr;
  };
  if (!path.empty() && std::all_of(path.begin(), path.end(), plain)) return path;
  std::string quoted = path;
  replace_all(&quoted, "'", "'\\''");
  return "'" + quoted + "'";
}

void print_next(const fs::path& folder, const NewPluginRequest& request,
                std::vector<std::string> written) {
  std::sort(written.begin(), written.end());
  fmt::print("wrote {} ({} '{}'): {}\n", folder.string(), request.kind, request.name,
             join(written));
  const fs::path prefix = install_prefix();
  std::error_code error;
  const bool installed = fs::exists(prefix / "lib/cmake/Gradrack/GradrackConfig.cmake", error);
  if (!installed) {
    fmt::print("this gradrack is not installed: first `cmake --install {} --prefix PREFIX`\n",
               shell_word(prefix.string()));
  }
  const bool found = fs::equivalent(on_path("gradrack"), prefix / "bin/gradrack", error) && !error;
  fmt::print("next:\n  cd {} && cmake{} -B build -DCMAKE_PREFIX_PATH={} && cmake --build build\n",
             shell_word(folder.string()), on_path("ninja").empty() ? "" : " -G Ninja",
             installed ? shell_word(prefix.string()) : "PREFIX");
  fmt::print("  ctest --test-dir build --output-on-failure\n");
  fmt::print("  {} train run.yaml\n",
             found ? "gradrack" : shell_word((prefix / "bin/gradrack").string()));
}

}  // namespace

std::string rename_template(const std::string& text, const std::string& kind,
                            const std::string& name) {
  std::string out = text;
  replace_all(&out, "my_" + kind, name);
  replace_all(&out, "My" + camel(kind), camel(name));
  return out;
}

std::string template_table() {
  std::string table;
  for (const auto& [kind, languages] : find_templates()) {
    table += fmt::format("  {:<12} {}\n", kind, join(languages));
  }
  return table;
}

Status new_plugin(PluginRegistry& registry, const NewPluginRequest& request) {
  GR_TRY(check_template(request));
  GR_TRY(check_name(request.name));
  GR_TRY(check_unused(registry, request));
  const fs::path folder = request.into.empty() ? request.name : request.into;
  GR_TRY(check_target(folder));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return io_error(folder.string() + ": cannot be made: " + error.message());
  std::vector<std::string> written;
  const fs::path templates = template_folder();
  GR_TRY(write_folder(templates / "common", folder, request, &written));
  GR_TRY(
      write_folder(templates / (request.kind + "-" + request.language), folder, request, &written));
  print_next(folder, request, written);
  return {};
}

}  // namespace gradrack
