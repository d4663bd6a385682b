// SPDX-License-Identifier: Apache-2.0
// Faults on demand: see faults.hpp.
#include "sdk/conformance/faults.hpp"

#include <dlfcn.h>
#include <malloc.h>
#include <unwind.h>

#include <cstring>
#include <tuple>

namespace gradrack::conform {
namespace {

// Plain numbers: malloc reads them before anything is constructed.
thread_local bool inside_plugin = false;
thread_local int64_t allocations_left = 0;  // until the one that fails; 0: none fails
thread_local int64_t allocations_made = 0;
thread_local bool keeps_failing = false;
thread_local bool has_failed = false;
thread_local const void* plugin_base = nullptr;  // where the plugin's library is mapped
bool hook_is_there = false;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnMalloc = false;
#else
constexpr bool kOwnMalloc = true;
#endif

/// The base of the library that a code address lies in; nullptr for code outside of all.
const void* library_of(const void* code, const char** name) {
  Dl_info info = {};
  if (dladdr(code, &info) == 0) return nullptr;
  *name = info.dli_fname != nullptr ? info.dli_fname : "";
  return info.dli_fbase;
}

/// Libraries that allocate on behalf of who calls them.
bool is_runtime(const char* name) {
  const char* slash = std::strrchr(name, '/');
  const char* file = slash != nullptr ? slash + 1 : name;
  for (const char* prefix : {"libc.so", "libstdc++.so", "libc++.so", "libgcc_s.so", "ld-linux"}) {
    if (std::strncmp(file, prefix, std::strlen(prefix)) == 0) return true;
  }
  return false;
}

struct Asker {
  const void* program;  // the kit's own base
  const void* library = nullptr;
};

/// Stops at the innermost frame that is neither the kit's nor a runtime's.
_Unwind_Reason_Code look_at_frame(_Unwind_Context* context, void* out) {
  auto& asker = *static_cast<Asker*>(out);
  const char* name = "";
  const void* base = library_of(reinterpret_cast<const void*>(_Unwind_GetIP(context)), &name);
  if (base == asker.program || (base != nullptr && is_runtime(name))) return _URC_NO_REASON;
  asker.library = base;
  return _URC_NORMAL_STOP;
}

/// Whether the allocation that is being made is the plugin's own code's. Allocates nothing.
bool plugin_asks() {
  const char* name = "";
  Asker asker{library_of(reinterpret_cast<const void*>(&is_runtime), &name)};
  (void)_Unwind_Backtrace(look_at_frame, &asker);
  return asker.library == plugin_base;
}

}  // namespace

InPlugin::InPlugin() : before_(inside_plugin) { inside_plugin = true; }
InPlugin::~InPlugin() { inside_plugin = before_; }
InKit::InKit() : before_(inside_plugin) { inside_plugin = false; }
InKit::~InKit() { inside_plugin = before_; }

void fail_allocation(int64_t nth, bool all_after, const void* code) {
  const char* name = "";
  plugin_base = library_of(code, &name);
  allocations_left = nth;
  allocations_made = 0;
  keeps_failing = all_after;
  has_failed = false;
}

bool end_failing_allocations() {
  allocations_left = 0;
  keeps_failing = false;
  return has_failed;
}

int64_t allocations_seen() { return allocations_made; }
bool can_fail_allocations() { return kOwnMalloc && hook_is_there; }
void allocation_hook_is_there() { hook_is_there = true; }

bool allocation_fails_now() noexcept {
  if (!inside_plugin || (allocations_left == 0 && !(keeps_failing && has_failed))) return false;
  if (!plugin_asks()) return false;
  ++allocations_made;
  if (keeps_failing && has_failed) return true;
  if (--allocations_left > 0) return false;
  has_failed = true;
  return true;
}

// What a plugin gets as gr_graph_t* is the WatchedBuilder.
template <auto Member, typename... Arguments>
int32_t WatchedBuilder::forward(gr_graph_t* graph, Arguments... arguments) {
  const InKit in_kit;
  auto& self = *reinterpret_cast<WatchedBuilder*>(graph);
  if (++self.calls_ == self.fail_at_) {
    gr_error_t* err = std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
    return gr_fail(err, kInjectedCode, "kit", "made to fail by the conformance kit");
  }
  return (self.inner_.api->*Member)(self.inner_.graph, arguments...);
}

WatchedBuilder::WatchedBuilder(Graph& graph, int64_t fail_at)
    : api_(graph), inner_(api_.builder()), fail_at_(fail_at) {
  table_.struct_size = sizeof table_;
  table_.input = forward<&gr_graph_api_t::input>;
  table_.parameter = forward<&gr_graph_api_t::parameter>;
  table_.buffer = forward<&gr_graph_api_t::buffer>;
  table_.update_buffer = forward<&gr_graph_api_t::update_buffer>;
  table_.constant = forward<&gr_graph_api_t::constant>;
  table_.node = forward<&gr_graph_api_t::node>;
  table_.objective = forward<&gr_graph_api_t::objective>;
  table_.output = forward<&gr_graph_api_t::output>;
  table_.push_stage = forward<&gr_graph_api_t::push_stage>;
  table_.pop_stage = [](gr_graph_t* self, gr_error_t* err) {
    const InKit in_kit;
    const gr_builder_t& inner = reinterpret_cast<WatchedBuilder*>(self)->inner_;
    return inner.api->pop_stage(inner.graph, err);
  };
  table_.type_of = forward<&gr_graph_api_t::type_of>;
}

gr_builder_t WatchedBuilder::builder() { return {&table_, reinterpret_cast<gr_graph_t*>(this)}; }

int64_t heap_bytes() {
  const auto info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

}  // namespace gradrack::conform
