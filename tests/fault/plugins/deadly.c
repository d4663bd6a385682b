/* SPDX-License-Identifier: Apache-2.0
   Libraries that do not only answer wrongly but end, stop or disturb the process that loads them;
   the build chooses how with -DFAULT_<NAME>. Only the probe process may meet the first ones. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gradrack/gradrack.h"

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  (void)host, (void)options, (void)instance;
  return gr_fail(err, GR_UNSUPPORTED, "", "never made");
}

static void wrong_address(void) {
  volatile int* nowhere = (volatile int*)(size_t)8;
  *nowhere = 1;
}

#if defined(FAULT_CONSTRUCTOR_SIGILL)
__attribute__((constructor)) static void start(void) {
#if defined(__x86_64__) || defined(__i386__)
  __asm__ volatile("ud2");
#else
  raise(SIGILL);
#endif
}
#elif defined(FAULT_CONSTRUCTOR_ABORTS)
__attribute__((constructor)) static void start(void) {
  (void)fputs("[libprotobuf FATAL] file already exists in database\n", stderr);
  abort();
}
#endif

#if defined(FAULT_PROBE_SEGV)
static int32_t probe(const gr_host_t* host, gr_error_t* err) {
  (void)host, (void)err;
  wrong_address();
  return GR_OK;
}
#define PROBE probe
#else
#define PROBE NULL
#endif

#if defined(FAULT_NEEDS_NEIGHBOUR)
extern int32_t gradrack_test_neighbour(void);
#endif

#if defined(FAULT_ENTRY_STARTS_THREAD)
static void* work(void* nothing) {
  (void)pause();
  return nothing;
}
static void start_thread(void) {
  pthread_t thread;
  (void)pthread_create(&thread, NULL, work, NULL);
  (void)pthread_setname_np(thread, "early-bird");
}
#endif

static const gr_factory_t deadly = {sizeof(gr_factory_t),
                                    0,
                                    "optimizer",
                                    "deadly",
                                    "1.0.0",
                                    "for tests",
                                    NULL,
                                    0,
                                    0,
                                    PROBE,
                                    create};

static int32_t entry(const gr_host_t* host, gr_plugin_t* out, gr_error_t* err) {
  static const gr_factory_t* const table[] = {&deadly};
  (void)err, (void)wrong_address;
#if defined(FAULT_ENTRY_SEGV)
  wrong_address();
#elif defined(FAULT_ENTRY_HANGS)
  for (;;) (void)pause();
#elif defined(FAULT_ENTRY_EXITS)
  exit(7);
#elif defined(FAULT_ENTRY_EXITS_0)
  exit(0);
#elif defined(FAULT_ENTRY_STARTS_THREAD)
  start_thread();
#elif defined(FAULT_ENTRY_LEAVES_CHILD)
  if (fork() == 0) { /* holds the pipes open long after its parent ended */
    (void)sleep(60);
    _exit(0);
  }
#elif defined(FAULT_NEEDS_NEIGHBOUR)
  (void)gradrack_test_neighbour();
#elif defined(FAULT_NOISY)
  (void)printf("{\"code\": 0}\nstage in the attic\n");
  (void)fflush(stdout);
  (void)fputs("stage in the cellar\n", stderr);
  host->log(host->context, GR_LOG_WARN, "stage in the log");
#endif
  (void)host;
  out->abi_minor = 0;
  out->factory_count = 1;
  out->factories = table;
  out->id = "test.deadly";
  out->version = "1.0.0";
  return GR_OK;
}

GR_EXPORT extern const gr_plugin_header_t gradrack_plugin_v1;
const gr_plugin_header_t gradrack_plugin_v1 = {
    GR_PLUGIN_MAGIC, sizeof(gr_plugin_header_t), GR_ABI_MAJOR, 0, 0, entry};
