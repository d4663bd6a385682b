// SPDX-License-Identifier: Apache-2.0
// schedule_bits: the same steps under many random schedules must give the same bits.
//
//   schedule_bits [--model gpt|stems] [--schedules N] [--from K] [--steps N]
//
// Trains a tiny decoder and a trunk with three stems (tests/support/stems_plugin.cpp; batches
// without the target of one of them in between) in program order on one stream, and then under N
// drawn schedules (`shuffled` of tests/support/emulated_plugin.cpp), and compares hashes of
// parameters, optimizer state, buffers and losses. Schedule K is on 1 + K % 8 streams of one or two
// threads, with 1 to 4 microbatches a step, replayed from recordings or launched one by one. Each
// run must really have been on that many streams, in an order that none before it had: a scheduler
// that was passed over proves nothing. Exits 1 at the first difference, naming the draw.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "core/base/log.hpp"
#include "core/plan/content_hash.hpp"
#include "core/train/evaluate.hpp"
#include "tests/accept/step_hash.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

struct Request {
  std::string model;  // "": both
  int64_t schedules = 64;
  int64_t from = 0;
  int64_t steps = 2;
};

constexpr int64_t kMostStreams = 8, kMostMicrobatches = 4;

/// What number K stands for.
struct Draw {
  int64_t seed;
  int64_t streams;
  int64_t accumulate;
  int64_t block;    // of draws with all streams and microbatches
  bool record;      // in every other block
  int64_t threads;  // of a stream: one or two

  explicit Draw(int64_t k)
      : seed(k + 1),
        streams(1 + k % kMostStreams),
        accumulate(1 + k / kMostStreams % kMostMicrobatches),
        block(k / (kMostStreams * kMostMicrobatches)),
        record(block % 2 == 0),
        threads(1 + (block + 1) / 2 % 2) {}
  std::string text() const {
    return fmt::format("seed {}, {} streams of {} threads, {} microbatches a step, {}", seed,
                       streams, threads, accumulate, record ? "replayed" : "launched");
  }
};

constexpr const char* kModels[][2] = {
    {"gpt",
     "model: {{plugin: gpt, layers: 2, heads: 2, dim: 16, dropout: 0.1}}\n"
     "data: {{plugin: text, block: 8, file: {}}}\n"},
    {"stems", "model: {{plugin: stems}}\ndata: {{plugin: stems, point_every: 2}}\n"},
};

/// A folder for the run files and what the runs write; removed at the end.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / fmt::format("schedule_bits_{}", getpid())) {
    fs::create_directories(path_);
  }
  ~Scratch() { fs::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string at(const std::string& name) const { return (path_ / name).string(); }
  void forget(const std::string& name) const { fs::remove_all(path_ / name); }

 private:
  fs::path path_;
};

/// Backends that the trainers of a block of draws share, so that kernels are prepared once.
struct Shared {
  std::unique_ptr<Session> session;  // outlives the machine
  std::shared_ptr<Machine> machine;
  int64_t block = 0;
};

/// The runs of one model.
class Model {
 public:
  Model(const Request& request, std::string name, const std::string& body, const Scratch& scratch)
      : request_(request), name_(std::move(name)), scratch_(scratch) {
    const std::string text = scratch.at("text.txt");
    std::ofstream words(text);
    for (int k = 0; k < 60; ++k) words << "the quick brown fox jumps over the lazy dog. ";
    std::ofstream(scratch_.at(name_ + ".yaml"))
        << "run: {seed: 3, max_steps: 100, batch_size: 2, eval_batches: 1, max_grad_norm: 0.5, "
           "plan_cache_limit: 512}\n"
        << fmt::format(fmt::runtime(body), text) << "optimizer: {plugin: adamw, lr: 0.01}\n";
  }

  Status run() {
    for (int64_t k = request_.from; k < request_.from + request_.schedules; ++k) {
      const Draw draw(k);
      const Status status = check(draw);
      if (!status.ok()) return status.with_context(fmt::format("{}: {}", name_, draw.text()));
    }
    fmt::print(
        "{}: {} of {} schedules give the bits of program order, no two of them alike; "
        "{} tasks and {} waits a plan\n",
        name_, orders_.size(), request_.schedules, tasks_ / plans_, waits_ / plans_);
    return {};
  }

 private:
  Status check(const Draw& draw) {
    const std::string scheduler =
        fmt::format("{{plugin: shuffled, seed: {}, streams: {}, auto_off: false, profile: false}}",
                    draw.seed, draw.streams);
    GR_ASSIGN(const StepHash got, train(draw, scheduler, true));
    GR_ASSIGN(const StepHash* const wanted, in_program_order(draw));
    const std::string difference = got.first_difference(*wanted);
    if (difference.empty()) return {};
    return internal_error(fmt::format("'{}' has other bits than in program order", difference));
  }

