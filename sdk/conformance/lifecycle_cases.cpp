// SPDX-License-Identifier: Apache-2.0
// Level 2, one factory: instances come and go, live beside each other, and keep to thread roles.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/text.hpp"
#include "core/plugin/choose.hpp"
#include "core/plugin/threads.hpp"
#include "sdk/checked/checked.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/tables.hpp"
#include "sdk/conformance/use.hpp"

namespace gradrack::conform {
namespace {

size_t open_files() {
  size_t count = 0;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator("/proc/self/fd", error);
       at != std::filesystem::directory_iterator(); ++at) {
    ++count;
  }
  return count;
}

int64_t resident_bytes() {
  long total = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  const bool read = std::fscanf(file, "%ld %ld", &total, &resident) == 2;
  std::fclose(file);
  return read ? resident * 4096 : 0;
}

Outcome probe_case(Context& context) {
  CONFORM_ASSIGN(const Factory* factory, context.factory());
  if (factory->probe == nullptr) return not_applicable("it has no probe");
  const Status first = probe_plugin(*factory), second = probe_plugin(*factory);
  if (first.code() != second.code()) return fail("probe answers differently the second time");
  return outcome_of(first);  // GR_UNSUPPORTED never comes here: the case does not apply then
}

/// What a process holds: taken before and after some lives of a factory.
struct Holdings {
  size_t files = open_files();
  std::vector<ThreadName> threads = threads_alive();
  int64_t heap = heap_bytes();
  int64_t resident = resident_bytes();
};

// What `lives` instances, made and destroyed since `before`, leave behind, or "".
std::string left_since(const Holdings& before, int lives) {
  const int64_t heap_growth = heap_bytes() - before.heap;
  const int64_t growth = resident_bytes() - before.resident;
  const std::vector<ThreadName> more = threads_since(before.threads);
  if (!more.empty()) return "instances that were destroyed left " + thread_list(more);
  if (open_files() > before.files) return "instances that were destroyed left files open";
  // Less than a small block an instance may be the allocator's own.
  if (heap_growth > 32 * lives) {
    return fmt::format("{} instances made and destroyed leave {} bytes on the heap", lives,
                       heap_growth);
  }
  if (growth <= 64 * 1024 * 1024) return "";
  return fmt::format("{} instances made and destroyed leave {} more in memory", lives,
                     human_bytes(growth));
}

// Without Instance, which keeps what it checks in debug builds.
Outcome create_destroy(Context& context) {
  CONFORM_ASSIGN(const Factory* factory, context.factory());
  CONFORM_ASSIGN(const OptionValues options, context.options());
  return with_table(factory->kind, [&]<typename T>(std::type_identity<T>) -> Outcome {
    constexpr int kWarm = 10, kAll = 100;
    std::optional<Holdings> before;
    for (int k = 0; k < kAll; ++k) {
      if (k == kWarm) before.emplace();
      RawTable table(sizeof(T));
      CONFORM_TRY(call_plugin("create", nullptr, [&](gr_error_t* err) {
        return factory->create(factory->host, &options.abi(), table.data(), err);
      }));
      table.set_made();
    }
    const std::string left = left_since(*before, kAll - kWarm);
    return left.empty() ? pass() : fail(left);
  });
}

Outcome use_once(Context& context) {
  return with_table(context.target().kind, [&]<typename T>(std::type_identity<T>) -> Outcome {
    CONFORM_ASSIGN(const Instance<T> instance, context.make<T>());
    CONFORM_ASSIGN(const std::string first, use_instance(context, instance.table(), nullptr));
    CONFORM_ASSIGN(const std::string second, use_instance(context, instance.table(), nullptr));
    return first == second ? pass() : fail("the same calls give other answers the second time");
  });
}

Outcome two_instances(Context& context) {
  return with_table(context.target().kind, [&]<typename T>(std::type_identity<T>) -> Outcome {
    CONFORM_ASSIGN(Instance<T> first, context.make<T>());
    CONFORM_ASSIGN(const std::string alone, use_instance(context, first.table(), nullptr));
    std::string others;
    {
      CONFORM_ASSIGN(const Instance<T> second, context.make<T>());
      CONFORM_ASSIGN(others, use_instance(context, second.table(), nullptr));
      CONFORM_ASSIGN(const std::string beside, use_instance(context, first.table(), nullptr));
      if (beside != alone) return fail("a second instance changes what the first one answers");
    }
    if (others != alone) return fail("a second instance with equal options answers differently");
    CONFORM_ASSIGN(const std::string after, use_instance(context, first.table(), nullptr));
    return after == alone ? pass() : fail("the second one's end changes what the first answers");
  });
}

Outcome other_thread(Context& context) {
  return with_table(context.target().kind, [&]<typename T>(std::type_identity<T>) -> Outcome {
    CONFORM_ASSIGN(const Instance<T> instance, context.make<T>());
    CONFORM_ASSIGN(const std::string here, use_instance(context, instance.table(), nullptr));
    Result<std::string> there = internal_error("not run");
    std::thread thread([&] {
      const ThreadRole role(GR_THREAD_PLAN | GR_THREAD_EXEC);
      there = use_instance(context, instance.table(), nullptr);
    });
    thread.join();
    CONFORM_TRY(there.status());
    return *there == here ? pass() : fail("another thread gets other answers");
  });
}

// Every call in both directions through the checked tables: what the plugin asks of its host, on
// which thread, and whether it keeps a builder beyond the call it was given for.
Outcome thread_roles(Context& context) {
  std::mutex mutex;
  std::vector<std::string> broken;
  const ViolationSink sink = [&](const Violation& violation) {
    const std::lock_guard lock(mutex);
    broken.push_back((violation.by_plugin ? "plugin: " : "kit: ") + violation.message);
  };
  CONFORM_ASSIGN(const Factory* factory, context.factory());
  CONFORM_ASSIGN(const OptionValues options, context.options());
  const gr_host_t* host = checked(context.host().get(), sink);
  const Outcome outcome =
      with_table(factory->kind, [&]<typename T>(std::type_identity<T>) -> Outcome {
        RawTable raw(sizeof(T));
        CONFORM_TRY(call_plugin("create", nullptr, [&](gr_error_t* err) {
          return factory->create(host, &options.abi(), raw.data(), err);
        }));
        raw.set_made();
        T plain = *static_cast<const T*>(raw.data());
        plain.destroy = [](void*) {};  // raw ends it
        const T* table = checked(&plain, sink);
        return outcome_of(use_instance(context, *table, nullptr).status());
      });
  const std::lock_guard lock(mutex);
  return broken.empty() ? outcome : fail(join(broken, "\n"));
}

Outcome no_extensions(Context& context) {
  context.host().offer_extensions(false);
  return use_once(context);
}

Outcome unknown_extension(Context& context) {
  return with_table(context.target().kind, [&]<typename T>(std::type_identity<T>) -> Outcome {
    CONFORM_ASSIGN(const Instance<T> instance, context.make<T>());
    const T& table = instance.table();
    if (table.get_extension == nullptr) return not_applicable("it has no get_extension");
    for (const char* id : {"com.example.none/1", "gr.none/77", ""}) {
      if (table.get_extension(table.self, id) != nullptr) {
        return fail(std::string("it has an extension '") + id + "'");
      }
    }
    return pass();
  });
}

// Values at the ends of what an option declares, as "option=value".
std::vector<std::string> extremes(const gr_option_t& option) {
  const std::string name = std::string(option.name) + "=";
  const auto number = [](double value, bool whole) {
    return whole ? std::to_string(static_cast<int64_t>(value)) : fmt::format("{:.17g}", value);
  };
  std::vector<std::string> sets;
  const bool whole = option.type == GR_OPTION_INT || option.type == GR_OPTION_INT_LIST;
  const double low = std::isfinite(option.min) ? option.min : (whole ? -1e15 : -1e30);
  const double high = std::isfinite(option.max) ? option.max : (whole ? 1e15 : 1e30);
  switch (option.type) {
    case GR_OPTION_BOOL:
      return {name + "true", name + "false"};
    case GR_OPTION_INT:
    case GR_OPTION_FLOAT:
      return {name + number(low, whole), name + number(high, whole)};
    case GR_OPTION_STRING:
    case GR_OPTION_PATH:
      if (option.choices == nullptr) return {name + "''", name + "/no/such/file", name + "'%s%n'"};
      for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
        const std::string all = option.choices;
        end = all.find('|', at);
        sets.push_back(name + all.substr(at, end - at));
      }
      return sets;
    default:
      break;
  }
  if (option.type == GR_OPTION_STRING_LIST) return {name + "[]", name + "['', x]"};
  const auto list = [&](double value) {
    const int length = option.list_length > 0 ? option.list_length : 3;
    return name + "[" +
           join(std::vector<std::string>(static_cast<size_t>(length), number(value, whole))) + "]";
  };
  return {list(low), list(high)};
}

