// SPDX-License-Identifier: Apache-2.0
// The list of runtimes: one a device. Instances may be made on several threads.
#include "runtime.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace opencl_backend {
namespace {

struct Runtimes {
  std::mutex mutex;
  std::vector<std::shared_ptr<Runtime>> all;
};

/// Never destroyed: see runtime.hpp.
Runtimes& runtimes() {
  static auto* const list = new Runtimes;
  return *list;
}

}  // namespace

std::shared_ptr<Runtime> Runtime::open(const std::string& platform, const std::string& device) {
  const FoundDevice found = find_device(platform, device);
  Runtimes& list = runtimes();
  const std::lock_guard lock(list.mutex);
  const auto known = std::find_if(list.all.begin(), list.all.end(),
                                  [&](const auto& r) { return r->device.id == found.id; });
  if (known != list.all.end()) return *known;
  list.all.push_back(std::make_shared<Runtime>(open_device(found)));
  return list.all.back();
}

void Runtime::close_all() {
  Runtimes& list = runtimes();
  const std::lock_guard lock(list.mutex);
  list.all.clear();
}

}  // namespace opencl_backend
