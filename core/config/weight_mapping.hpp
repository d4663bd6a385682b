// SPDX-License-Identifier: Apache-2.0
// WeightMapping: a mapping file, which says how tensors of somebody else's safetensors file and a
// model's weights are the same numbers under other names and in another layout.
//
//   needs: {plugin: gpt, norm: layer}        options of the model without which they are not
//   metadata: {format: pt}                   what a file that is written says of itself
//   optional_prefix: "transformer."          names of a file may lack it
//   rules:
//     - {file: "h.{n}.ln.weight", model: "blocks.{n}.norm1.weight"}
//     - {file: "h.{n}.qkv.weight", model: ["blocks.{n}.q.weight", ...], split: 0, transpose: true}
//   copies: {head.weight: "wte.weight"}      must equal the other where it is there
//   ignore: ["*.mask"]                       tensors of a file that are no weights
//
// One file serves both directions (train/mapped_weights.hpp). Invariant: what was parsed has at
// least one rule, and a rule's names have the same places. It knows neither model nor tensors.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/name_pattern.hpp"
#include "core/config/yaml.hpp"

namespace gradrack {

/// A tensor of the file and the model's weights that it is.
struct WeightRule {
  NamePattern file;
  std::vector<NamePattern> model;  ///< several: side by side along `axis` of the file's tensor
  bool transpose = false;          ///< rows of the one are columns of the other
  int64_t axis = 0;                ///< `split`
  std::string place;               ///< "gpt2.yaml:9:5"
};

struct WeightMapping {
  std::string path;
  std::vector<YamlEntry> needs;  ///< `plugin`, and options of that model
  std::string optional_prefix;
  std::vector<WeightRule> rules;
  std::map<std::string, std::string> copies, metadata;
  std::vector<std::string> ignore;  ///< patterns with * and ?
};

/// Parses a mapping file; `path` stands in messages. GR_INVALID_ARGUMENT, one line: place, key,
/// got, wanted.
Result<WeightMapping> parse_weight_mapping(std::string_view text, const std::string& path);

/// Reads the mapping that a run file or a command names: one that comes with the program
/// ("gpt2.yaml") or, where there is a '/' in the name, a file ("./mine.yaml"). GR_NOT_FOUND lists
/// those that come with the program; else as parse_weight_mapping.
Result<WeightMapping> load_weight_mapping(const std::string& name);

}  // namespace gradrack
