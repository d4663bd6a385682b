// SPDX-License-Identifier: Apache-2.0
// Included run files: see include.hpp.
#include "core/config/include.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/text.hpp"
#include "core/config/scalar.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 32;
constexpr const char* kKey = "include";

Status error_at(const Place& place, const std::string& message) {
  return invalid_argument(place.text() + ": " + message).in_area(Area::kConfig);
}

// `over` wins. A map that names its plugin speaks for itself: options of another plugin below it
// would be wrong.
YamlNode merged(YamlNode base, YamlNode over) {
  const bool maps = base.kind == YamlNode::Kind::kMap && over.kind == YamlNode::Kind::kMap;
  if (!maps || over.find("plugin") != nullptr) return over;
  for (YamlEntry& entry : over.entries) {
    YamlNode* const below = base.find(entry.key);
    if (below == nullptr) {
      base.entries.push_back(std::move(entry));
    } else {
      *below = merged(std::move(*below), std::move(entry.value));
    }
  }
  base.place = over.place;
  return base;
}

class Includer {
 public:
  Result<YamlNode> resolve(YamlNode root, const std::string& file) {
    if (root.kind != YamlNode::Kind::kMap) return root;
    const auto at = std::find_if(root.entries.begin(), root.entries.end(),
                                 [](const YamlEntry& entry) { return entry.key == kKey; });
    if (at == root.entries.end()) return root;
    const YamlNode named = std::move(at->value);
    root.entries.erase(at);
    GR_ASSIGN(const std::vector<const YamlNode*> names, names_of(named));
    open_.push_back(identity(file));
    YamlNode all;
    all.kind = YamlNode::Kind::kMap;
    for (const YamlNode* name : names) {
      GR_ASSIGN(YamlNode one, load(*name, file));
      all = merged(std::move(all), std::move(one));
    }
    open_.pop_back();
    return merged(std::move(all), std::move(root));
  }

 private:
  static Result<std::vector<const YamlNode*>> names_of(const YamlNode& named) {
    std::vector<const YamlNode*> names;
    for (const YamlNode& item : named.items) names.push_back(&item);
    if (named.kind != YamlNode::Kind::kList) names.push_back(&named);
    for (const YamlNode* name : names) {
      if (name->kind == YamlNode::Kind::kScalar && !name->text.empty()) continue;
      return error_at(name->place, std::string(kKey) + ": got " + describe(*name) +
                                       ", wanted the path of a run file or a list of paths");
    }
    return names;
  }

  // Two spellings of one path are one file.
  static std::string identity(const std::string& file) {
    std::error_code failed;
    const fs::path path = fs::weakly_canonical(file, failed);
    return failed ? file : path.string();
  }

  Result<YamlNode> load(const YamlNode& name, const std::string& from) {
    const std::string where = name.place.text() + ": " + kKey;
    const std::string path = (fs::path(from).parent_path() / name.text).string();
    if (std::find(open_.begin(), open_.end(), identity(path)) != open_.end()) {
      return error_at(name.place, std::string(kKey) + ": '" + path +
                                      "' is being included already (" + join(open_, " includes ") +
                                      "); take one of them out");
    }
    if (++count_ > kMostFiles) {
      return error_at(name.place, std::string(kKey) + ": more than " + std::to_string(kMostFiles) +
                                      " files; put what belongs together into one");
    }
    std::error_code failed;
    if (fs::exists(path, failed) && !fs::is_regular_file(path, failed)) {
      return error_at(name.place, std::string(kKey) + ": '" + path + "' is no file");
    }
    Result<YamlNode> root = load_yaml(path);
    if (!root.ok()) return root.status().with_context(where);
    if (root->kind != YamlNode::Kind::kMap) {
      return error_at(root->place, "got " + describe(*root) + " at the top of an included file, " +
                                       "wanted sections of a run file");
    }
    return resolve(std::move(*root), path);
  }

  std::vector<std::string> open_;  // files that include what is being read, outermost first
  size_t count_ = 0;
};

}  // namespace

Result<YamlNode> resolve_includes(YamlNode root, const std::string& file) {
  return Includer().resolve(std::move(root), file);
}

}  // namespace gradrack
