// SPDX-License-Identifier: Apache-2.0
// Entry of a plugin library: the one exported symbol, the version negotiation, and the factories.
//
// A library exports exactly one symbol, `gradrack_plugin_v1`, and it is data: the host reads the
// header (from the file, even) and checks it before it calls anything. Then it calls `entry` once.
// Invariant: entry starts no work, no threads and touches no device; libraries are never unloaded.
// Plugin code does not write this by hand: GR_PLUGIN (C) or gradrack/plugin.hpp (C++) do.
#ifndef GRADRACK_PLUGIN_H_
#define GRADRACK_PLUGIN_H_

#include "gradrack/options.h"
#include "gradrack/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GR_VERSION_MAJOR 1
#define GR_VERSION_MINOR 0
#define GR_VERSION_PATCH 0

#define GR_ABI_MAJOR 1
#define GR_ABI_MIN_MINOR 0                            // oldest minor this SDK can speak
#define GR_ABI_MAX_MINOR 1                            // newest minor this SDK can speak
#define GR_PLUGIN_MAGIC UINT64_C(0x4b43415244415247)  // "GRADRACK" in little-endian bytes

enum { GR_LOG_DEBUG = 0, GR_LOG_INFO = 1, GR_LOG_WARN = 2, GR_LOG_ERROR = 3 };

/// What the host offers to a plugin. Lives as long as the process.
typedef struct gr_host {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t abi_major;
  uint32_t abi_min_minor;  ///< the host speaks every minor from here
  uint32_t abi_max_minor;  ///< to here
  uint32_t reserved;
  const char* name;     ///< "gradrack"
  const char* version;  ///< "1.0.0"
  void* context;        ///< pass back to the calls below
  /// Writes one line to the host's log. [any]
  void (*log)(void* context, int32_t level, const char* message);
  /// Host extension `id` ("gr.area.name/1"), or NULL. [any]
  const void* (*get_extension)(void* context, const char* id);
} gr_host_t;

/// One thing that a library can make: what YAML calls `plugin: name` in the section of `kind`.
typedef struct gr_factory {
  uint32_t struct_size;
  uint32_t flags;
  const char* kind;     ///< a section of the run file: "model" "optimizer" ...; or "metrics"
  const char* name;     ///< [a-z0-9_]+, unique per kind on a machine
  const char* version;  ///< of this implementation
  const char* help;     ///< one line
  const gr_option_t* options;
  uint32_t option_count;
  uint32_t option_stride;
  /// (optional) Can it work on this machine? Cheap; no lasting effect. GR_UNSUPPORTED with a reason
  /// makes the host take the next entry of the chain. [main]
  int32_t (*probe)(const gr_host_t* host, gr_error_t* err);
  /// Makes an instance. `instance` points to the kind's table (gr_model_t, gr_optimizer_t, ...)
  /// with struct_size set by the host to what it knows; the callee fills what fits. Undone by the
  /// table's destroy. [main]
  int32_t (*create)(const gr_host_t* host, const gr_options_t* options, void* instance,
                    gr_error_t* err);
} gr_factory_t;

/// What a library answers to `entry`. Filled by the plugin, allocated by the host.
typedef struct gr_plugin {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t abi_minor;  ///< chosen: min(host max, plugin max)
  uint32_t factory_count;
  const gr_factory_t* const* factories;
  const char* id;  ///< reverse-DNS or "gradrack.NAME"
  const char* version;
  /// (optional) Ends what the library itself keeps running: joins its threads, closes its device.
  /// Called once, after every instance is destroyed and before the process ends; no call of the
  /// library follows, and it calls the host no more. Returns within `deadline_ns`. [main]
  int32_t (*stop)(int64_t deadline_ns, gr_error_t* err);
  /// (optional) Extension `id` of the library as a whole, or NULL. [any]
  const void* (*get_extension)(const char* id);
} gr_plugin_t;

/// The exported data. `struct_size` and the range are read before `entry` is called.
typedef struct gr_plugin_header {
  uint64_t magic;
  uint32_t struct_size;
  uint32_t abi_major;
  uint32_t abi_min_minor;
  uint32_t abi_max_minor;
  /// Negotiates and lists the factories; nothing else happens in it. Called once. [main]
  int32_t (*entry)(const gr_host_t* host, gr_plugin_t* out, gr_error_t* err);
} gr_plugin_header_t;

#define GR_ENTRY_SYMBOL "gradrack_plugin_v1"
#if defined(__GNUC__)
#define GR_EXPORT __attribute__((visibility("default")))
#else
#define GR_EXPORT
#endif

/// Picks the minor version that both sides speak; GR_VERSION with both ranges otherwise. [main]
static inline int32_t gr_negotiate(const gr_host_t* host, uint32_t* minor, gr_error_t* err) {
  const uint32_t sdk_min = GR_ABI_MIN_MINOR, sdk_max = GR_ABI_MAX_MINOR;
  const uint32_t chosen = host->abi_max_minor < sdk_max ? host->abi_max_minor : sdk_max;
  if (host->abi_major != GR_ABI_MAJOR || chosen < sdk_min || chosen < host->abi_min_minor) {
    char text[GR_ERROR_MESSAGE_BYTES];
    (void)snprintf(
        text, sizeof text,
        "host %s %s speaks ABI %u.%u..%u, this plugin speaks %u.%u..%u: upgrade the older",
        host->name, host->version, host->abi_major, host->abi_min_minor, host->abi_max_minor,
        (unsigned)GR_ABI_MAJOR, sdk_min, sdk_max);
    return gr_fail(err, GR_VERSION, "abi", text);
  }
  *minor = chosen;
  return GR_OK;
}

/// Defines the exported header and its entry for a C plugin:
///   GR_PLUGIN("com.acme.lion", "1.0.0", &lion_factory, &other_factory)
/// A library with threads of its own uses GR_PLUGIN_WITH_STOP(id, version, stop, factories...).
#define GR_PLUGIN(plugin_id, plugin_version, ...) \
  GR_PLUGIN_WITH_STOP(plugin_id, plugin_version, NULL, __VA_ARGS__)
#define GR_PLUGIN_WITH_STOP(plugin_id, plugin_version, plugin_stop, ...)                       \
  static int32_t gr_entry_(const gr_host_t* host, gr_plugin_t* out, gr_error_t* err) {         \
    static const gr_factory_t* const table[] = {__VA_ARGS__};                                  \
    int32_t status = gr_negotiate(host, &out->abi_minor, err);                                 \
    if (status != GR_OK) return status;                                                        \
    out->factory_count = (uint32_t)(sizeof table / sizeof table[0]);                           \
    out->factories = table;                                                                    \
    out->id = plugin_id;                                                                       \
    out->version = plugin_version;                                                             \
    if (GR_HAS(out, stop)) out->stop = plugin_stop;                                            \
    return GR_OK;                                                                              \
  }                                                                                            \
  GR_EXPORT extern const gr_plugin_header_t gradrack_plugin_v1;                                \
  const gr_plugin_header_t gradrack_plugin_v1 = {GR_PLUGIN_MAGIC,  sizeof(gr_plugin_header_t), \
                                                 GR_ABI_MAJOR,     GR_ABI_MIN_MINOR,           \
                                                 GR_ABI_MAX_MINOR, gr_entry_}

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_PLUGIN_H_
