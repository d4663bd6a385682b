// SPDX-License-Identifier: Apache-2.0
// The host's table: see host_table.hpp.
#include "core/plugin/host_table.hpp"

#include <string_view>

#include "core/base/log.hpp"
#include "core/base/stop_signal.hpp"
#include "core/plugin/cache_folder.hpp"
#include "core/plugin/check_calls.hpp"
#include "gradrack/extensions.h"

namespace gradrack {
namespace {

struct HostContext {
  std::string who;
  std::string version;
  gr_host_t table = {};
};

// May be called from any thread of the plugin, so nothing may leave it.
void host_log(void* context, int32_t level, const char* message) {
  if (context == nullptr || message == nullptr) return;
  try {
    const auto& host = *static_cast<const HostContext*>(context);
    const Level known = level <= GR_LOG_DEBUG  ? Level::kDebug
                        : level == GR_LOG_INFO ? Level::kInfo
                        : level == GR_LOG_WARN ? Level::kWarn
                                               : Level::kError;
    log_event({"plugin_log", known, host.who + ": " + message, {{"plugin", host.who}}});
  } catch (...) {  // out of memory while logging: the line is lost, the run goes on
  }
}

int32_t cancelled(void*) { return stop_signal() != 0 ? 1 : 0; }

// One folder for all plugins: a file in it is named after what decides its content.
std::string find_cache_folder() {
  const std::string caches = default_cache_folder();
  if (caches.empty()) return "";
  const std::string folder = caches + "/plugins";
  const Status made = make_private_folder(folder);
  if (made.ok()) return folder;
  log_event({"plugin_cache",
             Level::kWarn,
             folder + " is not used: " + made.message() + "; plugins keep no files",
             {{"path", folder}, {"reason", made.message()}}});
  return "";
}

const char* cache_folder(void*) {
  try {
    static const std::string folder = find_cache_folder();
    return folder.empty() ? nullptr : folder.c_str();
  } catch (...) {  // out of memory: nothing is kept
    return nullptr;
  }
}

const void* host_extension(void*, const char* id) {
  static const gr_cache_t cache = {sizeof(gr_cache_t), 0, nullptr, cache_folder};
  static const gr_cancel_t cancel = {sizeof(gr_cancel_t), 0, nullptr, cancelled};
  if (id == nullptr) return nullptr;
  if (std::string_view(id) == GR_EXT_CACHE) return &cache;
  if (std::string_view(id) == GR_EXT_CANCEL) return &cancel;
  if (std::string_view(id) == GR_EXT_THREAD_CHECK) return thread_check_extension();
  return nullptr;
}

}  // namespace

std::string host_version() {
  return std::to_string(GR_VERSION_MAJOR) + "." + std::to_string(GR_VERSION_MINOR) + "." +
         std::to_string(GR_VERSION_PATCH);
}

const gr_host_t* make_host_table(const std::string& who) {
  auto* context = new HostContext{who, host_version(), {}};  // leaked: plugins keep the pointer
  gr_host_t& table = context->table;
  table.struct_size = sizeof table;
  table.abi_major = GR_ABI_MAJOR;
  table.abi_min_minor = kHostMinMinor;
  table.abi_max_minor = kHostMaxMinor;
  table.name = "gradrack";
  table.version = context->version.c_str();
  table.context = context;
  table.log = host_log;
  table.get_extension = host_extension;
  return kCheckedCalls ? checked(&table, log_violations(who)) : &table;
}

}  // namespace gradrack