  Result<const StepHash*> in_program_order(const Draw& draw) {
    const auto [at, is_new] = expected_.try_emplace({draw.accumulate, draw.threads});
    if (is_new) {
      GR_ASSIGN(at->second, train(draw, "{plugin: sequential}", false));
    }
    return &at->second;
  }

  Result<StepHash> train(const Draw& draw, const std::string& scheduler, bool drawn) {
    GR_ASSIGN(const std::unique_ptr<Session> session, open(draw, scheduler));
    if (shared_.machine == nullptr || shared_.block != draw.block) {
      shared_.machine.reset();
      GR_ASSIGN(shared_.session, open(draw, scheduler));
      GR_ASSIGN(shared_.machine, make_machine(*shared_.session));
      shared_.block = draw.block;
    }
    GR_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::make(*session, shared_.machine));
    if (drawn) GR_TRY(look_at_plans(*trainer, draw));
    GR_ASSIGN(StepHash hash, hash_of_steps(*trainer, request_.steps));
    if (hash.updates != request_.steps) return internal_error("a step changed nothing");
    GR_ASSIGN(const Evaluation evaluation, evaluate(trainer->programs()));
    hash.of["evaluation"] =
        ContentHash().add_bytes(&evaluation.loss, sizeof evaluation.loss).digest().text();
    scratch_.forget("out");
    return hash;
  }

  Result<std::unique_ptr<Session>> open(const Draw& draw, const std::string& scheduler) const {
    SessionRequest request;
    request.config_path = scratch_.at(name_ + ".yaml");
    request.sets = {"scheduler=" + scheduler,
                    fmt::format("backend={{plugin: cpu, record: {}, threads: {}, "
                                "threads_per_stream: {}}}",
                                draw.record, kMostStreams * draw.threads, draw.threads),
                    fmt::format("run.accumulate_steps={}", draw.accumulate),
                    "run.output=" + scratch_.at("out")};
    request.plugin_path = {GRADRACK_TEST_PLUGIN_DIR};
    return open_session(request);
  }

  /// That the plans are the drawn scheduler's, on as many streams as it wants, and unlike those of
  /// the draws before.
  Status look_at_plans(Trainer& trainer, const Draw& draw) {
    ContentHash hash;
    for (const Programs::NamedPlan& each : trainer.programs().plans()) {
      const Schedule& schedule = each.plan->schedule;
      if (schedule.scheduler != "shuffled" ||
          schedule.lanes.size() != static_cast<size_t>(draw.streams)) {
        return internal_error(fmt::format("plan '{}' is of {} on {} streams: {}", each.name,
                                          schedule.scheduler, schedule.lanes.size(),
                                          schedule.fallback_reason));
      }
      for (const uint32_t task : schedule.order) {
        hash.add(int64_t{task}).add(int64_t{schedule.lane[task]});
      }
      tasks_ += static_cast<int64_t>(schedule.order.size());
      waits_ += static_cast<int64_t>(schedule.waits.size());
      ++plans_;
    }
    if (orders_.insert(hash.digest().text()).second) return {};
    return internal_error("its plans are those of a draw before");
  }

  const Request& request_;
  const std::string name_;
  const Scratch& scratch_;
  Shared shared_;
  std::map<std::pair<int64_t, int64_t>, StepHash> expected_;  // by microbatches and threads
  std::set<std::string> orders_;
  int64_t plans_ = 0, tasks_ = 0, waits_ = 0;
};

Status run(const Request& request) {
  const Scratch scratch;
  for (const auto& [name, body] : kModels) {
    if (!request.model.empty() && request.model != name) continue;
    GR_TRY(Model(request, name, body, scratch).run());
  }
  return {};
}

}  // namespace
}  // namespace gradrack

int main(int argc, char** argv) {
  using namespace gradrack;
  Request request;
  CLI::App app("Trains under random schedules and compares the bits with those of program order.");
  app.add_option("--model", request.model)->check(CLI::IsMember({"gpt", "stems"}));
  app.add_option("--schedules", request.schedules)->check(CLI::PositiveNumber);
  app.add_option("--from", request.from, "number of the first")->check(CLI::NonNegativeNumber);
  app.add_option("--steps", request.steps)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  start_logging({LogFormat::kText, true});
  const Status status = run(request);
  if (status.ok()) return 0;
  fmt::print(stderr, "schedule_bits: {}\n", status.message());
  return 1;
}
