// SPDX-License-Identifier: Apache-2.0
// Options of the `onnx` model: see settings.hpp.
#include "settings.hpp"

#include <charconv>

namespace gradrack::onnx {

namespace {

using Texts = std::span<const char* const>;

std::vector<std::string> list(const sdk::Options& options, const char* name) {
  const auto texts = options.get<Texts>(name);
  return {texts.begin(), texts.end()};
}

/// "left=right" of each text.
std::vector<std::pair<std::string, std::string>> pairs(const sdk::Options& options,
                                                       const char* name) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& text : list(options, name)) {
    const size_t at = text.find('=');
    sdk::require(at != std::string::npos && at > 0 && at + 1 < text.size(), GR_INVALID_ARGUMENT,
                 name, "got '", text, "', wanted NAME=VALUE");
    out.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  return out;
}

int64_t size_of(const std::string& text, const std::string& name) {
  int64_t size = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), size);
  sdk::require(end.ec == std::errc() && end.ptr == text.data() + text.size() && size > 0,
               GR_INVALID_ARGUMENT, "dims", "'", name, "' is '", text,
               "', wanted a number from 1 on");
  return size;
}

Loss loss_of(const std::string& text) {
  if (text == "cross_entropy") return Loss::kCrossEntropy;
  if (text == "mse") return Loss::kMse;
  return text == "bce_with_logits" ? Loss::kBceWithLogits : Loss::kNone;
}

bool matches(const char* name, const char* glob) {
  if (*glob == '\0') return *name == '\0';
  if (*glob == '*') {
    while (glob[1] == '*') ++glob;
    for (const char* at = name;; ++at) {
      if (matches(at, glob + 1)) return true;
      if (*at == '\0') return false;
    }
  }
  return *name != '\0' && (*glob == '?' || *glob == *name) && matches(name + 1, glob + 1);
}

}  // namespace

Settings read_settings(const sdk::Options& options) {
  Settings s;
  s.file = options.get<std::string>("file");
  for (const auto& [name, text] : pairs(options, "dims")) s.dims[name] = size_of(text, name);
  for (const auto& [name, text] : pairs(options, "inputs")) s.inputs[name] = text;
  s.outputs = list(options, "outputs");
  s.trainable = list(options, "trainable");
  s.frozen = list(options, "frozen");
  s.lora = list(options, "lora");
  s.lora_rank = options.get<int64_t>("lora_rank");
  s.lora_alpha = options.get<double>("lora_alpha");
  s.loss = loss_of(options.get<std::string>("loss"));
  s.loss_output = options.get<std::string>("loss_output");
  s.target = options.get<std::string>("target");
  s.class_axis = options.get<int64_t>("class_axis");
  s.free_batch = options.get<bool>("free_batch");
  s.batch_norm = options.get<std::string>("batch_norm") == "train";
  s.dropout = options.get<bool>("dropout");
  return s;
}

bool matches_any(const std::string& name, const std::vector<std::string>& globs) {
  for (const std::string& glob : globs) {
    if (matches(name.c_str(), glob.c_str())) return true;
  }
  return false;
}

void require_matches(const char* option, const std::vector<std::string>& globs,
                     const std::vector<std::string>& names) {
  for (const std::string& glob : globs) {
    bool found = glob == "*";
    for (const std::string& name : names) found = found || matches(name.c_str(), glob.c_str());
    sdk::require(found, GR_INVALID_ARGUMENT, option, "'", glob,
                 "' matches no weight of the file: `gradrack onnx inspect FILE` lists them");
  }
}

}  // namespace gradrack::onnx
