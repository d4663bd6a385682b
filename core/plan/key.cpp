// SPDX-License-Identifier: Apache-2.0
// Keys of plans: see key.hpp.
#include "core/plan/key.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gradrack {

namespace {

struct NamedPart {
  const char* name;
  std::string PlanKeyParts::*text;
};

constexpr NamedPart kParts[] = {
    {"program", &PlanKeyParts::program},
    {"model", &PlanKeyParts::model},
    {"training", &PlanKeyParts::training},
    {"shapes", &PlanKeyParts::shapes},
    {"trainable", &PlanKeyParts::trainable},
    {"objectives", &PlanKeyParts::objectives},
    {"precision", &PlanKeyParts::precision},
    {"optimizer", &PlanKeyParts::optimizer},
    {"backend chain", &PlanKeyParts::backend_chain},
    {"fallback", &PlanKeyParts::fallback},
    {"fuse", &PlanKeyParts::fuse},
    {"scheduler", &PlanKeyParts::scheduler},
    {"memory limit", &PlanKeyParts::memory_limit},
    {"undo", &PlanKeyParts::undo},
    {"recompute", &PlanKeyParts::recompute},
};
// A part that the table lacks would be in no digest.
static_assert(sizeof(PlanKeyParts) == std::size(kParts) * sizeof(std::string));

/// At most this much of a value is printed, from a little before the place where two part.
constexpr size_t kShown = 80;
constexpr size_t kBefore = 20;

std::string excerpt(const std::string& text, size_t parting) {
  if (text.empty()) return "(nothing)";
  if (text.size() <= kShown) return text;
  const size_t from = std::min(parting > kBefore ? parting - kBefore : 0, text.size() - 1);
  return fmt::format("{}{}{}", from > 0 ? "..." : "", text.substr(from, kShown),
                     from + kShown < text.size() ? "..." : "");
}

}  // namespace

PlanKey::PlanKey(PlanKeyParts parts)
    : parts_(std::make_shared<const PlanKeyParts>(std::move(parts))) {
  ContentHash all, but_shapes;
  for (const NamedPart& part : kParts) {
    const std::string& text = (*parts_).*part.text;
    all.add(text);
    if (part.text != &PlanKeyParts::shapes) but_shapes.add(text);
  }
  digest_ = all.digest();
  class_digest_ = but_shapes.digest();
}

std::string PlanKey::text() const {
  std::string out;
  for (const NamedPart& part : kParts) {
    out += fmt::format("{}{}={{{}}}", out.empty() ? "" : " ", part.name, (*parts_).*part.text);
  }
  return out;
}

std::vector<std::string> PlanKey::differences(const PlanKey& asked) const {
  std::vector<std::string> out;
  for (const NamedPart& part : kParts) {
    const std::string& mine = (*parts_).*part.text;
    const std::string& theirs = (*asked.parts_).*part.text;
    if (mine == theirs) continue;
    const auto at = std::mismatch(mine.begin(), mine.end(), theirs.begin(), theirs.end());
    const auto parting = static_cast<size_t>(at.first - mine.begin());
    out.push_back(
        fmt::format("{}: {} != {}", part.name, excerpt(mine, parting), excerpt(theirs, parting)));
  }
  return out;
}

std::string device_text(const Device& device) {
  const gr_device_info_t& info = device.info();
  static const char* const kMemories[] = {"device", "host", "handle"};
  return fmt::format("{} ({}; memory {}, alignment {}, {} streams)", device.name(),
                     info.description != nullptr ? info.description : "no description",
                     kMemories[info.memory], info.alignment, info.max_streams);
}

}  // namespace gradrack
