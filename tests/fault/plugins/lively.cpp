// SPDX-License-Identifier: Apache-2.0
// A library with a life of its own: a worker thread, and objects per thread with destructors that
// use static data of the library. Linked without -z nodelete, so only the host keeps it mapped.
//
// lr_schedule `lively`; the option `manner` says how it ends, `trace` names a file that gets one
// line for each call, so that a test sees their order. Invariant: with manner `good`, stop joins
// the worker and nothing is left.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "gradrack/gradrack.h"

namespace {

std::string& words() {  // gone after the exit handlers of this library
  static std::string text = "long enough to live on the heap, and to be freed by a destructor";
  return text;
}

struct PerThread {
  std::string kept = words();
  ~PerThread() {
    if (kept != words()) std::abort();
  }
};
thread_local PerThread per_thread;

std::string trace_file;
std::string manner;
std::atomic<bool> ending{false};
std::atomic<int64_t> turns{0};
std::thread* worker;

void trace(const char* what) {
  if (trace_file.empty()) return;
  if (FILE* file = std::fopen(trace_file.c_str(), "a")) {
    (void)std::fprintf(file, "%s\n", what);
    (void)std::fclose(file);
  }
}

void work() {
  (void)pthread_setname_np(pthread_self(), "lively-worker");
  while (!ending) {
    turns += static_cast<int64_t>(per_thread.kept.size() + words().size());
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

int32_t value(void*, const gr_lr_request_t* request, double* lr, gr_error_t* err) {
  if (manner == "fails" && request->update == 1) {
    return gr_fail(err, GR_FAILED_PRECONDITION, "lively", "failed as it was asked to");
  }
  *lr = request->base_lr * (per_thread.kept == words() ? 1.0 : 0.0);
  return GR_OK;
}

void destroy(void*) { trace("destroy"); }

int32_t create(const gr_host_t*, const gr_options_t* options, void* instance, gr_error_t*) {
  manner = gr_options_find(options, "manner")->s;
  trace_file = gr_options_find(options, "trace")->s;
  trace("create");
  if (worker == nullptr) worker = new std::thread(work);
  auto* table = static_cast<gr_lr_schedule_t*>(instance);
  table->self = &ending;
  table->destroy = destroy;
  table->value = value;
  return GR_OK;
}

int32_t stop(int64_t deadline_ns, gr_error_t* err) {
  trace(deadline_ns > 0 ? "stop" : "stop without a deadline");
  if (manner == "leaks") return GR_OK;
  if (manner == "refuses") return gr_fail(err, GR_INTERNAL, "", "it will not");
  if (manner == "throws") throw std::runtime_error("thrown from stop");
  while (manner == "hangs") (void)usleep(1000);
  ending = true;
  if (worker != nullptr) worker->join();
  delete worker;
  worker = nullptr;
  return GR_OK;
}

const gr_option_t kOptions[] = {
    GR_OPT_CHOICE("manner", "good", "good|fails|leaks|refuses|throws|hangs", "how it ends"),
    GR_OPT_STRING("trace", "", "file for one line a call")};
const gr_factory_t kLively = {
    sizeof(gr_factory_t), 0,       "lr_schedule", "lively", "1.0.0", "for tests", kOptions, 2,
    sizeof(gr_option_t),  nullptr, create};

}  // namespace

GR_PLUGIN_WITH_STOP("test.lively", "1.0.0", stop, &kLively);
