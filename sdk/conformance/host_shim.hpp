// SPDX-License-Identifier: Apache-2.0
// HostShim: a gr_host_t whose age, extensions and wishes a case chooses.
//
// What the plugin under test takes for its host. Invariant: stays where it is until the child ends,
// since plugins keep the pointer. Log lines go to stderr, which the runner shows on failure.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "gradrack/extensions.h"
#include "gradrack/plugin.h"

namespace gradrack::conform {

class HostShim {
 public:
  /// Speaks this SDK's major and minors and offers gr.cancel/1 and gr.thread_check/1.
  HostShim();
  HostShim(const HostShim&) = delete;
  HostShim& operator=(const HostShim&) = delete;

  /// To change before it is handed over: versions, struct_size, NULL extensions.
  gr_host_t& table() { return table_; }
  const gr_host_t* get() const { return &table_; }

  /// What gr.cancel/1 answers from now on. [any]
  void cancel(bool wanted) { cancelled_ = wanted; }
  /// Without extensions, get_extension answers NULL to everything.
  void offer_extensions(bool wanted) { extensions_ = wanted; }
  /// How often the plugin asked gr.cancel/1.
  int64_t cancel_questions() const { return cancel_questions_; }

 private:
  gr_host_t table_ = {};
  gr_cancel_t cancel_ = {};
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> extensions_ = true;
  mutable std::atomic<int64_t> cancel_questions_ = 0;

  static void log(void* context, int32_t level, const char* message);
  static const void* extension(void* context, const char* id);
  static int32_t cancelled(void* context);
};

}  // namespace gradrack::conform
