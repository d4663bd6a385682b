// SPDX-License-Identifier: Apache-2.0
// Keys and the cache of plans: see key.hpp.
#include "core/plan/key.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/base/text.hpp"

namespace gradrack {

namespace {

class Hash {
 public:
  void add(const void* data, size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (size_t k = 0; k < bytes; ++k) value_ = (value_ ^ at[k]) * UINT64_C(0x100000001b3);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = UINT64_C(0xcbf29ce484222325);  // FNV-1a
};

std::string graph_hash(const Graph& graph) {
  Hash hash;
  const std::string text = dump(graph);
  hash.add(text.data(), text.size());
  for (const Value& value : graph.values()) {
    if (value.constant == nullptr) continue;
    const std::string type = to_text(value.type);
    hash.add(type.data(), type.size());
    hash.add(value.constant->reals.data(), value.constant->reals.size() * sizeof(double));
    hash.add(value.constant->ints.data(), value.constant->ints.size() * sizeof(int64_t));
  }
  return fmt::format("{:016x}", hash.value());
}

}  // namespace

std::array<std::pair<const char*, const std::string*>, 6> PlanKey::parts() const {
  return {{{"graph", &graph},
           {"bindings", &bindings},
           {"chain", &chain},
           {"fallback", &fallback},
           {"scheduler", &scheduler},
           {"memory limit", &memory_limit}}};
}

std::string PlanKey::text() const {
  std::string out;
  for (const auto& [name, value] : parts()) {
    out += fmt::format("{}{}={{{}}}", out.empty() ? "" : " ", name, *value);
  }
  return out;
}

std::vector<std::string> PlanKey::difference(const PlanKey& other) const {
  std::vector<std::string> out;
  const auto mine = parts(), theirs = other.parts();
  for (size_t k = 0; k < mine.size(); ++k) {
    if (*mine[k].second != *theirs[k].second) out.emplace_back(mine[k].first);
  }
  return out;
}

PlanKey key_of(const PlanRequest& request, const std::string& scheduler_options) {
  PlanKey key;
  key.graph = graph_hash(*request.graph);
  for (const auto& [name, number] : request.bindings) {
    key.bindings += fmt::format("{}{}={}", key.bindings.empty() ? "" : " ", name, number);
  }
  for (const Device* device : request.devices) {
    const char* about = device->info().description;
    key.chain += fmt::format("{}{} ({})", key.chain.empty() ? "" : ", ", device->name(),
                             about != nullptr ? about : "");
  }
  key.fallback = std::to_string(static_cast<int>(request.fallback));
  key.scheduler = request.scheduler == nullptr ? "program order"
                                               : request.scheduler_name + " " + scheduler_options;
  key.memory_limit = std::to_string(request.memory_limit);
  return key;
}

std::string PlanCache::explain_miss(const PlanKey& key) const {
  std::string best = "first plan";
  size_t fewest = SIZE_MAX;
  for (const auto& [held, plan] : held_) {
    const std::vector<std::string> differs = key.difference(held);
    if (differs.size() >= fewest) continue;
    fewest = differs.size();
    best = "differs in " + join(differs);
  }
  return best;
}

Result<std::shared_ptr<const Plan>> PlanCache::get(const PlanRequest& request,
                                                   const std::string& scheduler_options) {
  PlanKey key = key_of(request, scheduler_options);
  for (const auto& [held, plan] : held_) {
    if (!(held == key)) continue;
    ++hits_;
    return plan;
  }
  ++misses_;
  last_miss_ = explain_miss(key);
  GR_ASSIGN(std::shared_ptr<const Plan> made, make_plan(request));
  if (held_.size() >= limit_ && !held_.empty()) held_.erase(held_.begin());
  held_.emplace_back(std::move(key), made);
  return made;
}

}  // namespace gradrack
