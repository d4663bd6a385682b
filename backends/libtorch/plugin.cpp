// SPDX-License-Identifier: Apache-2.0
// Entry of the libtorch_cpu backend: ATen's kernels on the host's memory. Streams are threads, each
// with a team of OpenMP threads of its own.
#include "backends/common/division.hpp"
#include "backends/common/handles.hpp"
#include "backends/common/host_backend.hpp"
#include "backends/libtorch/kernels.hpp"
#include "backends/libtorch/threads.hpp"

namespace {

namespace libtorch = gradrack::libtorch;

const gr_option_t options[] = {
    GR_OPT_INT("threads", "0", 0, 1024,
               "threads of the backend; 0: as many as LibTorch takes by itself"),
    GR_OPT_INT("threads_per_stream", "0", 0, 1024, "threads of one stream; 0: all of them"),
};

int32_t create(const gr_host_t*, const gr_options_t* values, void* instance,
               gr_error_t* err) noexcept {
  return gradrack::host::guarded("create", err, [&]() -> int32_t {
    libtorch::wake();
    gradrack::host::Division division;
    const int32_t status = gradrack::host::read_division(values, libtorch::default_threads,
                                                         "leaves it to LibTorch", &division, err);
    if (status != GR_OK) return status;
    const int per_stream = division.per_stream;
    gradrack::host::KernelTable table;
    libtorch::add_all_kernels(table);
    gradrack::host::HostBackendConfig config;
    config.description = "host memory, " + libtorch::library_text() + ", " +
                         std::to_string(division.streams()) + " stream(s) of " +
                         std::to_string(per_stream) + " thread(s)";
    config.threaded = true;
    config.max_streams = static_cast<uint32_t>(division.streams());
    config.seat = [per_stream] { return libtorch::make_seat(per_stream); };
    return gradrack::host::make_host_backend(std::move(table), std::move(config),
                                             static_cast<gr_backend_t*>(instance), err);
  });
}

const gr_factory_t libtorch_cpu_factory = {
    sizeof(gr_factory_t),
    0,
    "backend",
    "libtorch_cpu",
    "1.0.0",
    "ATen's kernels of LibTorch on the host's cores, in float32, float64, bfloat16 and float16.",
    options,
    sizeof options / sizeof options[0],
    sizeof(gr_option_t),
    nullptr,
    create};

}  // namespace

GR_PLUGIN("gradrack.libtorch_cpu", "1.0.0", &libtorch_cpu_factory);
