/* SPDX-License-Identifier: Apache-2.0
   Libraries with one fault each; the build chooses the fault with -DFAULT_<NAME>. */
#include "gradrack/gradrack.h"

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  (void)host, (void)options, (void)instance;
  return gr_fail(err, GR_UNSUPPORTED, "", "never made");
}

#if defined(FAULT_BAD_DEFAULT)
static const gr_option_t options[] = {GR_OPT_INT("layers", "0", 1, 64, "blocks")};
#define OPTIONS options, 1, sizeof(gr_option_t)
#else
#define OPTIONS NULL, 0, 0
#endif

#if defined(FAULT_NULL_CREATE)
#define CREATE NULL
#else
#define CREATE create
#endif

#if defined(FAULT_UNKNOWN_KIND) || defined(FAULT_NEWER_MINOR)
#define KIND "optimiser"
#else
#define KIND "optimizer"
#endif

#if defined(FAULT_BAD_NAME)
#define NAME "Two Words"
#else
#define NAME "twin"
#endif

static const gr_factory_t odd = {sizeof(gr_factory_t), 0,       KIND, NAME,  "1.0.0",
                                 "for tests",          OPTIONS, NULL, CREATE};
static const gr_factory_t plain = {
    sizeof(gr_factory_t), 0, "optimizer", "plain", "1.0.0", "for tests", NULL, 0, 0, NULL, create};

#if defined(FAULT_MISSING_SYMBOL)
extern int32_t gradrack_test_nobody_has_this(void);
#elif defined(FAULT_MISSING_LIBRARY)
extern int32_t gradrack_test_needed(void);
#endif

static int32_t entry(const gr_host_t* host, gr_plugin_t* out, gr_error_t* err) {
  static const gr_factory_t* const table[] = {&odd, &plain};
  (void)host, (void)out, (void)err, (void)table;
#if defined(FAULT_ENTRY_REFUSES)
  return gr_fail(err, GR_FAILED_PRECONDITION, "licence", "expired");
#elif defined(FAULT_MISSING_SYMBOL)
  return gradrack_test_nobody_has_this();
#elif defined(FAULT_MISSING_LIBRARY)
  return gradrack_test_needed();
#else
  out->abi_minor = 0;
  out->factory_count = 2;
  out->factories = table;
  out->id = "test.bad";
  out->version = "1.0.0";
  return GR_OK;
#endif
}

#if defined(FAULT_MAGIC)
#define MAGIC UINT64_C(1)
#else
#define MAGIC GR_PLUGIN_MAGIC
#endif
#if defined(FAULT_MAJOR)
#define VERSIONS 2, 0, 3
#elif defined(FAULT_NEWER_MINOR)
#define VERSIONS GR_ABI_MAJOR, 0, 5
#elif defined(FAULT_TOO_NEW)
#define VERSIONS GR_ABI_MAJOR, 4, 5
#else
#define VERSIONS GR_ABI_MAJOR, 0, 0
#endif
#if defined(FAULT_SHORT_HEADER)
#define HEADER_BYTES 8
#else
#define HEADER_BYTES sizeof(gr_plugin_header_t)
#endif
#if defined(FAULT_NULL_ENTRY)
#define ENTRY NULL
#else
#define ENTRY entry
#endif

#if defined(FAULT_NO_HEADER)
GR_EXPORT int32_t gradrack_test_other_symbol(gr_plugin_t* out);
int32_t gradrack_test_other_symbol(gr_plugin_t* out) { return entry(NULL, out, NULL); }
#else
GR_EXPORT extern const gr_plugin_header_t gradrack_plugin_v1;
const gr_plugin_header_t gradrack_plugin_v1 = {MAGIC, HEADER_BYTES, VERSIONS, ENTRY};
/* Some faults leave a part unused. */
const void* gradrack_test_keep(void);
const void* gradrack_test_keep(void) { return (const void*)(size_t)entry; }
#endif
