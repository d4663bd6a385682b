/* SPDX-License-Identifier: Apache-2.0
   Learning-rate schedules with one fault each, named after it: what the conformance kit has to
   notice about a factory and its instances. `right` has none. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "gradrack/extensions.h"
#include "gradrack/lr_schedule.h"

static const gr_option_t options[] = {GR_OPT_FLOAT("factor", "1", 0, 10, "times the base rate")};

static int32_t right_value(void* self, const gr_lr_request_t* request, double* lr,
                           gr_error_t* err) {
  (void)err;
  *lr = request->base_lr * *(const double*)self;
  return GR_OK;
}

static int32_t make(const gr_options_t* given, void* instance, gr_error_t* err,
                    int32_t (*value)(void*, const gr_lr_request_t*, double*, gr_error_t*)) {
  gr_lr_schedule_t* table = (gr_lr_schedule_t*)instance;
  double* factor = (double*)malloc(sizeof *factor);
  if (factor == NULL) return gr_fail(err, GR_OUT_OF_MEMORY, "", "out of memory");
  *factor = gr_options_find(given, "factor")->f;
  table->self = factor;
  table->destroy = free;
  table->value = value;
  return GR_OK;
}

#define PROBE(name) static int32_t name##_probe(const gr_host_t* host, gr_error_t* err)
#define VALUE(name)                                                                   \
  static int32_t name##_value(void* self, const gr_lr_request_t* request, double* lr, \
                              gr_error_t* err)
#define CREATE(name)                                                                             \
  static int32_t name##_create(const gr_host_t* host, const gr_options_t* given, void* instance, \
                               gr_error_t* err)
#define CREATE_WITH(name, body)                     \
  CREATE(name) {                                    \
    (void)host;                                     \
    body;                                           \
    return make(given, instance, err, right_value); \
  }
/* A fault in value alone. */
#define VALUE_ONLY(name)                             \
  CREATE(name) {                                     \
    (void)host;                                      \
    return make(given, instance, err, name##_value); \
  }

CREATE_WITH(right, (void)0)

VALUE(nan) {
  (void)self, (void)err;
  *lr = request->update == 7 ? (double)NAN : request->base_lr;
  return GR_OK;
}
VALUE_ONLY(nan)

VALUE(counts) {
  static int32_t calls;
  (void)self, (void)err;
  *lr = request->base_lr / ++calls;
  return GR_OK;
}
VALUE_ONLY(counts)

VALUE(by_thread) {
  static _Thread_local int32_t known;
  static pthread_t first;
  (void)self, (void)err;
  if (first == 0) first = pthread_self();
  known = pthread_equal(first, pthread_self());
  *lr = known ? request->base_lr : request->base_lr / 2;
  return GR_OK;
}
VALUE_ONLY(by_thread)

VALUE(grows) {
  (void)self, (void)err, (void)request;
  *lr = 1e9;
  return GR_OK;
}
VALUE_ONLY(grows)

VALUE(ends) {
  (void)self;
  if (request->update >= request->max_updates) {
    return gr_fail(err, GR_OUT_OF_RANGE, "update", "beyond the horizon");
  }
  *lr = request->base_lr;
  return GR_OK;
}
VALUE_ONLY(ends)

VALUE(hangs) {
  (void)self, (void)request, (void)lr, (void)err;
  for (;;) (void)sleep(1);
  return GR_OK;
}
VALUE_ONLY(hangs)

VALUE(crashes) {
  (void)self, (void)request, (void)err;
  *(volatile int32_t*)8 = (int32_t)*lr;
  return GR_OK;
}
VALUE_ONLY(crashes)

VALUE(silent) {
  (void)self, (void)request, (void)lr, (void)err;
  return GR_IO;
}
VALUE_ONLY(silent)

/* The host's table may be shorter. */
static const void* no_extension(void* self, const char* id) {
  (void)self, (void)id;
  return NULL;
}
CREATE(past_the_end) {
  int32_t status = make(given, instance, err, right_value);
  (void)host;
  ((gr_lr_schedule_t*)instance)->get_extension = no_extension;
  return status;
}

/* ... or longer, with members that this plugin knows nothing of. */
CREATE(beyond_its_own) {
  int32_t status = make(given, instance, err, right_value);
  gr_lr_schedule_t* table = (gr_lr_schedule_t*)instance;
  (void)host;
  if (table->struct_size > sizeof *table) memset(table + 1, 1, table->struct_size - sizeof *table);
  return status;
}

CREATE(half_made) {
  (void)host;
  return make(given, instance, err, NULL);
}

static const void* any_extension(void* self, const char* id) {
  (void)id;
  return self;
}
CREATE(any_extension) {
  int32_t status = make(given, instance, err, right_value);
  (void)host;
  if (GR_HAS((gr_lr_schedule_t*)instance, get_extension)) {
    ((gr_lr_schedule_t*)instance)->get_extension = any_extension;
  }
  return status;
}

static void* volatile leaked;
CREATE_WITH(leaks_memory, leaked = malloc(4096))
CREATE_WITH(leaks_files, (void)open("/dev/null", O_RDONLY))

static void* wait_for_ever(void* unused) {
  for (;;) (void)sleep(1000);
  return unused;
}
static void start_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, wait_for_ever, NULL) == 0) (void)pthread_detach(thread);
}
CREATE_WITH(leaks_threads, start_thread())

