// SPDX-License-Identifier: Apache-2.0
// Patterns of a backend: see backend_patterns.hpp.
#include "core/plan/backend_patterns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace gradrack {

namespace {

std::string text_of(const char* text) { return text != nullptr ? text : ""; }

/// "" for a name that can be written in a run file's `backend.fuse`, else what is wrong with it.
std::string fault_of_name(const std::string& name) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  if (name.empty()) return "it has no name";
  if (!std::all_of(name.begin(), name.end(), allowed)) {
    return "wanted letters, digits and '_' in its name";
  }
  return name == "true" || name == "false" ? "its name means something else in a run file" : "";
}

Result<BackendPattern> read(const gr_pattern_t& declared, uint32_t index,
                            const std::vector<BackendPattern>& earlier) {
  BackendPattern pattern;
  pattern.name = text_of(declared.name);
  pattern.help = text_of(declared.help);
  pattern.expression = text_of(declared.expression);
  pattern.index = index;
  pattern.flags = declared.flags;
  const std::string fault = fault_of_name(pattern.name);
  if (!fault.empty()) return invalid_argument(fault);
  for (const BackendPattern& other : earlier) {
    if (other.name == pattern.name) {
      return invalid_argument(fmt::format("pattern {} has the same name", other.index));
    }
  }
  auto parsed = parse_pattern(pattern.expression);
  if (!parsed.ok()) {
    return parsed.status().with_context("expression \"" + pattern.expression + "\"");
  }
  pattern.text = std::move(*parsed);
  return pattern;
}

}  // namespace

const gr_fusion_t* fusion_of(const gr_backend_t* backend) {
  if (backend->get_extension == nullptr) return nullptr;
  return static_cast<const gr_fusion_t*>(backend->get_extension(backend->self, GR_EXT_FUSION));
}

Result<std::vector<BackendPattern>> patterns_of(const gr_backend_t* backend) {
  std::vector<BackendPattern> out;
  const gr_fusion_t* const fusion = fusion_of(backend);
  if (fusion == nullptr) return out;
  if (fusion->claim_group == nullptr || fusion->pattern_stride < sizeof(gr_pattern_t)) {
    return invalid_argument("gr.fusion/1 without claim_group, or with too small a pattern_stride");
  }
  const char* at = reinterpret_cast<const char*>(fusion->patterns);
  for (uint32_t k = 0; k < fusion->pattern_count; ++k, at += fusion->pattern_stride) {
    const auto& declared = *reinterpret_cast<const gr_pattern_t*>(at);
    auto pattern = read(declared, k, out);
    if (!pattern.ok()) {
      return pattern.status().with_context(
          fmt::format("pattern {} ('{}')", k, text_of(declared.name)));
    }
    out.push_back(std::move(*pattern));
  }
  return out;
}

}  // namespace gradrack
