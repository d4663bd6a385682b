// SPDX-License-Identifier: Apache-2.0
// The end of plugins: see lifecycle.hpp.
#include "core/plugin/lifecycle.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/log.hpp"
#include "core/plugin/check_calls.hpp"
#include "core/plugin/runtimes.hpp"
#include "core/plugin/threads.hpp"

namespace gradrack {
namespace {

struct Entered {
  std::string path;
  const gr_host_t* host = nullptr;
  int32_t (*stop)(int64_t, gr_error_t*) = nullptr;
  int64_t instances = 0;
};

struct Entries {
  std::mutex mutex;
  std::vector<Entered> libraries;  // in the order of loading
  bool stopped = false;
};

// Leaked: an instance that a static object owns may be destroyed while the process ends.
Entries& entries() {
  static auto* all = new Entries;
  return *all;
}

void count_instance(const std::string& path, int64_t change) {
  Entries& all = entries();
  const std::lock_guard lock(all.mutex);
  for (Entered& library : all.libraries) {
    if (library.path == path) library.instances += change;
  }
}

void tell(EventSink& events, const char* kind, Level level, const std::string& path,
          const std::string& message) {
  events.emit({kind, level, "plugin library " + path + ": " + message, {{"path", path}}});
}

// Threads other than the caller and `helper`.
std::vector<ThreadName> others(pid_t helper) {
  const pid_t self = gettid();
  return threads_since({{self, ""}, {helper, ""}});
}

/// Ends the process when a call takes too long. Its thread is gone once it was disarmed.
class Watchdog {
 public:
  Watchdog(const Entered& library, int64_t deadline_ms, int exit_code, EventSink& events)
      : main_(gettid()),
        thread_([=, this, &library, &events] { watch(library, deadline_ms, exit_code, events); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  void watch(const Entered& library, int64_t deadline_ms, int exit_code, EventSink& events) {
    std::unique_lock lock(mutex_);
    const auto limit = std::chrono::milliseconds(deadline_ms);
    if (wake_.wait_for(lock, limit, [this] { return done_; })) return;
    std::vector<ThreadName> alive = others(main_);
    const std::string threads = alive.empty() ? "no thread of its own" : thread_list(alive);
    tell(events, "stop_overdue", Level::kWarn, library.path,
         "its stop did not return within " + std::to_string(deadline_ms) +
             " ms; alive: " + threads + "; the process ends without it");
    _exit(exit_code);
  }

  const pid_t main_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

Status call_stop(const Entered& library, int64_t deadline_ms) {
  gr_error_t err = {};
  try {
    return status_from(library.stop(deadline_ms * 1000000, &err), err);
  } catch (...) {
    return internal_error("it threw an exception across the C interface");
  }
}

void stop_one(const Entered& library, int64_t deadline_ms, int exit_code, EventSink& events) {
  if (library.instances != 0) {
    tell(events, "instances_left", Level::kError, library.path,
         std::to_string(library.instances) +
             " instances are alive at the end, so it is not stopped: a bug of gradrack");
    return;
  }
  if (library.stop != nullptr) {
    const Watchdog watchdog(library, deadline_ms, exit_code, events);
    const Status status = call_stop(library, deadline_ms);
    if (!status.ok()) {
      tell(events, "stop_failed", Level::kWarn, library.path,
           "its stop failed: " + status.message());
    }
  }
  if constexpr (kCheckedCalls) end_checked(library.host);  // a call from a thread left is told
}

// Workers of an OpenMP runtime wait for work until the process ends, under the program's own name.
bool is_openmp_pool(const std::vector<ThreadName>& threads) {
  const std::vector<Runtime> runtimes = mapped_runtimes();
  const bool openmp = std::any_of(runtimes.begin(), runtimes.end(),
                                  [](const Runtime& r) { return r.kind == "OpenMP"; });
  const std::vector<ThreadName> all = threads_alive();
  const auto self = std::find_if(all.begin(), all.end(),
                                 [](const ThreadName& thread) { return thread.id == getpid(); });
  return openmp && self != all.end() &&
         std::all_of(threads.begin(), threads.end(),
                     [&](const ThreadName& thread) { return thread.name == self->name; });
}

}  // namespace

void library_entered(const std::string& path, const gr_host_t* host,
                     int32_t (*stop)(int64_t, gr_error_t*)) {
  Entries& all = entries();
  const std::lock_guard lock(all.mutex);
  for (const Entered& library : all.libraries) {
    if (library.path == path) return;
  }
  all.libraries.push_back({path, host, stop, 0});
}

void instance_made(const std::string& library_path) { count_instance(library_path, 1); }
void instance_gone(const std::string& library_path) { count_instance(library_path, -1); }

Status plugins_still_run() {
  Entries& all = entries();
  const std::lock_guard lock(all.mutex);
  if (!all.stopped) return {};
  return Status(GR_FAILED_PRECONDITION, "plugins were stopped: nothing may call them any more")
      .in_area(Area::kPlugin);
}

PluginEnd stop_plugins(int64_t deadline_ms, int exit_code, EventSink& events) {
  std::vector<Entered> libraries;
  {
    Entries& all = entries();
    const std::lock_guard lock(all.mutex);
    if (all.stopped) return {};
    all.stopped = true;
    libraries.assign(all.libraries.rbegin(), all.libraries.rend());
  }
  if (libraries.empty()) return {};
  for (const Entered& library : libraries) stop_one(library, deadline_ms, exit_code, events);
  const std::vector<ThreadName> left = others(0);
  if (left.empty()) return {};
  const bool pool = is_openmp_pool(left);
  events.emit({"threads_left",
               pool ? Level::kDebug : Level::kWarn,
               "plugins left " + thread_list(left) +
                   " running after their stop: a library joins its threads in stop",
               {{"threads", thread_list(left)}}});
  return {!pool};
}

int end_plugins(int exit_code) {
  EventSink events;
  events.add(log_event);
  if (stop_plugins(kStopDeadlineMs, exit_code, events).threads_left) _exit(exit_code);
  return exit_code;
}

}  // namespace gradrack