static double* volatile shared;
VALUE(shares) {
  (void)self, (void)err;
  *lr = request->base_lr * *shared;
  return GR_OK;
}
CREATE(shares) {
  static double content;
  (void)host;
  content += gr_options_find(given, "factor")->f;
  shared = &content;
  return make(given, instance, err, shares_value);
}

CREATE(trusts_malloc) {
  gr_lr_schedule_t* table = (gr_lr_schedule_t*)instance;
  double* factor = (double*)malloc(sizeof *factor);
  (void)host, (void)err;
  *(volatile double*)factor = gr_options_find(given, "factor")->f;
  table->self = factor;
  table->destroy = free;
  table->value = right_value;
  return GR_OK;
}

CREATE(needs_cancel) {
  if (host->get_extension(host->context, GR_EXT_CANCEL) == NULL) {
    return gr_fail(err, GR_FAILED_PRECONDITION, "", "the host cannot cancel");
  }
  return make(given, instance, err, right_value);
}

CREATE(cancels_badly) {
  const gr_cancel_t* cancel = (const gr_cancel_t*)host->get_extension(host->context, GR_EXT_CANCEL);
  if (cancel != NULL && cancel->cancelled(cancel->context)) {
    return gr_fail(err, GR_INTERNAL, "", "somebody wants something");
  }
  return make(given, instance, err, right_value);
}

CREATE(dislikes_ends) {
  (void)host;
  if (gr_options_find(given, "factor")->f >= 10) return 77;
  return make(given, instance, err, right_value);
}

PROBE(flips) {
  static int32_t calls;
  (void)host;
  return ++calls % 2 != 0 ? GR_OK : gr_fail(err, GR_IO, "", "sometimes");
}
CREATE_WITH(flips, (void)0)

#define FACTORY(fault, probe)                                                               \
  static const gr_factory_t fault##_factory = {                                             \
      sizeof(gr_factory_t), 0,     "lr_schedule", #fault, "1.0.0", "for tests", options, 1, \
      sizeof(gr_option_t),  probe, fault##_create};
FACTORY(right, NULL)
FACTORY(nan, NULL)
FACTORY(counts, NULL)
FACTORY(by_thread, NULL)
FACTORY(grows, NULL)
FACTORY(ends, NULL)
FACTORY(hangs, NULL)
FACTORY(crashes, NULL)
FACTORY(silent, NULL)
FACTORY(past_the_end, NULL)
FACTORY(beyond_its_own, NULL)
FACTORY(half_made, NULL)
FACTORY(any_extension, NULL)
FACTORY(leaks_memory, NULL)
FACTORY(leaks_files, NULL)
FACTORY(leaks_threads, NULL)
FACTORY(shares, NULL)
FACTORY(trusts_malloc, NULL)
FACTORY(needs_cancel, NULL)
FACTORY(cancels_badly, NULL)
FACTORY(dislikes_ends, NULL)
FACTORY(flips, flips_probe)

GR_PLUGIN("test.wrong_rates", "1.0.0", &right_factory, &nan_factory, &counts_factory,
          &by_thread_factory, &grows_factory, &ends_factory, &hangs_factory, &crashes_factory,
          &silent_factory, &past_the_end_factory, &beyond_its_own_factory, &half_made_factory,
          &any_extension_factory, &leaks_memory_factory, &leaks_files_factory,
          &leaks_threads_factory, &shares_factory, &trusts_malloc_factory, &needs_cancel_factory,
          &cancels_badly_factory, &dislikes_ends_factory, &flips_factory);