// A plugin may refuse what its options cannot be together, or do as they say: nothing else.
Outcome extreme_options(Context& context) {
  CONFORM_ASSIGN(const Factory* factory, context.factory());
  if (factory->options.empty()) return not_applicable("it has no options");
  return with_table(factory->kind, [&]<typename T>(std::type_identity<T>) -> Outcome {
    for (const gr_option_t& option : factory->options) {
      for (const std::string& set : extremes(option)) {
        std::vector<std::string> sets = context.settings().sets;
        sets.push_back(set);
        const auto values = option_values(*factory, sets);
        if (!values.ok()) continue;  // an exclusive end, say: the host refuses it
        std::fprintf(stderr, "[kit] create with %s\n", set.c_str());
        RawTable table(sizeof(T));
        Use use;
        const Status status = call_plugin("create", &use, [&](gr_error_t* err) {
          return factory->create(factory->host, &values->abi(), table.data(), err);
        });
        if (status.ok()) table.set_made();
        if (status.code() == GR_INTERNAL) return fail("with " + set + ": " + status.message());
      }
    }
    return pass();
  });
}

}  // namespace

void add_lifecycle_cases(const Target&, std::vector<Case>* cases) {
  const auto add = [&](const char* id, const char* title, Outcome (*run)(Context&)) {
    cases->push_back({id, 2, title, run});
  };
  add("L2.probe", "probe answers the same twice", probe_case);
  add("L2.create_destroy", "100 instances leave no thread, file or memory", create_destroy);
  add("L2.use", "the same calls twice, the same answers", use_once);
  add("L2.two_instances", "two instances do not touch each other", two_instances);
  add("L2.other_thread", "calls from another thread", other_thread);
  add("L2.thread_roles", "calls in both directions keep to their thread roles", thread_roles);
  add("L2.no_extensions", "it works without any extension of the host", no_extensions);
  add("L2.unknown_extension", "it has no extension that nobody defined", unknown_extension);
  add("L2.extreme_options", "the ends of every option are taken or refused in words",
      extreme_options);
}

}  // namespace gradrack::conform
