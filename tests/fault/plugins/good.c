/* SPDX-License-Identifier: Apache-2.0
   A library that does everything right, with factories for each way that a chain can go. */
#include <stdlib.h>

#include "gradrack/gradrack.h"

static int32_t value(void* self, const gr_lr_request_t* request, double* lr, gr_error_t* err) {
  (void)err;
  *lr = request->base_lr * *(const double*)self;
  return GR_OK;
}

/* Counts what is alive, so that a test can see destroy being called once. */
static int32_t alive;
static void destroy(void* self) {
  --alive;
  free(self);
}

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  gr_lr_schedule_t* table = (gr_lr_schedule_t*)instance;
  double* factor = (double*)malloc(sizeof *factor);
  (void)err;
  *factor = gr_options_find(options, "factor")->f;
  table->self = factor;
  table->destroy = destroy;
  table->value = value;
  host->log(host->context, GR_LOG_DEBUG, host->get_extension(host->context, "x/1") ? "?" : "made");
  ++alive;
  return GR_OK;
}

/* Answers the number of living instances as a failure's text. */
static int32_t count(const gr_host_t* host, const gr_options_t* options, void* instance,
                     gr_error_t* err) {
  char text[32];
  (void)host, (void)options, (void)instance;
  (void)snprintf(text, sizeof text, "alive %d", (int)alive);
  return gr_fail(err, GR_FAILED_PRECONDITION, "", text);
}

static int32_t no_device(const gr_host_t* host, gr_error_t* err) {
  (void)host;
  return gr_fail(err, GR_UNSUPPORTED, "", "no device of this kind");
}

static int32_t broken_device(const gr_host_t* host, gr_error_t* err) {
  (void)host;
  return gr_fail(err, GR_IO, "", "the device answers nonsense");
}

static int32_t refuse(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  (void)host, (void)options, (void)instance;
  return gr_fail(err, GR_UNSUPPORTED, "", "not in this build");
}

static int32_t complain(const gr_host_t* host, const gr_options_t* options, void* instance,
                        gr_error_t* err) {
  (void)host, (void)options, (void)instance;
  return gr_fail(err, GR_INVALID_ARGUMENT, "factor", "does not fit");
}

static int32_t odd_status(const gr_host_t* host, const gr_options_t* options, void* instance,
                          gr_error_t* err) {
  (void)host, (void)options, (void)instance, (void)err;
  return 77;
}

/* destroy is there, value is not. */
static int32_t half_made(const gr_host_t* host, const gr_options_t* options, void* instance,
                         gr_error_t* err) {
  int32_t status = create(host, options, instance, err);
  ((gr_lr_schedule_t*)instance)->value = NULL;
  return status;
}

static const gr_option_t options[] = {GR_OPT_FLOAT("factor", "1", 0, 10, "times the base rate")};
static const gr_option_t threads[] = {GR_OPT_INT("threads", "1", 1, 64, "worker threads")};

#define FACTORY(name, probe, create)                                                \
  {                                                                                 \
    sizeof(gr_factory_t), 0, "lr_schedule", name, "1.0.0", "for tests", options, 1, \
        sizeof(gr_option_t), probe, create                                          \
  }
static const gr_factory_t good = FACTORY("good", NULL, create);
static const gr_factory_t counter = FACTORY("counter", NULL, count);
static const gr_factory_t absent = FACTORY("absent", no_device, create);
static const gr_factory_t sick = FACTORY("sick", broken_device, create);
static const gr_factory_t refusing = FACTORY("refusing", NULL, refuse);
static const gr_factory_t complaining = FACTORY("complaining", NULL, complain);
static const gr_factory_t odd = FACTORY("odd", NULL, odd_status);
static const gr_factory_t half = FACTORY("half", NULL, half_made);
static const gr_factory_t quick = {
    sizeof(gr_factory_t), 0,    "backend", "quick", "1.0.0", "never made", threads, 1,
    sizeof(gr_option_t),  NULL, refuse};
static const gr_factory_t slow = {
    sizeof(gr_factory_t), 0, "backend", "slow", "1.0.0", "never made", NULL, 0, 0, NULL, refuse};

GR_PLUGIN("test.good", "1.0.0", &good, &counter, &absent, &sick, &refusing, &complaining, &odd,
          &half, &quick, &slow);
