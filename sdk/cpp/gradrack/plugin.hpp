// SPDX-License-Identifier: Apache-2.0
// Entry of a C++ plugin: factories made from classes, and the macro that exports them.
//
// A plugin class is plain: a constructor from Options, constants that describe it, and the member
// functions of its kind. Model<T>, Optimizer<T>, Data<T>, ... (a header each) turn it into a
// factory whose C table calls those members. Invariant: every function in a table is a noexcept
// thunk around guarded(), so no exception and no C++ object crosses the wall. No virtual calls.
//
//   class Sgd {
//    public:
//     static constexpr const char* kName = "sgd";             // `plugin: sgd` in the YAML
//     static constexpr const char* kVersion = "1.0.0";
//     static constexpr const char* kHelp = "Plain gradient descent.";
//     static constexpr gr_option_t kOptions[] = {...};        // optional
//     static void probe(const gr_host_t& host);               // optional: throw GR_UNSUPPORTED
//     explicit Sgd(const Options& options);                   // or Sgd(options, const gr_host_t&)
//     ...
//   };
//   GRADRACK_PLUGIN("com.acme.sgd", "1.0.0", gradrack::sdk::Optimizer<Sgd>)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <type_traits>

#include "gradrack/error.hpp"
#include "gradrack/options.hpp"
#include "gradrack/plugin.h"

namespace gradrack::sdk {

/// What the kinds share. `Kind` names its section (kKind), its C table and how to fill it.
template <typename Kind, typename T, typename Table>
class Factory {
 public:
  static const gr_factory_t* get() { return &kFactory; }

 protected:
  static T& instance(void* self) { return *static_cast<T*>(self); }

 private:
  static int32_t probe(const gr_host_t* host, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      if constexpr (requires { T::probe(*host); }) T::probe(*host);
    });
  }

  static std::unique_ptr<T> make(const gr_host_t* host, const gr_options_t* options) {
    if constexpr (std::is_constructible_v<T, const Options&, const gr_host_t&>) {
      return std::make_unique<T>(Options(options), *host);
    } else {
      return std::make_unique<T>(Options(options));
    }
  }

  static void destroy(void* self) noexcept { delete static_cast<T*>(self); }

  /// Fills as much of the host's table as the host knows of: it may be older or newer than this.
  static int32_t create(const gr_host_t* host, const gr_options_t* options, void* out,
                        gr_error_t* err) noexcept {
    return guarded(err, [&] {
      uint32_t host_size = 0;
      std::memcpy(&host_size, out, sizeof host_size);
      require(host_size >= offsetof(Table, destroy) + sizeof(Table::destroy), GR_VERSION,
              Kind::kKind, "the host's table of ", host_size, " bytes has no room for destroy");
      std::unique_ptr<T> self = make(host, options);
      Table table{};
      Kind::fill(table);
      table.struct_size = std::min(host_size, static_cast<uint32_t>(sizeof table));
      table.self = self.get();
      table.destroy = destroy;
      std::memcpy(out, &table, table.struct_size);
      (void)self.release();
    });
  }

  static constexpr gr_factory_t describe() {
    gr_factory_t factory{};
    factory.struct_size = sizeof(gr_factory_t);
    factory.kind = Kind::kKind;
    factory.name = T::kName;
    factory.version = T::kVersion;
    factory.help = T::kHelp;
    if constexpr (requires { T::kOptions; }) {
      factory.options = std::data(T::kOptions);
      factory.option_count = static_cast<uint32_t>(std::size(T::kOptions));
    }
    factory.option_stride = sizeof(gr_option_t);
    factory.probe = probe;
    factory.create = create;
    return factory;
  }

  static constexpr gr_factory_t kFactory = describe();
};

/// What GRADRACK_PLUGIN's entry does: negotiate, then list the factories. [main]
template <typename... Factories>
int32_t enter(const gr_host_t* host, gr_plugin_t* out, gr_error_t* err, const char* id,
              const char* version, int32_t (*stop)(int64_t, gr_error_t*),
              const void* (*get_extension)(const char*)) noexcept {
  static const gr_factory_t* const kTable[] = {Factories::get()...};
  const int32_t status = gr_negotiate(host, &out->abi_minor, err);
  if (status != GR_OK) return status;
  out->factory_count = static_cast<uint32_t>(std::size(kTable));
  out->factories = kTable;
  out->id = id;
  out->version = version;
  if (GR_HAS(out, stop)) out->stop = stop;
  if (GR_HAS(out, get_extension)) out->get_extension = get_extension;
  return GR_OK;
}

}  // namespace gradrack::sdk

/// Defines the one exported symbol of the library:
///   GRADRACK_PLUGIN("com.acme.lion", "1.0.0", gradrack::sdk::Optimizer<Lion>, ...)
/// A library with threads of its own uses GRADRACK_PLUGIN_WITH_STOP(id, version, stop, ...), with
/// a noexcept `stop` as gr_plugin_t describes it; one with extensions of the library as a whole
/// GRADRACK_PLUGIN_WITH_EXTENSIONS(id, version, get_extension, ...).
#define GRADRACK_PLUGIN(plugin_id, plugin_version, ...) \
  GRADRACK_PLUGIN_ENTRY(plugin_id, plugin_version, nullptr, nullptr, __VA_ARGS__)
#define GRADRACK_PLUGIN_WITH_STOP(plugin_id, plugin_version, plugin_stop, ...) \
  GRADRACK_PLUGIN_ENTRY(plugin_id, plugin_version, plugin_stop, nullptr, __VA_ARGS__)
#define GRADRACK_PLUGIN_WITH_EXTENSIONS(plugin_id, plugin_version, plugin_extension, ...) \
  GRADRACK_PLUGIN_ENTRY(plugin_id, plugin_version, nullptr, plugin_extension, __VA_ARGS__)
#define GRADRACK_PLUGIN_ENTRY(plugin_id, plugin_version, plugin_stop, plugin_extension, ...)   \
  namespace {                                                                                  \
  int32_t gradrack_entry(const gr_host_t* host, gr_plugin_t* out, gr_error_t* err) noexcept {  \
    return ::gradrack::sdk::enter<__VA_ARGS__>(host, out, err, plugin_id, plugin_version,      \
                                               plugin_stop, plugin_extension);                 \
  }                                                                                            \
  }                                                                                            \
  extern "C" {                                                                                 \
  GR_EXPORT extern const gr_plugin_header_t gradrack_plugin_v1;                                \
  const gr_plugin_header_t gradrack_plugin_v1 = {GR_PLUGIN_MAGIC,  sizeof(gr_plugin_header_t), \
                                                 GR_ABI_MAJOR,     GR_ABI_MIN_MINOR,           \
                                                 GR_ABI_MAX_MINOR, gradrack_entry};            \
  }
