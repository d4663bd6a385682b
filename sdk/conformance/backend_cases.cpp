// SPDX-License-Identifier: Apache-2.0
// The cases of the backend kind, levels 3 to 5, and the bench that they run on.
#include "sdk/conformance/backend_bench.hpp"
#include "sdk/conformance/catalogue.hpp"

namespace gradrack::conform {
namespace {

/// Everything stays until the child ends: kernels of a failed case may still be running.
struct Held {
  Instance<gr_backend_t> backend;
  std::unique_ptr<Device> device;
  std::unique_ptr<Rig> tested;
  std::unique_ptr<Rig> reference;
};

Result<Held> make_held(Context& context) {
  GR_ASSIGN(Instance<gr_backend_t> backend, context.make<gr_backend_t>());
  GR_ASSIGN(std::unique_ptr<Device> device, Device::make(backend.name(), &backend.table()));
  GR_ASSIGN(std::unique_ptr<Rig> tested, Rig::make(device.get()));
  GR_ASSIGN(Device* const reference, context.reference());
  GR_ASSIGN(std::unique_ptr<Rig> other, Rig::make(reference));
  return Held{std::move(backend), std::move(device), std::move(tested), std::move(other)};
}

Outcome device_info(Context& context) {
  CONFORM_ASSIGN(const Instance<gr_backend_t> backend, context.make<gr_backend_t>());
  CONFORM_ASSIGN(const std::unique_ptr<Device> first, Device::make("first", &backend.table()));
  CONFORM_ASSIGN(const std::unique_ptr<Device> second, Device::make("second", &backend.table()));
  const gr_device_info_t &a = first->info(), &b = second->info();
  if (a.description == nullptr || a.description[0] == '\0') return fail("description is empty");
  if (a.memory < GR_MEMORY_DEVICE || a.memory > GR_MEMORY_HANDLE) {
    return fail("memory is " + std::to_string(a.memory) + ", which is no GR_MEMORY_*");
  }
  if (a.device_type != b.device_type || a.memory != b.memory || a.alignment != b.alignment ||
      a.max_streams != b.max_streams) {
    return fail("device_info answers differently the second time");
  }
  return pass();
}

}  // namespace

Result<Bench> bench_of(Context& context) {
  static auto* held = new std::map<Context*, Held*>;
  Held*& mine = (*held)[&context];
  if (mine == nullptr) {
    GR_ASSIGN(Held made, make_held(context));
    mine = new Held(std::move(made));
  }
  return Bench{mine->tested.get(), mine->reference.get(), context.seed()};
}

void add_backend_cases(const Target&, std::vector<Case>* cases) {
  cases->push_back({"L3.device_info", 3, "device_info is complete and stays the same", device_info,
                    "L3.device"});
  add_memory_cases(cases);
  add_operator_cases(cases);
  add_pattern_cases(cases);
  add_stream_cases(cases);
  add_order_cases(cases);
  add_capture_cases(cases);
  add_timing_cases(cases);
  add_training_cases(cases);
}

}  // namespace gradrack::conform
