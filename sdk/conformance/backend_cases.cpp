// SPDX-License-Identifier: Apache-2.0
// Cases of the backend kind, levels 3 to 5.
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/context.hpp"

namespace gradrack::conform {
namespace {

Outcome device_info(Context& context) {
  CONFORM_ASSIGN(const Instance<gr_backend_t> backend, context.make<gr_backend_t>());
  CONFORM_ASSIGN(const std::unique_ptr<Device> first, Device::make("first", &backend.table()));
  CONFORM_ASSIGN(const std::unique_ptr<Device> second, Device::make("second", &backend.table()));
  const gr_device_info_t &a = first->info(), &b = second->info();
  if (a.description == nullptr || a.description[0] == '\0') return fail("description is empty");
  if (a.max_streams < 1) return fail("max_streams is 0");
  if (a.device_type != b.device_type || a.memory != b.memory || a.alignment != b.alignment ||
      a.max_streams != b.max_streams) {
    return fail("device_info answers differently the second time");
  }
  return pass();
}

}  // namespace

void add_backend_cases(const Target&, std::vector<Case>* cases) {
  cases->push_back(
      {"L3.device_info", 3, "device_info is complete and stays the same", device_info});
}

std::string coverage_markdown(const std::vector<CaseResult>&) { return ""; }

}  // namespace gradrack::conform
