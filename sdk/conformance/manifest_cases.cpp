// SPDX-License-Identifier: Apache-2.0
// Level 0, the manifest beside the library: what it says must be so.
#include <filesystem>

#include "core/plugin/digest.hpp"
#include "core/plugin/manifest.hpp"
#include "core/plugin/trust.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/context.hpp"

namespace gradrack::conform {
namespace {

namespace fs = std::filesystem;

// NAME.plugin.yaml, else plugin.yaml; empty when there is neither.
fs::path manifest_beside(const fs::path& library) {
  const fs::path named = manifest_path_of(library.string());
  const fs::path plain = library.parent_path() / "plugin.yaml";
  std::error_code error;
  return fs::exists(named, error) ? named : fs::exists(plain, error) ? plain : fs::path();
}

Outcome manifest_holds(Context& context) {
  const fs::path library = context.target().library;
  const fs::path path = manifest_beside(library);
  if (path.empty()) return not_applicable("there is no manifest beside it");
  CONFORM_ASSIGN(const std::string text, read_trusted(path.string(), true));
  CONFORM_ASSIGN(const Manifest manifest, parse_manifest(text, path.string()));
  if (manifest.library != library.filename()) {
    if (path.filename() == "plugin.yaml") return not_applicable("plugin.yaml is another library's");
    return fail(path.string() + " is about '" + manifest.library + "'");
  }
  CONFORM_ASSIGN(const std::string bytes, read_trusted(library.string(), true));
  if (sha256_hex(bytes) != manifest.sha256) {
    return fail("sha256 in " + path.string() +
                " is not the file's: write the manifest after "
                "linking (gradrack plugins manifest)");
  }
  CONFORM_ASSIGN(Subject * subject, context.subject());
  const gr_plugin_header_t& header = subject->header();
  if (manifest.abi_major != header.abi_major || manifest.abi_min != header.abi_min_minor ||
      manifest.abi_max != header.abi_max_minor) {
    return fail("the ABI range in " + path.string() + " is not that of the entry header");
  }
  CONFORM_ASSIGN(const Library loaded, load_library(library.string()));
  return outcome_of(library_meets(loaded, manifest));
}

}  // namespace

void add_manifest_cases(const Target&, std::vector<Case>* cases) {
  cases->push_back({"L0.manifest", 0, "what the manifest beside it says is so", manifest_holds});
}

}  // namespace gradrack::conform
