// SPDX-License-Identifier: Apache-2.0
// plugins.lock: see lock_file.hpp.
#include "core/plugin/lock_file.hpp"

#include <algorithm>
#include <filesystem>

#include "core/config/yaml.hpp"
#include "core/plugin/digest.hpp"
#include "core/plugin/record_reader.hpp"

namespace gradrack {
namespace {

constexpr const char* kRemedy =
    ": if that is meant, `gradrack plugins lock` writes the lock again; else put the right file "
    "back";

std::string name_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

Status refused(const std::string& message) {
  return Status(GR_FAILED_PRECONDITION, message).in_area(Area::kPlugin);
}

Status read_plugins(const YamlNode& root, LockFile* lock) {
  RecordReader top(root, "");
  const YamlNode* list = top.node("plugins", YamlNode::Kind::kList);
  top.refuse_unknown();
  GR_TRY(top.status());
  for (size_t k = 0; k < list->items.size(); ++k) {
    RecordReader reader(list->items[k], "plugins." + std::to_string(k));
    const LockedPlugin plugin = {reader.text("id"), reader.text("file"), reader.text("sha256"),
                                 reader.text("version", true)};
    if (!is_sha256_hex(plugin.sha256)) {
      reader.fault("sha256", "wanted 64 lower-case hexadecimal digits");
    }
    if (plugin.file.find('/') != std::string::npos) {
      reader.fault("file", "got '" + plugin.file + "', wanted a file's name without a folder");
    }
    if (lock->find(plugin.file) != nullptr) {
      reader.fault("file", "'" + plugin.file + "' is listed twice");
    }
    reader.refuse_unknown();
    GR_TRY(reader.status());
    lock->plugins.push_back(plugin);
  }
  return {};
}

Result<LockFile> lock_of(const Result<YamlNode>& root, const std::string& path) {
  LockFile lock;
  lock.path = path;
  const Status status = root.ok() ? read_plugins(*root, &lock) : root.status();
  if (!status.ok()) return status.in_area(Area::kConfig);
  return lock;
}

}  // namespace

const LockedPlugin* LockFile::find(std::string_view file) const {
  for (const LockedPlugin& plugin : plugins) {
    if (plugin.file == file) return &plugin;
  }
  return nullptr;
}

Status LockFile::check(const std::string& library_path, const std::string& sha256) const {
  const LockedPlugin* plugin = find(name_of(library_path));
  if (plugin == nullptr) {
    return refused("it is not listed in " + path + ", so this run may not load it" + kRemedy);
  }
  if (plugin->sha256 == sha256) return {};
  return refused("its SHA-256 is " + sha256 + ", " + path + " wants " + plugin->sha256 + kRemedy);
}

Status LockFile::check_id(const std::string& library_path, const std::string& id) const {
  const LockedPlugin* plugin = find(name_of(library_path));
  if (plugin == nullptr || plugin->id == id) return {};
  return refused("its id is '" + id + "', " + path + " wants '" + plugin->id + "'" + kRemedy);
}

Result<LockFile> parse_lock_file(std::string_view text, const std::string& path) {
  return lock_of(parse_yaml(text, path), path);
}

Result<LockFile> load_lock_file(const std::string& path) { return lock_of(load_yaml(path), path); }

std::string lock_file_text(LockFile lock) {
  std::sort(lock.plugins.begin(), lock.plugins.end(),
            [](const LockedPlugin& a, const LockedPlugin& b) { return a.file < b.file; });
  std::string text =
      "# The plugin libraries that a run beside this file may load, by their bytes.\n"
      "# Written by `gradrack plugins lock`; `gradrack plugins verify` checks it.\n";
  if (lock.plugins.empty()) return text + "plugins: []\n";
  text += "plugins:\n";
  for (const LockedPlugin& plugin : lock.plugins) {
    text += "  - id: " + yaml_quoted(plugin.id) + "\n    file: " + yaml_quoted(plugin.file) +
            "\n    sha256: " + yaml_quoted(plugin.sha256) +
            "\n    version: " + yaml_quoted(plugin.version) + "\n";
  }
  return text;
}

}  // namespace gradrack
