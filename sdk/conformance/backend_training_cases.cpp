// SPDX-License-Identifier: Apache-2.0
// L5: training on the backend under test, with the reference behind it for what it does not claim.
//
// The kit's model for 20 steps: against the reference alone, twice, with its state taken out and
// put into a fresh store half way, and spread over streams. Invariant: all but the first compare
// bits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.hpp"
#include "sdk/conformance/backend_bench.hpp"
#include "sdk/conformance/backend_training.hpp"

namespace gradrack::conform {
namespace {

constexpr int64_t kSteps = 20;
/// Of a loss and a norm after up to 20 steps in float32, relative to the reference's.
constexpr double kLossTolerance = 1e-4;
constexpr double kNormTolerance = 1e-3;

std::vector<Device*> chain_of(const Bench& bench) {
  return {bench.tested->device(), bench.reference->device()};
}

struct Finished {
  std::vector<StepNumbers> numbers;
  TinyState state;
  std::vector<DeviceSummary> summary;
};

Result<Finished> train(const std::vector<Device*>& chain, uint64_t seed, uint32_t streams = 1) {
  GR_ASSIGN(const std::unique_ptr<TinyRun> run, TinyRun::make(chain, seed, streams));
  Finished out;
  GR_ASSIGN(out.numbers, run->steps(1, kSteps));
  GR_ASSIGN(out.state, run->state());
  out.summary = run->plan().summary;
  return out;
}

std::string numbers_fault(const std::vector<StepNumbers>& got,
                          const std::vector<StepNumbers>& want) {
  for (size_t k = 0; k < want.size(); ++k) {
    const auto near = [](double a, double b, double most) {
      return std::fabs(a - b) <= most * std::max(1.0, std::fabs(b));
    };
    if (!near(got[k].loss, want[k].loss, kLossTolerance)) {
      return fmt::format("step {}: loss {:.9g}, reference {:.9g}, allowed {} of it", k + 1,
                         got[k].loss, want[k].loss, kLossTolerance);
    }
    if (!near(got[k].grad_norm, want[k].grad_norm, kNormTolerance)) {
      return fmt::format("step {}: gradient norm {:.9g}, reference {:.9g}, allowed {} of it", k + 1,
                         got[k].grad_norm, want[k].grad_norm, kNormTolerance);
    }
  }
  return "";
}

/// What two runs that must be equal differ in.
std::string bits_fault(const Finished& a, const Finished& b) {
  for (size_t k = 0; k < a.numbers.size() && k < b.numbers.size(); ++k) {
    if (a.numbers[k].loss == b.numbers[k].loss) continue;
    return fmt::format("the losses differ after {} steps: {:.9g} and {:.9g}", k + 1,
                       a.numbers[k].loss, b.numbers[k].loss);
  }
  for (const auto& [name, content] : a.state) {
    if (b.state.at(name) != content) return fmt::format("'{}' differs after the last step", name);
  }
  return "";
}

Outcome losses(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  CONFORM_ASSIGN(const Finished want, train({bench.reference->device()}, bench.seed));
  CONFORM_ASSIGN(const Finished got, train(chain_of(bench), bench.seed));
  const std::string fault = numbers_fault(got.numbers, want.numbers);
  Outcome out = fault.empty() ? pass() : fail(fault);
  const DeviceSummary& mine = got.summary[0];
  out.facts = {{"first_loss", fmt::format("{:.6f}", got.numbers.front().loss)},
               {"last_loss", fmt::format("{:.6f}", got.numbers.back().loss)},
               {"native", std::to_string(mine.native)},
               {"decomposed", std::to_string(mine.decomposed)},
               {"other_backend", std::to_string(mine.handed_on_count())}};
  if (!fault.empty()) return out;
  if (want.numbers.back().loss >= want.numbers.front().loss) {
    return fail("the reference itself does not learn: a fault of the kit");
  }
  if (mine.handed_on_count() > 0 || mine.decomposed > 0) out.text = mine.text();
  return out;
}

Outcome repeats(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  CONFORM_ASSIGN(const Finished first, train(chain_of(bench), bench.seed));
  CONFORM_ASSIGN(const Finished second, train(chain_of(bench), bench.seed));
  const std::string fault = bits_fault(first, second);
  return fault.empty() ? pass() : fail("two equal runs: " + fault);
}

Outcome resumes(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  CONFORM_ASSIGN(const std::unique_ptr<TinyRun> first, TinyRun::make(chain_of(bench), bench.seed));
  CONFORM_TRY(first->steps(1, kSteps / 2).status());
  CONFORM_ASSIGN(const TinyState half, first->state());
  CONFORM_ASSIGN(const std::unique_ptr<TinyRun> second, TinyRun::make(chain_of(bench), bench.seed));
  CONFORM_TRY(second->steps(1, 1).status());  // so that it holds something else
  CONFORM_TRY(second->restore(half));
  CONFORM_ASSIGN(const TinyState back, second->state());
  if (back != half) return fail("parameters written to a fresh store read back otherwise");
  Finished a, b;
  CONFORM_ASSIGN(a.numbers, first->steps(kSteps / 2 + 1, kSteps));
  CONFORM_ASSIGN(a.state, first->state());
  CONFORM_ASSIGN(b.numbers, second->steps(kSteps / 2 + 1, kSteps));
  CONFORM_ASSIGN(b.state, second->state());
  const std::string fault = bits_fault(a, b);
  return fault.empty() ? pass() : fail("a run that goes on from its saved state: " + fault);
}

Outcome spreads(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  const uint32_t streams = std::min<uint32_t>(4, bench.tested->device()->info().max_streams);
  if (streams < 2) return not_applicable("the device has one stream");
  CONFORM_ASSIGN(const Finished one, train(chain_of(bench), bench.seed));
  CONFORM_ASSIGN(const Finished many, train(chain_of(bench), bench.seed, streams));
  const std::string fault = bits_fault(one, many);
  return fault.empty() ? pass() : fail(fmt::format("{} streams and one: {}", streams, fault));
}

}  // namespace

void add_training_cases(std::vector<Case>* cases) {
  const auto add = [&](const char* id, const char* title, Outcome (*body)(Context&)) {
    Case one = {std::string("L5.training.") + id, 5, title, body, "L5"};
    one.limit_s = 120;
    cases->push_back(std::move(one));
  };
  add("losses", "20 steps give the losses of the reference", losses);
  add("repeats", "two equal runs give equal bits", repeats);
  add("resumes", "state taken out and put into a fresh store goes on with equal bits", resumes);
  add("streams", "a step spread over streams gives the bits of one stream", spreads);
}

}  // namespace gradrack::conform
