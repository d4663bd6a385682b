/* SPDX-License-Identifier: Apache-2.0
   A library with one fault of its own, chosen by a macro: what the conformance kit has to notice
   about entry, stop and the process. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "gradrack/lr_schedule.h"

static int32_t value(void* self, const gr_lr_request_t* request, double* lr, gr_error_t* err) {
  (void)self, (void)err;
  *lr = request->base_lr;
  return GR_OK;
}

#if defined(FAULT_ENTRY_THREAD) || defined(FAULT_STOP_LEAVES)
static void* wait_for_ever(void* unused) {
  for (;;) (void)sleep(1000);
  return unused;
}
static void start_thread(void) {
  static int32_t started;
  pthread_t thread;
  if (started++ == 0 && pthread_create(&thread, NULL, wait_for_ever, NULL) == 0) {
    (void)pthread_detach(thread);
  }
}
#endif

static void destroy(void* self) { (void)self; }

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  gr_lr_schedule_t* table = (gr_lr_schedule_t*)instance;
  (void)host, (void)options, (void)err;
#ifdef FAULT_STOP_LEAVES
  start_thread();
#endif
  table->self = table;
  table->destroy = destroy;
  table->value = value;
  return GR_OK;
}

static int32_t stop(int64_t deadline_ns, gr_error_t* err) {
  (void)deadline_ns, (void)err;
#ifdef FAULT_STOP_SLOW
  (void)sleep(3);
#endif
  return GR_OK;
}

#ifdef FAULT_EXIT
__attribute__((destructor)) static void last_words(void) { abort(); }
#endif
#ifdef FAULT_EXTRA_EXPORT
GR_EXPORT int32_t something_else(void);
int32_t something_else(void) { return 7; }
#endif

#ifdef FAULT_NO_HELP
#define HELP ""
#else
#define HELP "for tests"
#endif
static const gr_factory_t factory = {
    sizeof(gr_factory_t), 0, "lr_schedule", "plain", "1.0.0", HELP, NULL, 0, 0, NULL, create};

static int32_t enter(const gr_host_t* host, gr_plugin_t* out, gr_error_t* err) {
  static const gr_factory_t* const table[] = {&factory};
#if defined(FAULT_ANY_HOST)
  (void)host, (void)err;
  out->abi_minor = GR_ABI_MAX_MINOR;
#elif defined(FAULT_NEWEST_OF_HOST)
  int32_t status = gr_negotiate(host, &out->abi_minor, err);
  if (status != GR_OK) return status;
  out->abi_minor = host->abi_max_minor;
#else
  int32_t status = gr_negotiate(host, &out->abi_minor, err);
  if (status != GR_OK) return status;
#endif
  out->factory_count = 1;
  out->factories = table;
  out->id = "test.wrong_library";
  out->version = "1.0.0";
#ifdef FAULT_ANSWER_PAST
  out->stop = stop;
#else
  if (GR_HAS(out, stop)) out->stop = stop;
#endif
#ifdef FAULT_ANSWER_BEYOND
  if (out->struct_size > sizeof *out) memset(out + 1, 1, out->struct_size - sizeof *out);
#endif
#ifdef FAULT_ENTRY_THREAD
  start_thread();
#endif
#ifdef FAULT_ENTRY_COUNTS
  static int32_t calls;
  static char version[16];
  (void)snprintf(version, sizeof version, "1.0.%d", (int)calls++);
  out->version = version;
#endif
  return GR_OK;
}

GR_EXPORT extern const gr_plugin_header_t gradrack_plugin_v1;
const gr_plugin_header_t gradrack_plugin_v1 = {GR_PLUGIN_MAGIC,  sizeof(gr_plugin_header_t),
                                               GR_ABI_MAJOR,     GR_ABI_MIN_MINOR,
                                               GR_ABI_MAX_MINOR, enter};
