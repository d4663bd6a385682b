// SPDX-License-Identifier: Apache-2.0
// ArenaBlocks: see arena_blocks.hpp.
#include "core/exec/arena_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gradrack {

namespace {

/// Plans' own host memories are one and the same memory.
const Device* key_of(const Plan& plan, size_t d) {
  return plan.devices[d] == plan.own_host.get() ? nullptr : plan.devices[d];
}

struct Need {
  Device* device = nullptr;  // to allocate from
  int64_t bytes = 0;
};

std::map<const Device*, Need> needs_of(std::span<const Plan* const> plans) {
  std::map<const Device*, Need> needs;
  for (const Plan* plan : plans) {
    for (size_t d = 0; d < plan->devices.size(); ++d) {
      Need& need = needs[key_of(*plan, d)];
      if (need.device == nullptr) need.device = plan->devices[d];
      need.bytes = std::max(need.bytes, plan->arena_bytes[d]);
    }
  }
  return needs;
}

}  // namespace

Result<std::shared_ptr<const ArenaBlocks>> ArenaBlocks::make(std::span<const Plan* const> plans) {
  auto made = std::make_shared<ArenaBlocks>();
  const std::map<const Device*, Need> needs = needs_of(plans);
  for (const auto& [key, need] : needs) {
    // An arena without bytes has a place too: kernels get one for tensors without elements.
    GR_ASSIGN(made->blocks_[key], need.device->allocate(need.bytes));
    if (key != nullptr) continue;
    for (const Plan* plan : plans) {
      if (plan->own_host.get() == need.device) made->host_ = plan->own_host;
    }
  }
  return std::shared_ptr<const ArenaBlocks>(std::move(made));
}

int64_t ArenaBlocks::planned_bytes(std::span<const Plan* const> plans) {
  int64_t bytes = 0;
  for (const auto& [key, need] : needs_of(plans)) bytes += need.bytes;
  return bytes;
}

Result<const Memory*> ArenaBlocks::block(const Plan& plan, size_t d) const {
  const auto at = blocks_.find(key_of(plan, d));
  const int64_t held = at == blocks_.end() ? -1 : at->second.bytes();
  if (held >= plan.arena_bytes[d]) return &at->second;
  return invalid_argument(
      fmt::format("the shared arena on {} has {} bytes, this plan wants {}: make it for every plan "
                  "that is to run in it",
                  plan.devices[d]->name(), std::max<int64_t>(0, held), plan.arena_bytes[d]));
}

bool ArenaBlocks::hold(const Plan& plan) const {
  for (size_t d = 0; d < plan.devices.size(); ++d) {
    const auto at = blocks_.find(key_of(plan, d));
    if (at == blocks_.end() || at->second.bytes() < plan.arena_bytes[d]) return false;
  }
  return true;
}

int64_t ArenaBlocks::allocated_bytes() const {
  int64_t bytes = 0;
  for (const auto& [device, block] : blocks_) bytes += block.bytes();
  return bytes;
}

}  // namespace gradrack
