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
#include <nlohmann/json.hpp>

#include "core/train/trainer.hpp"
#include "tests/accept/step_hash.hpp"

namespace gradrack {
namespace {

struct Request {
  SessionRequest session;
  int64_t steps = 1;
  bool fresh_plans = false;
};

Status run(const Request& request) {
  GR_ASSIGN(const std::unique_ptr<Session> session, open_session(request.session));
  GR_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::make(*session));
  if (request.fresh_plans) trainer->programs().plan_afresh();
  GR_ASSIGN(const StepHash hash, hash_of_steps(*trainer, request.steps));
  nlohmann::json out = hash.of;
  out["steps"] = request.steps;
  out["updates"] = hash.updates;
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
  add_session_options(app, &request.session, &request.steps);
  app.add_flag("--fresh-plans", request.fresh_plans, "make every step's plan anew");
  CLI11_PARSE(app, argc, argv);
  const Status status = run(request);
  if (status.ok()) return 0;
  fmt::print(stderr, "run_bits: {}\n", status.message());
  return 1;
}
