// SPDX-License-Identifier: Apache-2.0
// trainer_bits: trainers of one run file with seeds of their own, first one by one, then all at
// once in a process, a thread each; says whether both changed the same bits.
//
//   trainer_bits CONFIG --steps N --trainers T [--set a.b=c]... [--plugin-path DIR]...
//
// Exits 1 and names the first part that differs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <thread>
#include <vector>

#include "core/train/trainer.hpp"
#include "tests/accept/step_hash.hpp"

namespace gradrack {
namespace {

struct Request {
  SessionRequest session;
  int64_t steps = 1;
  int trainers = 2;
};

struct Run {
  std::unique_ptr<Session> session;
  std::unique_ptr<Trainer> trainer;
};

Result<Run> open(const Request& request, int seed, const std::shared_ptr<Machine>& machine) {
  SessionRequest own = request.session;
  own.sets.push_back("run.seed=" + std::to_string(seed));
  Run run;
  GR_ASSIGN(run.session, open_session(own));
  GR_ASSIGN(run.trainer, Trainer::make(*run.session, machine));
  return run;
}

Result<std::vector<StepHash>> one_by_one(const Request& request) {
  std::vector<StepHash> hashes;
  for (int k = 1; k <= request.trainers; ++k) {
    GR_ASSIGN(const Run run, open(request, k, nullptr));
    GR_ASSIGN(StepHash hash, hash_of_steps(*run.trainer, request.steps));
    hashes.push_back(std::move(hash));
  }
  return hashes;
}

Result<std::vector<StepHash>> together(const Request& request) {
  GR_ASSIGN(const std::unique_ptr<Session> session, open_session(request.session));
  GR_ASSIGN(const std::shared_ptr<Machine> machine, make_machine(*session));
  std::vector<Run> runs;
  for (int k = 1; k <= request.trainers; ++k) {
    GR_ASSIGN(Run run, open(request, k, machine));
    runs.push_back(std::move(run));
  }
  std::vector<Status> ended(runs.size());
  std::vector<StepHash> hashes(runs.size());
  std::vector<std::thread> threads;
  for (size_t k = 0; k < runs.size(); ++k) {
    threads.emplace_back([&, k] {
      auto hash = hash_of_steps(*runs[k].trainer, request.steps);
      ended[k] = hash.status();
      if (hash.ok()) hashes[k] = std::move(*hash);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : ended) GR_TRY(status);
  return hashes;
}

Status compare(const Request& request) {
  GR_ASSIGN(const std::vector<StepHash> alone, one_by_one(request));
  GR_ASSIGN(const std::vector<StepHash> at_once, together(request));
  for (size_t k = 0; k < alone.size(); ++k) {
    const std::string part = alone[k].first_difference(at_once[k]);
    if (part.empty()) continue;
    return internal_error(fmt::format("trainer {} differs in {}", k + 1, part));
  }
  fmt::print("{} trainers of {} steps: equal\n", alone.size(), request.steps);
  return {};
}

}  // namespace
}  // namespace gradrack

int main(int argc, char** argv) {
  using namespace gradrack;
  Request request;
  CLI::App app("Compares trainers that run at once with the same ones run alone.");
  add_session_options(app, &request.session, &request.steps);
  app.add_option("--trainers", request.trainers)->required();
  CLI11_PARSE(app, argc, argv);
  const Status status = compare(request);
  if (status.ok()) return 0;
  fmt::print(stderr, "trainer_bits: {}\n", status.message());
  return 1;
}
