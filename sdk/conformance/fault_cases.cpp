// SPDX-License-Identifier: Apache-2.0
// Level 2, one factory: what it does when the world fails it: the graph builder, memory, a user who
// wants to stop.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/tables.hpp"
#include "sdk/conformance/use.hpp"

namespace gradrack::conform {
namespace {

// Each call of the builder fails once, the first, the second, ... until one use gets through.
Outcome failing_builder(Context& context) {
  return with_table(context.target().kind, [&]<typename T>(std::type_identity<T>) -> Outcome {
    CONFORM_ASSIGN(const Instance<T> instance, context.make<T>());
    Use whole;
    CONFORM_ASSIGN(const std::string good, use_instance(context, instance.table(), &whole));
    if (whole.builder_calls == 0) return not_applicable("it builds no graph");
    for (int64_t nth = 1; nth <= whole.builder_calls; ++nth) {
      std::fprintf(stderr, "[kit] builder call %ld fails\n", static_cast<long>(nth));
      Use use;
      use.fail_builder_call = nth;
      const auto answer = use_instance(context, instance.table(), &use);
      // A use is several plugin calls with a builder each: the longest has fewer calls than all.
      // What the plugin refuses by itself is refused in the good use too.
      if (answer.ok() && use.code == whole.code) break;
      if (use.code != kInjectedCode) {
        return fail(
            fmt::format("builder call {} fails with status {}, the plugin {}", nth, kInjectedCode,
                        use.code == GR_OK ? "goes on as if it had not: " + answer.status().message()
                                          : fmt::format("returns {}", use.code)));
      }
    }
    CONFORM_ASSIGN(const std::string after, use_instance(context, instance.table(), nullptr));
    return after == good ? pass() : fail("after failed calls it answers differently");
  });
}

/// One round with failing allocations: create, use, destroy.
template <typename T>
Status try_once(Context& context, const Factory& factory, const OptionValues& options) {
  RawTable raw(sizeof(T));
  GR_TRY(call_plugin("create", nullptr, [&](gr_error_t* err) {
    return factory.create(factory.host, &options.abi(), raw.data(), err);
  }));
  raw.set_made();
  for (const Slot& slot : kind_info<T>().required) {
    if (!raw.filled(slot)) {
      return internal_error(std::string("create succeeds and leaves '") + slot.name + "' NULL");
    }
  }
  Use use;
  return use_instance(context, *static_cast<const T*>(raw.data()), &use).status();
}

// The step grows with the number, so that plugins with thousands of allocations are done in time.
Outcome failing_memory(Context& context, bool all_after) {
  if (!can_fail_allocations()) return not_applicable("this build has another malloc");
  CONFORM_ASSIGN(const Factory* factory, context.factory());
  CONFORM_ASSIGN(const OptionValues options, context.options());
  return with_table(factory->kind, [&]<typename T>(std::type_identity<T>) -> Outcome {
    CONFORM_TRY(try_once<T>(context, *factory, options));
    const auto begin = std::chrono::steady_clock::now();
    int64_t tried = 0;
    for (int64_t nth = 1;; nth += 1 + nth / 32) {
      std::fprintf(stderr, "[kit] allocation %ld fails\n", static_cast<long>(nth));
      fail_allocation(nth, all_after, reinterpret_cast<const void*>(factory->create));
      const Status status = try_once<T>(context, *factory, options);
      const bool failed = end_failing_allocations();
      ++tried;
      if (!failed) break;
      if (status.code() == GR_INTERNAL) {
        return fail(fmt::format("when allocation {} fails: {}; GR_OUT_OF_MEMORY wanted", nth,
                                status.message()));
      }
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (seconds > 10) break;
    }
    CONFORM_TRY(try_once<T>(context, *factory, options)
                    .with_context("after failed allocations it does not work any more"));
    Outcome outcome = pass();
    outcome.facts["allocation_failures"] = std::to_string(tried);
    return outcome;
  });
}

Outcome one_allocation(Context& context) { return failing_memory(context, false); }
Outcome all_allocations(Context& context) { return failing_memory(context, true); }

Outcome cancel(Context& context) {
  CONFORM_ASSIGN(const Factory* factory, context.factory());
  CONFORM_ASSIGN(const OptionValues options, context.options());
  return with_table(factory->kind, [&]<typename T>(std::type_identity<T>) -> Outcome {
    context.host().cancel(true);
    const Status stopped = try_once<T>(context, *factory, options);
    context.host().cancel(false);
    if (!stopped.ok() && stopped.code() != GR_CANCELLED) {
      return fail("asked to stop, it answers: " + stopped.message() + "; GR_CANCELLED wanted");
    }
    CONFORM_TRY(try_once<T>(context, *factory, options)
                    .with_context("after a call that was cancelled it does not work any more"));
    return pass();
  });
}

}  // namespace

void add_fault_cases(const Target&, std::vector<Case>* cases) {
  const auto add = [&](const char* id, const char* title, Outcome (*run)(Context&)) {
    cases->push_back({id, 2, title, run});
  };
  add("L2.failing_builder", "a builder call that fails comes back as its status", failing_builder);
  add("L2.failing_allocation", "an allocation that fails is GR_OUT_OF_MEMORY", one_allocation);
  add("L2.out_of_memory", "so is memory that stays short", all_allocations);
  add("L2.cancel", "asked to stop, it ends or says GR_CANCELLED", cancel);
}

}  // namespace gradrack::conform
