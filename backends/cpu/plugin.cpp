// SPDX-License-Identifier: Apache-2.0
// Entry of the cpu backend: the embedded default. Streams are threads; kernels share one pool.
#include "backends/common/host_backend.hpp"
#include "backends/cpu/kernels.hpp"

namespace {

const gr_option_t options[] = {GR_OPT_INT(
    "threads", "0", 0, 1024, "threads that share a kernel; 0: every core this process may use")};

int32_t create(const gr_host_t*, const gr_options_t* values, void* instance,
               gr_error_t* err) noexcept {
  try {
    const gr_option_value_t* wanted = gr_options_find(values, "threads");
    int threads = wanted != nullptr ? static_cast<int>(wanted->i) : 0;
    if (threads == 0) threads = gradrack::cpu::available_threads();
    auto context = std::make_shared<gradrack::cpu::Context>(threads);
    gradrack::host::KernelTable table;
    gradrack::cpu::add_all_kernels(table, *context);
    gradrack::host::HostBackendConfig config;
    config.description = "host memory, float32 with " + std::string(context->loops.name) +
                         " and oneDNN, " + std::to_string(threads) +
                         (threads == 1 ? " thread" : " threads");
    config.threaded = true;
    config.max_streams = 64;
    config.context = std::move(context);
    return gradrack::host::make_host_backend(std::move(table), std::move(config),
                                             static_cast<gr_backend_t*>(instance), err);
  } catch (const std::bad_alloc&) {
    return gr_fail(err, GR_OUT_OF_MEMORY, "", "out of memory");
  } catch (const std::exception& e) {
    return gr_fail(err, GR_INTERNAL, "threads", e.what());
  }
}

const gr_factory_t cpu_factory = {
    sizeof(gr_factory_t),
    0,
    "backend",
    "cpu",
    "1.0.0",
    "The default: vectorised float32 kernels and oneDNN's matrix product, on the host's cores.",
    options,
    sizeof options / sizeof options[0],
    sizeof(gr_option_t),
    nullptr,
    create};

}  // namespace

GR_PLUGIN("gradrack.cpu", "1.0.0", &cpu_factory);
