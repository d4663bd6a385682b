// SPDX-License-Identifier: Apache-2.0
// Faults on demand: the Nth allocation inside a plugin's call, the Nth call of the graph builder.
//
// The program's malloc (allocation_hook.cpp) asks fails_now(). Invariant: only the calling thread,
// only time spent inside the plugin and only what the plugin's own code asks for count; what the
// kit does on its own account, callbacks included, never fails, nor does a driver under the plugin,
// which the plugin could not mend.
#pragma once

#include <cstdint>

#include "core/graph/builder_api.hpp"

namespace gradrack::conform {

/// While it lives, the calling thread is inside the plugin.
class [[nodiscard]] InPlugin {
 public:
  InPlugin();
  ~InPlugin();
  InPlugin(const InPlugin&) = delete;
  InPlugin& operator=(const InPlugin&) = delete;

 private:
  bool before_;
};

/// While it lives, the calling thread is back in the kit: inside a callback.
class [[nodiscard]] InKit {
 public:
  InKit();
  ~InKit();
  InKit(const InKit&) = delete;
  InKit& operator=(const InKit&) = delete;

 private:
  bool before_;
};

/// From here the `nth` allocation (from 1) that the calling thread makes inside the plugin fails,
/// and with `all_after` each later one too. `code`: an address in the plugin's library.
void fail_allocation(int64_t nth, bool all_after, const void* code);
/// Ends that; true when an allocation failed.
bool end_failing_allocations();
/// Allocations inside the plugin since fail_allocation.
int64_t allocations_seen();
/// False in programs without the hook, and under sanitizers, which have a malloc of their own.
bool can_fail_allocations();

/// Bytes that the program has from malloc, large blocks with them.
int64_t heap_bytes();

/// Asked by the hook for every allocation.
bool allocation_fails_now() noexcept;
/// Called by the hook's file when the program starts.
void allocation_hook_is_there();

/// The code that failing builder calls give: one that the builder itself never gives.
inline constexpr int32_t kInjectedCode = GR_FAILED_PRECONDITION;

/// A gr_graph_api_t over a Graph that counts calls and fails one on demand; not pop_stage, since a
/// pop that matches its push cannot fail, and plugins may make it in a destructor.
class WatchedBuilder {
 public:
  /// `fail_at`: the call that fails, from 1; 0: none.
  WatchedBuilder(Graph& graph, int64_t fail_at);
  gr_builder_t builder();
  int64_t calls() const { return calls_; }
  bool failed() const { return fail_at_ > 0 && calls_ >= fail_at_; }

 private:
  template <auto Member, typename... Arguments>
  static int32_t forward(gr_graph_t* graph, Arguments... arguments);

  BuilderApi api_;
  gr_builder_t inner_;
  gr_graph_api_t table_ = {};
  int64_t fail_at_;
  int64_t calls_ = 0;
};

}  // namespace gradrack::conform
