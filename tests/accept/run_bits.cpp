// SPDX-License-Identifier: Apache-2.0
// run_bits: trains a run file for some steps and prints hashes of all that a step changes, as JSON.
//
//   run_bits CONFIG --steps N [--set a.b=c]... [--plugin-path DIR]... [--fresh-plans]
//
// What `gradrack train` writes leaves out the optimizer's state; the acceptance of plans and
// schedulers compares that too. Prints parameters, state, buffers and the bits of every loss, the
// tensors of each part of the model by themselves, and what the plans cost.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/log.hpp"
#include "core/plan/content_hash.hpp"
#include "core/train/trainer.hpp"

namespace gradrack {
namespace {

struct Request {
  SessionRequest session;
  int64_t steps = 1;
  bool fresh_plans = false;
};

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

/// Hashes of the store's tensors: of each class, and of each class by what its names begin with.
Status hash_store(const Store& store, nlohmann::json* out) {
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
  for (auto& [key, hash] : hashes) (*out)[key] = hash.digest().text();
  return {};
}

Status run(const Request& request) {
  GR_ASSIGN(const std::unique_ptr<Session> session, open_session(request.session));
  GR_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::make(*session));
  if (request.fresh_plans) trainer->programs().plan_afresh();
  nlohmann::json out;
  ContentHash losses;
  int64_t updated = 0;
  for (int64_t step = 0; step < request.steps; ++step) {
    GR_ASSIGN(const StepReport report, trainer->step());
    losses.add_bytes(&report.loss, sizeof report.loss);
    for (const double mean : trainer->objective_means()) losses.add_bytes(&mean, sizeof mean);
    updated += report.updated ? 1 : 0;
  }
  GR_TRY(hash_store(trainer->programs().store(), &out));
  out["losses"] = losses.digest().text();
  out["steps"] = request.steps;
  out["updates"] = updated;
  out["plans"] = trainer->setup().machine->plans_text();
  std::puts(out.dump(1).c_str());
  return {};
}

}  // namespace
}  // namespace gradrack

int main(int argc, char** argv) {
  using namespace gradrack;
  Request request;
  CLI::App app("Trains some steps and prints hashes of what they changed.");
  app.add_option("config", request.session.config_path)->required();
  app.add_option("--steps", request.steps)->required();
  app.add_option("--set", request.session.sets);
  app.add_option("--plugin-path", request.session.plugin_path);
  app.add_flag("--fresh-plans", request.fresh_plans, "make every step's plan anew");
  CLI11_PARSE(app, argc, argv);
  const Status status = run(request);
  if (status.ok()) return 0;
  fmt::print(stderr, "run_bits: {}\n", status.message());
  return 1;
}
