// SPDX-License-Identifier: Apache-2.0
// The linked reference backend: see reference.hpp.
#include "sdk/conformance/reference.hpp"

#include "backends/common/host_backend.hpp"
#include "backends/reference/kernels.hpp"

namespace gradrack::conform {

Result<std::unique_ptr<Reference>> Reference::make() {
  host::KernelTable kernels;
  reference::add_all_kernels(kernels);
  host::HostBackendConfig config;
  config.description = "the kit's reference: plain loops in host memory";
  config.max_streams = 64;
  std::unique_ptr<Reference> made(new Reference);
  made->table_.struct_size = sizeof made->table_;
  gr_error_t err = {};
  const int32_t code =
      host::make_host_backend(std::move(kernels), std::move(config), &made->table_, &err);
  GR_TRY(status_from(code, err).with_context("the kit's reference backend"));
  GR_ASSIGN(made->device_, Device::make("reference", &made->table_));
  return made;
}

Reference::~Reference() {
  device_.reset();
  if (table_.destroy != nullptr) table_.destroy(table_.self);
}

}  // namespace gradrack::conform
