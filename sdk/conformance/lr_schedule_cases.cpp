// SPDX-License-Identifier: Apache-2.0
// Cases of the lr_schedule kind: a pure function with finite values that are not negative.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "sdk/checked/thread_role.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/use.hpp"

namespace gradrack::conform {
namespace {

using LrInstance = Instance<gr_lr_schedule_t>;

Result<double> rate(const gr_lr_schedule_t& table, int64_t update, int64_t max_updates,
                    double base) {
  gr_lr_request_t request = {};
  request.struct_size = sizeof request;
  request.update = update;
  request.max_updates = max_updates;
  request.base_lr = base;
  double lr = std::nan("");
  GR_TRY(call_plugin("value", nullptr,
                     [&](gr_error_t* err) { return table.value(table.self, &request, &lr, err); }));
  if (std::isfinite(lr) && lr >= 0) return lr;
  return internal_error(
      fmt::format("value gives {} for update {} of {} at base_lr {}: finite and "
                  ">= 0 wanted",
                  lr, update, max_updates, base));
}

Outcome range(Context& context) {
  CONFORM_ASSIGN(const LrInstance schedule, context.make<gr_lr_schedule_t>());
  for (const int64_t horizon : {1, 2, 3, 10, 1000, 1000000}) {
    for (const double base : {0.0, 1e-8, 1e-3, 1.0, 100.0}) {
      const int64_t step = std::max<int64_t>(1, horizon / 97);
      for (int64_t update = 0; update < horizon; update += step) {
        CONFORM_TRY(rate(schedule.table(), update, horizon, base).status());
      }
      CONFORM_TRY(rate(schedule.table(), horizon - 1, horizon, base).status());
    }
  }
  return pass();
}

// A run that is resumed with a smaller max_steps asks beyond the horizon.
Outcome beyond(Context& context) {
  CONFORM_ASSIGN(const LrInstance schedule, context.make<gr_lr_schedule_t>());
  for (const int64_t update : {10, 11, 1000, 1000000000}) {
    CONFORM_TRY(rate(schedule.table(), update, 10, 0.1).status());
  }
  return pass();
}

Outcome pure(Context& context) {
  CONFORM_ASSIGN(const LrInstance schedule, context.make<gr_lr_schedule_t>());
  std::vector<double> forward;
  for (int64_t update = 0; update < 200; ++update) {
    CONFORM_ASSIGN(const double lr, rate(schedule.table(), update, 200, 0.3));
    forward.push_back(lr);
  }
  std::mt19937_64 random = context.random("L3.pure");
  for (int k = 0; k < 1000; ++k) {
    const auto update = static_cast<int64_t>(random() % 200);
    CONFORM_ASSIGN(const double lr, rate(schedule.table(), update, 200, 0.3));
    if (lr == forward[static_cast<size_t>(update)]) continue;
    return fail(fmt::format("value of update {} is {} when asked in order and {} out of order",
                            update, forward[static_cast<size_t>(update)], lr));
  }
  return pass();
}

// `value` is [any]: several threads may ask at once.
Outcome concurrent(Context& context) {
  CONFORM_ASSIGN(const LrInstance schedule, context.make<gr_lr_schedule_t>());
  CONFORM_ASSIGN(const double wanted, rate(schedule.table(), 7, 100, 0.3));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int k = 0; k < 2000; ++k) {
        const auto lr = rate(schedule.table(), 7, 100, 0.3);
        if (!lr.ok() || *lr != wanted) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return wrong == 0 ? pass() : fail(fmt::format("{} of 8000 calls from 4 threads differ", wrong));
}

Outcome zero_base(Context& context) {
  CONFORM_ASSIGN(const LrInstance schedule, context.make<gr_lr_schedule_t>());
  for (int64_t update = 0; update < 20; ++update) {
    CONFORM_ASSIGN(const double small, rate(schedule.table(), update, 20, 1e-6));
    if (small > 1.0) {
      return fail(fmt::format("base_lr 1e-6 gives {} at update {}: a schedule scales the base rate",
                              small, update));
    }
  }
  return pass();
}

}  // namespace

void add_lr_schedule_cases(const Target&, std::vector<Case>* cases) {
  cases->push_back({"L3.range", 3, "finite and not negative, for every horizon", range});
  cases->push_back({"L3.beyond", 3, "so it is beyond the horizon", beyond});
  cases->push_back({"L3.base", 3, "a small base rate gives small rates", zero_base});
  cases->push_back({"L3.pure", 3, "the value depends on the request alone", pure});
  cases->push_back({"L3.concurrent", 3, "four threads at once get the same value", concurrent});
}

}  // namespace gradrack::conform
