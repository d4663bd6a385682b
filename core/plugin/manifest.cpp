// SPDX-License-Identifier: Apache-2.0
// Manifests: see manifest.hpp.
#include "core/plugin/manifest.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/text.hpp"
#include "core/config/yaml.hpp"
#include "core/plugin/digest.hpp"
#include "core/plugin/host_table.hpp"
#include "core/plugin/library.hpp"
#include "core/plugin/record_reader.hpp"

namespace gradrack {
namespace {

constexpr const char* kSuffix = ".plugin.yaml";
constexpr const char* kPlainName = "plugin.yaml";

Status read_abi(const YamlNode& root, Manifest* manifest) {
  RecordReader top(root, "");
  const YamlNode* node = top.node("abi", YamlNode::Kind::kMap);
  if (node == nullptr) return top.status();
  RecordReader abi(*node, "abi");
  manifest->abi_major = abi.whole_number("major");
  manifest->abi_min = abi.whole_number("min");
  manifest->abi_max = abi.whole_number("max");
  if (manifest->abi_min > manifest->abi_max) abi.fault("min", "is above abi.max");
  abi.refuse_unknown();
  return abi.status();
}

Status read_offers(const YamlNode& list, bool newer, Manifest* manifest) {
  std::set<std::string> seen;
  for (size_t k = 0; k < list.items.size(); ++k) {
    RecordReader reader(list.items[k], "kinds." + std::to_string(k));
    const Offer offer = {reader.text("kind"), reader.text("name"), reader.text("version", true),
                         reader.text("help", true)};
    if (!newer) reader.refuse_unknown();
    GR_TRY(reader.status());
    const bool known = contains(plugin_kinds(), offer.kind);
    if (!known && newer) continue;
    if (!known) {
      reader.fault("kind", "unknown kind '" + offer.kind + "'" +
                               did_you_mean(offer.kind, plugin_kinds()) +
                               "; kinds are: " + join(plugin_kinds()));
    }
    if (!seen.insert(offer.kind + "/" + offer.name).second) {
      reader.fault("name", offer.kind + " '" + offer.name + "' is listed twice");
    }
    GR_TRY(reader.status());
    manifest->kinds.push_back(offer);
  }
  return {};
}

Status read_root(const YamlNode& root, Manifest* manifest) {
  RecordReader reader(root, "");
  manifest->id = reader.text("id");
  manifest->version = reader.text("version", true);
  manifest->library = reader.text("library");
  manifest->sha256 = reader.text("sha256");
  manifest->threading = reader.text("threading", true);
  manifest->needs = reader.texts("needs");
  const YamlNode* kinds = reader.node("kinds", YamlNode::Kind::kList);
  (void)reader.node("abi", YamlNode::Kind::kMap);
  if (manifest->library.find('/') != std::string::npos || manifest->library == "." ||
      manifest->library == "..") {
    reader.fault("library", "got '" + manifest->library +
                                "', wanted the bare name of a file beside this manifest");
  }
  if (!is_sha256_hex(manifest->sha256)) {
    reader.fault("sha256", "wanted 64 lower-case hexadecimal digits");
  }
  if (!contains({"", "none", "own", "openmp"}, manifest->threading)) {
    reader.fault("threading", "got '" + manifest->threading + "', wanted none, own or openmp");
  }
  if (kinds != nullptr && kinds->items.empty()) reader.fault("kinds", "wanted one entry at least");
  GR_TRY(reader.status());
  GR_TRY(read_abi(root, manifest));
  const bool newer = manifest->abi_major > GR_ABI_MAJOR ||
                     (manifest->abi_major == GR_ABI_MAJOR && manifest->abi_max > kHostMaxMinor);
  if (!newer) reader.refuse_unknown();
  GR_TRY(reader.status());
  return read_offers(*kinds, newer, manifest);
}

std::string offer_line(const Offer& offer) {
  return "  - {kind: " + offer.kind + ", name: " + yaml_quoted(offer.name) +
         ", version: " + yaml_quoted(offer.version) + ", help: " + yaml_quoted(offer.help) + "}\n";
}

}  // namespace

std::string Manifest::library_path() const {
  return (std::filesystem::path(file).parent_path() / library).string();
}

std::string manifest_path_of(const std::string& library_path) {
  return std::filesystem::path(library_path).replace_extension(kSuffix).string();
}

std::string library_path_of(const std::string& manifest_path) {
  const std::string_view suffix = kSuffix;
  if (manifest_path.size() <= suffix.size()) return "";
  return manifest_path.substr(0, manifest_path.size() - suffix.size()) + ".so";
}

bool is_manifest_name(std::string_view name) {
  const std::string_view suffix = kSuffix;
  return name == kPlainName || (name.size() > suffix.size() && name.ends_with(suffix));
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& file) {
  Manifest manifest;
  manifest.file = file;
  const Result<YamlNode> root = parse_yaml(text, file);
  const Status status = root.ok() ? read_root(*root, &manifest) : root.status();
  if (!status.ok()) return status.in_area(Area::kPlugin);
  return manifest;
}

std::string manifest_text(const Manifest& manifest) {
  std::vector<std::string> needs;
  for (const std::string& word : manifest.needs) needs.push_back(yaml_quoted(word));
  std::string text =
      "# What the library beside this file offers, so that it need not be loaded to be found.\n"
      "# Written by `gradrack plugins manifest`; write it again when the library changes.\n";
  text += "id: " + yaml_quoted(manifest.id) + "\n";
  text += "version: " + yaml_quoted(manifest.version) + "\n";
  text += "abi: {major: " + std::to_string(manifest.abi_major) +
          ", min: " + std::to_string(manifest.abi_min) +
          ", max: " + std::to_string(manifest.abi_max) + "}\n";
  text += "library: " + yaml_quoted(manifest.library) + "\n";
  text += "sha256: " + yaml_quoted(manifest.sha256) + "\n";
  if (!manifest.threading.empty()) text += "threading: " + manifest.threading + "\n";
  text += "needs: [" + join(needs) + "]\nkinds:\n";
  for (const Offer& offer : manifest.kinds) text += offer_line(offer);
  return text;
}

Status library_meets(const Library& library, const Manifest& manifest) {
  const std::string remedy = ": write it again with `gradrack plugins manifest`";
  const auto broken = [&](const std::string& what) {
    return Status(GR_FAILED_PRECONDITION, "its manifest " + manifest.file + " " + what + remedy)
        .in_area(Area::kPlugin);
  };
  if (library.id != manifest.id) {
    return broken("says id '" + manifest.id + "', the library says '" + library.id + "'");
  }
  for (const Offer& offer : manifest.kinds) {
    const bool kept = std::any_of(library.factories.begin(), library.factories.end(),
                                  [&](const Factory& factory) {
                                    return factory.kind == offer.kind && factory.name == offer.name;
                                  });
    if (!kept) {
      return broken("promises " + offer.kind + " '" + offer.name +
                    "', which the library does not offer");
    }
  }
  return {};
}

}  // namespace gradrack
