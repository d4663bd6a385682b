// SPDX-License-Identifier: Apache-2.0
// Libraries whose entry answers what it must not; the build chooses what with -DFAULT_<NAME>.
#include <stdexcept>

#include "gradrack/gradrack.h"

namespace {

int32_t create(const gr_host_t*, const gr_options_t*, void*, gr_error_t* err) {
  return gr_fail(err, GR_UNSUPPORTED, "", "never made");
}

#if defined(FAULT_SHORT_FACTORY)
constexpr uint32_t kFactoryBytes = 16;
#else
constexpr uint32_t kFactoryBytes = sizeof(gr_factory_t);
#endif

const gr_factory_t kFactory = {kFactoryBytes, 0, "optimizer", "plain", "1.0.0", "for tests",
                               nullptr,       0, 0,           nullptr, create};
const gr_factory_t kOther = {sizeof(gr_factory_t),
                             0,
                             "optimizer",
                             "other",
                             "1.0.0",
                             "for tests",
                             nullptr,
                             0,
                             0,
                             nullptr,
                             create};

int32_t entry(const gr_host_t*, gr_plugin_t* out, gr_error_t* err) {
  (void)err;
  static const gr_factory_t* table[] = {&kFactory, &kOther};
#if defined(FAULT_ENTRY_THROWS)
  throw std::runtime_error("thrown from entry");
#endif
  out->abi_minor = 0;
  out->factory_count = 2;
  out->factories = table;
  out->id = "test.bad_entry";
  out->version = "1.0.0";
#if defined(FAULT_MINOR_OUTSIDE)
  out->abi_minor = 7;
#elif defined(FAULT_NO_FACTORIES)
  out->factory_count = 0;
#elif defined(FAULT_NULL_FACTORY)
  table[1] = nullptr;
#elif defined(FAULT_LISTED_TWICE)
  table[1] = &kFactory;
#elif defined(FAULT_NULL_ID)
  out->id = nullptr;
#elif defined(FAULT_EMPTY_VERSION)
  out->version = "";
#elif defined(FAULT_NULL_VERSION)
  out->version = nullptr;
#elif defined(FAULT_UNKNOWN_STATUS)
  return 77;
#endif
  return GR_OK;
}

}  // namespace

extern "C" {
GR_EXPORT extern const gr_plugin_header_t gradrack_plugin_v1;
const gr_plugin_header_t gradrack_plugin_v1 = {
    GR_PLUGIN_MAGIC, sizeof(gr_plugin_header_t), GR_ABI_MAJOR, 0, 0, entry};
}
