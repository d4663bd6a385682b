// SPDX-License-Identifier: Apache-2.0
// Entry of the reference backend: inline streams in host memory, no options.
#include "backends/common/host_backend.hpp"
#include "backends/reference/kernels.hpp"

namespace {

int32_t create(const gr_host_t*, const gr_options_t*, void* instance, gr_error_t* err) noexcept {
  try {
    gradrack::host::KernelTable table;
    gradrack::reference::add_all_kernels(table);
    gradrack::host::HostBackendConfig config;
    config.description = "host memory, plain loops, one thread";
    config.max_streams = 64;
    return gradrack::host::make_host_backend(std::move(table), std::move(config),
                                             static_cast<gr_backend_t*>(instance), err);
  } catch (...) {
    return gr_fail(err, GR_OUT_OF_MEMORY, "create", "out of memory");
  }
}

const gr_factory_t reference_factory = {
    sizeof(gr_factory_t),
    0,
    "backend",
    "reference",
    "1.0.0",
    "Plain loops with wide accumulation: runs every operator, slowly; the oracle of the tests.",
    nullptr,
    0,
    0,
    nullptr,
    create};

}  // namespace

GR_PLUGIN("gradrack.reference", "1.0.0", &reference_factory);
