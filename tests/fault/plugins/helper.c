/* SPDX-License-Identifier: Apache-2.0
   Two libraries from one source, each with an exported helper() of its own that answers ANSWER:
   which one does each call? */
#include "gradrack/gradrack.h"

GR_EXPORT int32_t helper(void);
int32_t helper(void) { return ANSWER; }

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  char text[8];
  (void)host, (void)options, (void)instance;
  (void)snprintf(text, sizeof text, "%d", (int)helper());
  return gr_fail(err, GR_FAILED_PRECONDITION, "", text);
}

static const gr_factory_t factory = {
    sizeof(gr_factory_t), 0, "optimizer", NAME, "1.0.0", "for tests", NULL, 0, 0, NULL, create};
GR_PLUGIN("test." NAME, "1.0.0", &factory);
