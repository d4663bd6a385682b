// SPDX-License-Identifier: Apache-2.0
// Plugin `emulated`, for tests alone: the reference kernels on a device with memory of its own, and
// a scheduler that draws legal orders over several streams.
#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/reference/kernels.hpp"
#include "tests/support/emulated_device.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace {

namespace host = gradrack::host;
namespace emulated = gradrack::emulated;

int32_t memory_named(const std::string& name) {
  if (name == "device") return GR_MEMORY_DEVICE;
  return name == "handle" ? GR_MEMORY_HANDLE : GR_MEMORY_HOST;
}

std::set<std::string> words(const std::string& text) {
  std::set<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) out.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

int32_t create_backend(const gr_host_t*, const gr_options_t* options, void* instance,
                       gr_error_t* err) noexcept {
  try {
    host::KernelTable table;
    gradrack::reference::add_all_kernels(table);
    std::set<std::string> refused = words(gr_options_find(options, "refuse")->s);
    const auto seed = static_cast<uint64_t>(gr_options_find(options, "seed")->i);
    const auto percent = static_cast<int>(gr_options_find(options, "refuse_percent")->i);
    refused.merge(emulated::draw(table.ops(), percent, seed));
    host::HostBackendConfig config;
    config.description = "reference kernels in emulated device memory";
    config.max_streams = 8;
    config.threaded = gr_options_find(options, "threaded")->i != 0;
    table = emulated::without(std::move(table), refused);
    const int64_t fails = gr_options_find(options, "fail_at")->i;
    if (fails > 0) table = emulated::failing(std::move(table), fails);
    auto* out = static_cast<gr_backend_t*>(instance);
    const int32_t code =
        emulated::make_backend(std::move(table), std::move(config),
                               memory_named(gr_options_find(options, "memory")->s), out, err);
    if (code == GR_OK) emulated::count_waits(out);
    if (gr_options_find(options, "extensions")->i == 0) out->get_extension = nullptr;
    return code;
  } catch (...) {
    return gr_fail(err, GR_OUT_OF_MEMORY, "create", "out of memory");
  }
}

int32_t create_scheduler(const gr_host_t*, const gr_options_t* options, void* instance,
                         gr_error_t* err) noexcept {
  try {
    auto scheduler = std::make_unique<gradrack::toy::Scheduler>(gradrack::toy::Scheduler::random(
        static_cast<uint32_t>(gr_options_find(options, "streams")->i),
        static_cast<uint32_t>(gr_options_find(options, "seed")->i)));
    auto* out = static_cast<gr_scheduler_t*>(instance);
    const uint32_t size = std::min<uint32_t>(out->struct_size, sizeof *out);
    gr_scheduler_t table = *scheduler->table();
    table.struct_size = size;
    table.destroy = [](void* self) { delete static_cast<gradrack::toy::Scheduler*>(self); };
    std::memcpy(out, &table, size);
    (void)scheduler.release();  // destroy() frees it
    return GR_OK;
  } catch (...) {
    return gr_fail(err, GR_OUT_OF_MEMORY, "create", "out of memory");
  }
}

const gr_option_t backend_options[] = {
    GR_OPT_CHOICE("memory", "device", "device|handle|host", "Kind of memory; host: plain."),
    GR_OPT_STRING("refuse", "", "Operators not to claim, with spaces between."),
    GR_OPT_INT("refuse_percent", "0", 0, 100, "Share of operators not to claim, drawn by seed."),
    GR_OPT_INT("seed", "1", 0, INFINITY, "Of the draw."),
    GR_OPT_BOOL("threaded", "false", "A thread for each stream."),
    GR_OPT_INT("fail_at", "0", 0, INFINITY,
               "This run of a kernel, counted from 1, fails; 0: none."),
    GR_OPT_BOOL("extensions", "true", "Offers recordings and timing."),
};

const gr_option_t scheduler_options[] = {
    GR_OPT_INT("streams", "2", 1, 8, "Streams wanted."),
    GR_OPT_INT("seed", "1", 0, INFINITY, "Of the order."),
    GR_OPT_FLOAT("lr", "0", 0, INFINITY, "Unused; named as the optimizers' rate is."),
};

const gr_factory_t backend_factory = {sizeof(gr_factory_t),
                                      0,
                                      "backend",
                                      "emulated",
                                      "1.0.0",
                                      "A device with memory of its own, for tests.",
                                      backend_options,
                                      7,
                                      sizeof(gr_option_t),
                                      nullptr,
                                      create_backend};

const gr_factory_t scheduler_factory = {sizeof(gr_factory_t),
                                        0,
                                        "scheduler",
                                        "shuffled",
                                        "1.0.0",
                                        "Legal orders drawn at random, for tests.",
                                        scheduler_options,
                                        3,
                                        sizeof(gr_option_t),
                                        nullptr,
                                        create_scheduler};

}  // namespace

GR_PLUGIN("gradrack.test.emulated", "1.0.0", &backend_factory, &scheduler_factory);
