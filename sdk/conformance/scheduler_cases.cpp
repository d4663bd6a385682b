// SPDX-License-Identifier: Apache-2.0
// Cases of the scheduler kind: complete and legal orders for random task graphs, the same each
// time.
#include <fmt/format.h>

#include "core/schedule/happens_before.hpp"
#include "core/schedule/schedule.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/samples.hpp"

namespace gradrack::conform {
namespace {

using SchedulerInstance = Instance<gr_scheduler_t>;

struct Answer {
  Status status;
  std::vector<uint32_t> order, stream;
  bool operator==(const Answer& o) const {
    return status.code() == o.status.code() && order == o.order && stream == o.stream;
  }
};

constexpr uint32_t kUnset = 0xdeadbeef;

// The answer's arrays have guards after their ends.
Answer ask(const gr_scheduler_t& table, const TaskTable& tasks, uint32_t streams, int64_t limit) {
  const TaskRequest request(tasks, streams, limit);
  const size_t count = tasks.tasks.size();
  Answer answer;
  answer.order.assign(count + 8, kUnset);
  answer.stream.assign(count + 8, kUnset);
  answer.status = call_plugin("schedule", nullptr, [&](gr_error_t* err) {
    return table.schedule(table.self, request.get(), answer.order.data(), answer.stream.data(),
                          err);
  });
  for (size_t k = count; k < count + 8; ++k) {
    if (answer.order[k] == kUnset && answer.stream[k] == kUnset) continue;
    answer.status = internal_error("schedule writes beyond task_count entries");
  }
  answer.order.resize(count);
  answer.stream.resize(count);
  return answer;
}

// An order must be a permutation in which every dependency comes first, on streams that there are.
Status check(const TaskTable& tasks, const Answer& answer, uint32_t streams) {
  GR_TRY(answer.status);
  GR_ASSIGN(const Schedule schedule, schedule_from(tasks, answer.order, answer.stream, streams));
  return check_happens_before(tasks, schedule, {});
}

// Most bytes alive at once when tasks run in that order.
int64_t peak_bytes(const TaskTable& tasks, const std::vector<uint32_t>& order) {
  int64_t live = 0, peak = 0;
  for (const uint32_t task : order) {
    live += tasks.tasks[task].bytes_held;
    peak = std::max(peak, live);
    live -= tasks.tasks[task].bytes_freed;
  }
  return peak;
}

Outcome streams_case(Context& context) {
  CONFORM_ASSIGN(const SchedulerInstance scheduler, context.make<gr_scheduler_t>());
  uint32_t answers[2] = {0, 0};
  for (uint32_t& streams : answers) {
    CONFORM_TRY(call_plugin("streams", nullptr, [&](gr_error_t* err) {
      return scheduler->streams(scheduler.table().self, &streams, err);
    }));
  }
  if (answers[0] != answers[1]) return fail("streams changes its answer");
  return answers[0] >= 1 ? pass() : fail("streams answers 0");
}

Outcome legal(Context& context) {
  CONFORM_ASSIGN(const SchedulerInstance scheduler, context.make<gr_scheduler_t>());
  std::mt19937_64 random = context.random("L3.legal");
  for (int k = 0; k < 300; ++k) {
    const auto count = static_cast<uint32_t>(1 + random() % (k % 10 == 0 ? 400 : 40));
    const auto streams = static_cast<uint32_t>(1 + random() % 5);
    const TaskTable tasks = random_tasks(random, count);
    const Answer answer = ask(scheduler.table(), tasks, streams, 0);
    CONFORM_TRY(
        check(tasks, answer, streams)
            .with_context(fmt::format("graph {} of {} tasks, {} streams", k, count, streams)));
  }
  return pass();
}

Outcome shapes(Context& context) {
  CONFORM_ASSIGN(const SchedulerInstance scheduler, context.make<gr_scheduler_t>());
  const Task plain;
  TaskTable none, one, chain, wide;
  one.tasks = {plain};
  for (uint32_t k = 0; k < 1000; ++k) {
    Task link;
    if (k > 0) link.deps = {k - 1};
    chain.tasks.push_back(link);
    wide.tasks.push_back(plain);
  }
  const std::pair<const char*, const TaskTable*> all[] = {
      {"no task", &none}, {"one task", &one}, {"a chain of 1000", &chain}, {"1000 apart", &wide}};
  for (const auto& [name, tasks] : all) {
    for (const uint32_t streams : {1u, 4u}) {
      CONFORM_TRY(
          check(*tasks, ask(scheduler.table(), *tasks, streams, 0), streams).with_context(name));
    }
  }
  return pass();
}

Outcome deterministic(Context& context) {
  CONFORM_ASSIGN(const SchedulerInstance first, context.make<gr_scheduler_t>());
  CONFORM_ASSIGN(const SchedulerInstance second, context.make<gr_scheduler_t>());
  std::mt19937_64 random = context.random("L5.deterministic");
  for (int k = 0; k < 50; ++k) {
    const TaskTable tasks = random_tasks(random, static_cast<uint32_t>(2 + random() % 60));
    const TaskTable other = random_tasks(random, 17);
    const Answer answer = ask(first.table(), tasks, 3, 0);
    (void)ask(first.table(), other, 2, 0);
    if (!(ask(first.table(), tasks, 3, 0) == answer)) {
      return fail("the same request gets another answer after a request in between");
    }
    if (!(ask(second.table(), tasks, 3, 0) == answer)) {
      return fail("another instance with equal options gives another answer");
    }
  }
  return pass();
}

Outcome memory_limit(Context& context) {
  CONFORM_ASSIGN(const SchedulerInstance scheduler, context.make<gr_scheduler_t>());
  std::mt19937_64 random = context.random("L3.memory_limit");
  int honoured = 0;
  for (int k = 0; k < 50; ++k) {
    const TaskTable tasks = random_tasks(random, 40);
    std::vector<uint32_t> program(tasks.tasks.size());
    for (uint32_t t = 0; t < program.size(); ++t) program[t] = t;
    // Program order meets the limit, so an order exists.
    const int64_t limit = std::max<int64_t>(1, peak_bytes(tasks, program));
    const Answer answer = ask(scheduler.table(), tasks, 2, limit);
    if (answer.status.code() == GR_UNSUPPORTED) continue;
    CONFORM_TRY(check(tasks, answer, 2));
    const int64_t peak = peak_bytes(tasks, answer.order);
    if (peak > limit) {
      return fail(
          fmt::format("with memory_limit {} its order holds {} bytes; program order holds "
                      "the limit: keep to it, or answer GR_UNSUPPORTED",
                      limit, peak));
    }
    ++honoured;
  }
  Outcome outcome = pass();
  outcome.facts["memory_limit"] = honoured > 0 ? "honoured" : "refused";
  return outcome;
}

}  // namespace

void add_scheduler_cases(const Target&, std::vector<Case>* cases) {
  cases->push_back(
      {"L3.streams", 3, "streams wants at least one, the same each time", streams_case});
  cases->push_back({"L3.legal", 3, "legal orders for 300 random task graphs", legal});
  cases->push_back({"L3.shapes", 3, "no task, one, a chain, none that depend", shapes});
  cases->push_back({"L3.memory_limit", 3, "memory_limit is kept or refused", memory_limit});
  cases->push_back({"L5.deterministic", 5, "the same request, the same answer", deterministic});
}

}  // namespace gradrack::conform
