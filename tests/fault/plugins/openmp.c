/* SPDX-License-Identifier: Apache-2.0
   lr_schedules that need an OpenMP runtime: -DNAME chooses the plugin's name. With -fopenmp the
   rate is the sum 1 + ... + 1,000,000 made by all threads; else a runtime of the tests' own is
   called (runtime.c). */
#include "gradrack/gradrack.h"

#if !defined(_OPENMP)
extern int32_t gradrack_test_runtime(void);
#endif

static int32_t value(void* self, const gr_lr_request_t* request, double* lr, gr_error_t* err) {
  int64_t sum = 0;
  (void)self, (void)request, (void)err;
#if defined(_OPENMP)
#pragma omp parallel for reduction(+ : sum)
  for (int64_t k = 1; k <= 1000000; ++k) sum += k;
#else
  sum = gradrack_test_runtime();
#endif
  *lr = (double)sum;
  return GR_OK;
}
static void destroy(void* self) { (void)self; }

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  gr_lr_schedule_t* table = (gr_lr_schedule_t*)instance;
  (void)host, (void)options, (void)err;
  table->self = table;
  table->destroy = destroy;
  table->value = value;
  return GR_OK;
}

static const gr_factory_t factory = {
    sizeof(gr_factory_t), 0, "lr_schedule", NAME, "1.0.0", "for tests", NULL, 0, 0, NULL, create};

GR_PLUGIN("test." NAME, "1.0.0", &factory);
