// SPDX-License-Identifier: Apache-2.0
// See step_hash.hpp.
#include "tests/accept/step_hash.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "core/plan/content_hash.hpp"

namespace gradrack {

namespace {

const char* class_of(Source source) {
  switch (source) {
    case Source::kParameter:
      return "parameters";
    case Source::kBuffer:
      return "buffers";
    case Source::kState:
      return "state";
    default:
      return nullptr;  // accumulators live within a step
  }
}

Status hash_store(const Store& store, StepHash* out) {
  std::map<std::string, ContentHash> hashes;
  std::vector<std::byte> bytes;
  for (const StoredTensor& tensor : store.tensors()) {
    const char* const kind = class_of(tensor.source);
    if (kind == nullptr) continue;
    bytes.resize(static_cast<size_t>(tensor.bytes));
    GR_TRY(store.read(tensor.name, bytes));
    const std::string owner = tensor.name.substr(0, tensor.name.rfind('.'));
    const std::string part = fmt::format("{} {}", kind, owner);
    for (const std::string& key : {std::string(kind), part}) {
      hashes[key].add(tensor.name).add_bytes(bytes.data(), bytes.size());
    }
  }
  for (auto& [key, hash] : hashes) out->of[key] = hash.digest().text();
  return {};
}

}  // namespace

std::string StepHash::first_difference(const StepHash& other) const {
  for (const auto& [key, hash] : of) {
    const auto at = other.of.find(key);
    if (at == other.of.end() || at->second != hash) return key;
  }
  for (const auto& [key, hash] : other.of) {
    if (of.count(key) == 0) return key;
  }
  return "";
}

Result<StepHash> hash_of_steps(Trainer& trainer, int64_t steps) {
  StepHash out;
  ContentHash losses;
  for (int64_t step = 0; step < steps; ++step) {
    GR_ASSIGN(const StepReport report, trainer.step());
    losses.add_bytes(&report.loss, sizeof report.loss);
    for (const double mean : trainer.objective_means()) losses.add_bytes(&mean, sizeof mean);
    out.updates += report.updated ? 1 : 0;
  }
  GR_TRY(hash_store(trainer.programs().store(), &out));
  out.of["losses"] = losses.digest().text();
  return out;
}

void add_session_options(CLI::App& app, SessionRequest* session, int64_t* steps) {
  app.add_option("config", session->config_path)->required();
  app.add_option("--steps", *steps)->required();
  app.add_option("--set", session->sets);
  app.add_option("--plugin-path", session->plugin_path);
}

}  // namespace gradrack
