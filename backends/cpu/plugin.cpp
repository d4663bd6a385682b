// SPDX-License-Identifier: Apache-2.0
// Entry of the cpu backend: the embedded default. Streams are threads; the threads of the backend
// are divided among them.
#include "backends/common/division.hpp"
#include "backends/common/handles.hpp"
#include "backends/common/host_backend.hpp"
#include "backends/cpu/cores.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/tiles.hpp"

namespace {

namespace cpu = gradrack::cpu;
using gradrack::host::Division;
using gradrack::host::int_option;

const gr_option_t options[] = {
    GR_OPT_INT("threads", "0", 0, 1024,
               "threads of the backend; 0: every core this process may use"),
    GR_OPT_INT("threads_per_stream", "0", 0, 1024, "threads of one stream; 0: all of them"),
    GR_OPT_BOOL("pin", "true", "a core for each thread, where there are as many of both"),
};

/// The core of each thread; none, and why, when threads go where the system puts them.
cpu::CoreOrder choose_cores(const Division& division) {
  const std::vector<int> allowed = cpu::allowed_cores();
  if (static_cast<size_t>(division.used()) != allowed.size()) {
    // With a part of the cores, or more threads than cores, others would be sent to the same ones.
    return {{},
            std::to_string(division.used()) + " threads, and the process may use " +
                std::to_string(allowed.size()) + " cores; as many of both can be pinned"};
  }
  const std::string problem = cpu::pinning_problem();
  return problem.empty() ? cpu::core_order(allowed) : cpu::CoreOrder{{}, problem};
}

/// A warning to those who asked for it in so many words.
void say_unpinned(const gr_host_t* host, const std::string& problem, bool asked) {
  if (host == nullptr || host->log == nullptr) return;
  const std::string text = "cpu: threads are not pinned to cores: " + problem +
                           " (`pin: false` leaves them to the system)";
  host->log(host->context, asked ? GR_LOG_WARN : GR_LOG_DEBUG, text.c_str());
}

std::string counted(int count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string describe(const Division& division, const char* loops, bool pinned) {
  const cpu::TileLoops& narrow = cpu::tile_loops(true);
  std::string text = std::string("host memory, float32 with ") + loops + ", bfloat16 products ";
  text += (narrow.narrow ? std::string("with ") + narrow.name : "widened to float32") + ", ";
  if (division.streams() > 1) text += counted(division.streams(), "stream") + " of ";
  text += counted(division.per_stream, "thread");
  return text + (pinned ? ", a core each" : "");
}

int32_t create(const gr_host_t* host, const gr_options_t* values, void* instance,
               gr_error_t* err) noexcept {
  return gradrack::host::guarded("create", err, [&]() -> int32_t {
    const std::string isa = cpu::isa_problem();
    if (!isa.empty()) return gr_fail(err, GR_INVALID_ARGUMENT, "GRADRACK_CPU_ISA", isa.c_str());
    Division division;
    const int32_t status = gradrack::host::read_division(values, cpu::available_threads,
                                                         "counts the cores", &division, err);
    if (status != GR_OK) return status;
    cpu::CoreOrder order;
    if (int_option(values, "pin") != 0) {
      order = choose_cores(division);
      const bool asked = gr_options_find(values, "pin")->is_default == 0;
      if (order.cores.empty()) say_unpinned(host, order.problem, asked);
    }
    auto context =
        std::make_shared<cpu::Context>(division.streams(), division.per_stream, order.cores);
    gradrack::host::KernelTable table;
    cpu::add_all_kernels(table, *context);
    gradrack::host::HostBackendConfig config;
    config.description = describe(division, context->loops.name, !order.cores.empty());
    config.threaded = true;
    config.max_streams = static_cast<uint32_t>(division.streams());
    config.seat = [pool = &context->pool] { return pool->take_seat(); };
    config.context = std::move(context);
    return gradrack::host::make_host_backend(std::move(table), std::move(config),
                                             static_cast<gr_backend_t*>(instance), err);
  });
}

const gr_factory_t cpu_factory = {
    sizeof(gr_factory_t),
    0,
    "backend",
    "cpu",
    "1.0.0",
    "The default: vectorised kernels in float32 and bfloat16, on the host's cores.",
    options,
    sizeof options / sizeof options[0],
    sizeof(gr_option_t),
    nullptr,
    create};

}  // namespace

GR_PLUGIN("gradrack.cpu", "1.0.0", &cpu_factory);
