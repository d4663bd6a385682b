// SPDX-License-Identifier: Apache-2.0
// A backend's table that counts what plans ask of it, may propose groups, and may refuse shapes.
//
// The C table has functions without a place for anything but the inner backend's `self`, so the
// counts are of the program: one CountedBackend at a time.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/device/device.hpp"

namespace gradrack::toy {

class CountedBackend {
 public:
  explicit CountedBackend(gr_backend_t* inner) : table_(*inner) {
    inner_ = inner;
    table_.claim = claim;
    table_.prepare = prepare;
    table_.kernel_destroy = kernel_destroy;
    device_ = std::move(*Device::make("counted", &table_));
    forget();
    prepared_ = destroyed_ = 0;
    one_group = false;
    refuse = {};
  }
  Device* device() { return device_.get(); }

  /// Begins to count claims and prepares anew.
  static void forget() {
    const std::lock_guard lock(mutex_);
    claimed_.clear();
    prepares = 0;
  }
  /// Operators that were asked about since, in order.
  static std::vector<std::string> claimed() {
    const std::lock_guard lock(mutex_);
    return claimed_;
  }
  static int64_t live_kernels() { return prepared_ - destroyed_; }

  static inline std::atomic<int64_t> prepares = 0;
  static inline bool one_group = false;  // proposes all nodes of a request as one kernel
  static inline std::function<bool(const gr_group_t&)> refuse = {};  // GR_UNSUPPORTED from prepare

 private:
  static int32_t claim(void* self, const gr_node_view_t* views, uint32_t stride, uint32_t count,
                       gr_claim_t* claims, uint32_t claim_stride, gr_error_t* err) {
    const int32_t code = inner_->claim(self, views, stride, count, claims, claim_stride, err);
    const std::lock_guard lock(mutex_);
    for (uint32_t k = 0; k < count; ++k) {
      claimed_.emplace_back(views[k].op);
      if (one_group) claims[k].group = 7;
    }
    return code;
  }
  static int32_t prepare(void* self, const gr_group_t* group, gr_kernel_t** out,
                         gr_kernel_info_t* info, gr_error_t* err) {
    ++prepares;
    if (refuse && refuse(*group)) return gr_fail(err, GR_UNSUPPORTED, "", "not these shapes");
    const int32_t code = inner_->prepare(self, group, out, info, err);
    if (code == GR_OK) ++prepared_;
    return code;
  }
  static void kernel_destroy(void* self, gr_kernel_t* kernel) {
    ++destroyed_;
    inner_->kernel_destroy(self, kernel);
  }

  static inline gr_backend_t* inner_ = nullptr;
  static inline std::mutex mutex_;
  static inline std::vector<std::string> claimed_;
  static inline std::atomic<int64_t> prepared_ = 0, destroyed_ = 0;
  gr_backend_t table_;
  std::unique_ptr<Device> device_;
};

}  // namespace gradrack::toy
