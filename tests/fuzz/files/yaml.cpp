// SPDX-License-Identifier: Apache-2.0
// Run files: a tree that was read is written and read again as the same tree, and a run file is
// taken or refused with words.
#include "core/config/yaml.hpp"

#include <cstdlib>
#include <string>

#include "core/config/run_config.hpp"
#include "core/config/scalar.hpp"

namespace {

using gradrack::YamlNode;

bool same(const YamlNode& a, const YamlNode& b) {
  if (a.kind != b.kind || a.text != b.text) return false;
  if (gradrack::read_bool(a) != gradrack::read_bool(b)) return false;
  if (gradrack::read_int(a) != gradrack::read_int(b)) return false;
  if (gradrack::read_float(a).has_value() != gradrack::read_float(b).has_value()) return false;
  if (a.items.size() != b.items.size() || a.entries.size() != b.entries.size()) return false;
  for (size_t k = 0; k < a.items.size(); ++k) {
    if (!same(a.items[k], b.items[k])) return false;
  }
  for (size_t k = 0; k < a.entries.size(); ++k) {
    if (a.entries[k].key != b.entries[k].key) return false;
    if (!same(a.entries[k].value, b.entries[k].value)) return false;
  }
  return true;
}

void refused_with_words(const gradrack::Status& status) {
  if (status.message().empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const gradrack::Result<YamlNode> tree = gradrack::parse_yaml(text, "input");
  if (!tree.ok()) {
    refused_with_words(tree.status());
  } else {
    const gradrack::Result<YamlNode> again =
        gradrack::parse_yaml(gradrack::to_yaml(*tree), "again");
    if (!again.ok() || !same(*tree, *again)) std::abort();
  }
  // What is included lies outside of the input.
  if (text.find("include") != std::string::npos) return 0;
  const auto config = gradrack::parse_run_config(text, "input", {});
  if (!config.ok()) refused_with_words(config.status());
  return 0;
}
