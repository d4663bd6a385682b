// SPDX-License-Identifier: Apache-2.0
// A C++ plugin without the SDK's wrapper whose calls throw across the C interface.
#include <stdexcept>

#include "gradrack/gradrack.h"

namespace {

int32_t create(const gr_host_t*, const gr_options_t*, void*, gr_error_t*) {
  throw std::runtime_error("thrown from create");
}
int32_t probe(const gr_host_t*, gr_error_t*) { throw 7; }
int32_t never(const gr_host_t*, const gr_options_t*, void*, gr_error_t* err) {
  return gr_fail(err, GR_UNSUPPORTED, "", "never made");
}

const gr_factory_t thrower = {
    sizeof(gr_factory_t), 0, "model", "thrower", "1.0.0", "throws", nullptr, 0, 0, nullptr, create};
const gr_factory_t prober = {
    sizeof(gr_factory_t), 0, "model", "prober", "1.0.0", "throws", nullptr, 0, 0, probe, never};

}  // namespace

GR_PLUGIN("test.throws", "1.0.0", &thrower, &prober);
