// SPDX-License-Identifier: Apache-2.0
// Level 2, the library as a whole: threads it starts too early or leaves behind, stop(), exit.
#include <chrono>
#include <cstdio>

#include "core/plugin/choose.hpp"
#include "core/plugin/threads.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/tables.hpp"
#include "sdk/conformance/use.hpp"

namespace gradrack::conform {
namespace {

constexpr int64_t kStopDeadlineNs = INT64_C(2000000000);

Outcome early_threads(Context& context) {
  const std::vector<ThreadName> before = threads_alive();
  CONFORM_ASSIGN(Subject * subject, context.subject());
  std::vector<ThreadName> more = threads_since(before);
  if (!more.empty()) return fail("loading the library starts " + thread_list(more));
  CONFORM_ASSIGN(const gr_plugin_t* plugin, context.entered());
  more = threads_since(before);
  if (!more.empty()) return fail("entry starts " + thread_list(more));
  CONFORM_ASSIGN(const std::vector<Factory> factories,
                 subject->factories(*plugin, context.host().get()));
  for (const Factory& factory : factories) {
    (void)probe_plugin(factory);
    more = threads_since(before);
    if (more.empty()) continue;
    return fail("the probe of " + factory.kind + " '" + factory.name + "' leaves " +
                thread_list(more));
  }
  return pass();
}

// Makes, uses and destroys one instance of each factory that works here.
Status use_all(Context& context) {
  GR_ASSIGN(Subject * subject, context.subject());
  GR_ASSIGN(const gr_plugin_t* plugin, context.entered());
  GR_ASSIGN(const std::vector<Factory> factories,
            subject->factories(*plugin, context.host().get()));
  for (const Factory& factory : factories) {
    auto options = option_values(factory, context.settings().sets);
    if (!options.ok() || !probe_plugin(factory).ok()) continue;
    const Outcome outcome =
        with_table(factory.kind, [&]<typename T>(std::type_identity<T>) -> Outcome {
          CONFORM_ASSIGN(const Instance<T> instance,
                         Instance<T>::create(factory, std::move(*options)));
          return outcome_of(use_instance(context, instance.table(), nullptr).status());
        });
    if (outcome.verdict == Verdict::kFail) std::fprintf(stderr, "[kit] %s\n", outcome.text.c_str());
  }
  return {};
}

Status stop(const gr_plugin_t& plugin) {
  if (plugin.stop == nullptr) return {};
  const auto begin = std::chrono::steady_clock::now();
  GR_TRY(call_plugin("stop", nullptr,
                     [&](gr_error_t* err) { return plugin.stop(kStopDeadlineNs, err); }));
  const auto took = std::chrono::steady_clock::now() - begin;
  if (took <= std::chrono::nanoseconds(kStopDeadlineNs)) return {};
  return internal_error("stop returns after its deadline of 2 s");
}

Outcome stops(Context& context) {
  const std::vector<ThreadName> before = threads_alive();
  CONFORM_TRY(use_all(context));
  CONFORM_ASSIGN(const gr_plugin_t* plugin, context.entered());
  CONFORM_TRY(stop(*plugin));
  const std::vector<ThreadName> more = threads_since(before);
  if (more.empty()) return pass();
  return fail("when its instances are destroyed" +
              std::string(plugin->stop != nullptr ? " and stop() has returned " : " ") +
              thread_list(more) + " of it is left" +
              (plugin->stop != nullptr ? ": join it in stop()" : ": join it, or offer stop()"));
}

Outcome stops_unused(Context& context) {
  CONFORM_ASSIGN(const gr_plugin_t* plugin, context.entered());
  if (plugin->stop == nullptr) return not_applicable("it has no stop()");
  return outcome_of(stop(*plugin));
}

Outcome exits(Context& context) {
  CONFORM_TRY(use_all(context));
  CONFORM_ASSIGN(const gr_plugin_t* plugin, context.entered());
  return outcome_of(stop(*plugin));
}

}  // namespace

void add_process_cases(const Target&, std::vector<Case>* cases) {
  cases->push_back(
      {"L2.early_threads", 2, "loading, entry and probe start no thread", early_threads});
  cases->push_back({"L2.stop", 2, "after stop() no thread of it is left", stops});
  cases->push_back({"L2.stop_unused", 2, "stop() without any instance before", stops_unused});
  Case last{"L2.exit", 2, "a process that used it ends well", exits};
  last.must_exit = true;
  cases->push_back(std::move(last));
}

}  // namespace gradrack::conform
