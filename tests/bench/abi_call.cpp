// SPDX-License-Identifier: Apache-2.0
// What one call through the ABI costs beside a direct call of the same function.
//
//   abi_call PLUGIN [LIMIT_NS]
//
// The same source is linked into this program (called directly) and into PLUGIN (called through
// the table that the host's loader and factory give, unchecked as in a release). Prints both, the
// difference and the ratio; exits 1 when the difference is not below LIMIT_NS (default 5). The best
// of several rounds counts, since whatever disturbs a round makes it slower. The checked table is
// timed too, for information.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "core/plugin/library.hpp"
#include "sdk/checked/checked.hpp"

extern "C" int32_t bench_value(void* self, const gr_lr_request_t* request, double* lr,
                               gr_error_t* err);

namespace gradrack {
namespace {

constexpr int kRounds = 30;
constexpr int64_t kCalls = 200000;

/// Nanoseconds a call: the best round.
template <typename Call>
double best_ns(const Call& call) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    gr_lr_request_t request = {};
    request.struct_size = sizeof request;
    request.max_updates = kCalls;
    request.base_lr = 0.5;
    gr_error_t err = {};
    double sum = 0;
    const auto start = std::chrono::steady_clock::now();
    for (; request.update < kCalls; ++request.update) {
      double lr = 0;
      if (call(&request, &lr, &err) != GR_OK) std::abort();
      sum += lr;
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    if (sum <= 0) std::abort();
    best = std::min(best, took.count() / static_cast<double>(kCalls));
  }
  return best;
}

Result<gr_lr_schedule_t> load(const char* path) {
  GR_ASSIGN(const Library library, load_library(path));
  gr_lr_schedule_t table = {};
  table.struct_size = sizeof table;
  gr_error_t err = {};
  gr_options_t none = {};
  none.struct_size = sizeof none;
  const Factory& factory = library.factories.front();
  GR_TRY(status_from(factory.create(factory.host, &none, &table, &err), err));
  return table;
}

int run(const char* path, double limit_ns) {
  const auto table = load(path);
  if (!table.ok()) {
    std::fprintf(stderr, "abi_call: %s: %s\n", path, table.status().message().c_str());
    return 2;
  }
  const auto through = [](const gr_lr_schedule_t* t) {
    return [t](const gr_lr_request_t* request, double* lr, gr_error_t* err) {
      return t->value(t->self, request, lr, err);
    };
  };
  const double direct = best_ns([](const gr_lr_request_t* request, double* lr, gr_error_t* err) {
    return bench_value(nullptr, request, lr, err);
  });
  const double abi = best_ns(through(&*table));
  const double guarded = best_ns(through(checked(&*table, [](const Violation&) {})));
  const bool good = abi - direct < limit_ns;
  std::printf(
      "abi_call: direct %.2f ns, through the ABI %.2f ns: %+.2f ns (target < %.1f), ratio %.2f; "
      "checked %.2f ns: %s\n",
      direct, abi, abi - direct, limit_ns, abi / direct, guarded, good ? "ok" : "TOO SLOW");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace gradrack

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: abi_call PLUGIN [LIMIT_NS]\n");
    return 2;
  }
  return gradrack::run(argv[1], argc > 2 ? std::atof(argv[2]) : 5.0);
}
