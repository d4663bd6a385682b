// SPDX-License-Identifier: Apache-2.0
// Loading one library: see library.hpp.
#include "core/plugin/library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <filesystem>
#include <map>
#include <new>
#include <set>

#include "core/base/text.hpp"
#include "core/plugin/elf_file.hpp"
#include "core/plugin/elf_needs.hpp"
#include "core/plugin/host_table.hpp"
#include "core/plugin/lifecycle.hpp"
#include "core/plugin/trust.hpp"

namespace gradrack {
namespace {

Status broken(const std::string& message) { return invalid_argument(message); }

bool is_name(const char* text) {
  const std::string_view name = text;
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

Status check_factory(const gr_factory_t* factory, size_t index) {
  const std::string which = "factory " + std::to_string(index);
  if (factory == nullptr) return broken(which + " is NULL");
  if (factory->struct_size < sizeof *factory) {
    return broken(which + ": struct_size is " + std::to_string(factory->struct_size) + ", " +
                  std::to_string(sizeof *factory) + " wanted");
  }
  const struct {
    const char* name;
    const char* text;
  } texts[] = {{"kind", factory->kind},
               {"name", factory->name},
               {"version", factory->version},
               {"help", factory->help}};
  for (const auto& [name, text] : texts) {
    if (text == nullptr) return broken(which + ": " + name + " is NULL");
  }
  if (!is_name(factory->name)) {
    return broken(which + ": name '" + factory->name + "' is not made of [a-z0-9_]");
  }
  if (factory->create == nullptr) {
    return broken(std::string(factory->kind) + " '" + factory->name + "': create is NULL");
  }
  return {};
}

// A library that also speaks a newer ABI may bring kinds that came after this host.
bool is_later_kind(const gr_plugin_header_t& header, const std::string& kind) {
  return header.abi_max_minor > kHostMaxMinor && !contains(plugin_kinds(), kind);
}

Status read_factories(const gr_plugin_header_t& header, const gr_plugin_t& plugin,
                      const gr_host_t* host, Library* library) {
  std::set<std::string> seen;
  for (uint32_t k = 0; k < plugin.factory_count; ++k) {
    const gr_factory_t* raw = plugin.factories[k];
    GR_TRY(check_factory(raw, k));
    if (is_later_kind(header, raw->kind)) continue;
    const std::string what = std::string(raw->kind) + " '" + raw->name + "'";
    const std::vector<std::string>& kinds = plugin_kinds();
    if (!contains(kinds, raw->kind)) {
      return broken(what + ": unknown kind" + did_you_mean(raw->kind, kinds) +
                    "; kinds are: " + join(kinds));
    }
    if (!seen.insert(what).second) return broken(what + " is listed twice");
    auto options = read_option_table(raw->options, raw->option_count, raw->option_stride);
    if (!options.ok()) return options.status().with_context(what);
    library->factories.push_back({raw->kind, raw->name, raw->version, raw->help,
                                  std::move(*options), library->path, host, raw->probe,
                                  raw->create});
  }
  return {};
}

}  // namespace

Status enter_library(const gr_plugin_header_t& header, Library* library) {
  const std::string stem = std::filesystem::path(library->path).stem().string();
  const gr_host_t* host = make_host_table(stem);
  gr_plugin_t plugin = {};
  plugin.struct_size = sizeof plugin;
  gr_error_t err = {};
  try {
    const int32_t code = header.entry(host, &plugin, &err);
    if (code < GR_OK || code > GR_INTERNAL) {
      return broken("its entry returned the unknown status " + std::to_string(code));
    }
    GR_TRY(status_from(code, err).with_context("its entry refused"));
  } catch (...) {
    return broken("its entry threw an exception across the C interface");
  }
  if (plugin.abi_minor > kHostMaxMinor || plugin.abi_minor < header.abi_min_minor) {
    return {GR_VERSION, "its entry chose ABI " + std::to_string(GR_ABI_MAJOR) + "." +
                            std::to_string(plugin.abi_minor) + ", outside what it and gradrack " +
                            host_version() + " speak"};
  }
  if (plugin.factory_count == 0 || plugin.factories == nullptr) {
    return broken("it offers nothing (no factories)");
  }
  library->id = plugin.id != nullptr ? plugin.id : "";
  library->version = plugin.version != nullptr ? plugin.version : "";
  library->abi_minor = plugin.abi_minor;
  library->get_extension = plugin.get_extension;
  if (library->id.empty()) return broken("its id is empty");
  GR_TRY(read_factories(header, plugin, host, library));
  library_entered(library->path, host, plugin.stop);
  return {};
}

namespace {

// For the message of a library that did not load.
std::string where_looked(const std::string& path) {
  const Result<std::string> bytes = read_trusted(path, true);
  if (!bytes.ok()) return "";
  const Result<ElfFile> elf = parse_elf(*bytes);
  return elf.ok() ? looked_for_text(*elf, path) : "";
}

Result<Library> open_library(const std::string& path) {
  // On the heap and never deleted: a library once loaded stays (threads and thread-locals of its
  // own may outlive any instance), and so does its handle.
  auto* shared = new boost::dll::shared_library;
  boost::dll::fs::error_code error;
  dlerror();
  try {
    shared->load(path, error, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  } catch (const std::bad_alloc&) {
    delete shared;
    throw;  // no reason to take another plugin
  } catch (const std::exception& exception) {
    delete shared;
    return unsupported(std::string("loading it failed: ") + exception.what());
  }
  if (error) {
    const char* text = dlerror();
    delete shared;
    const std::string system_text = text != nullptr ? text : error.message();
    return unsupported(explain_load_error(path, system_text, where_looked(path)));
  }
  // Pinned even where the plugin was linked without -z nodelete.
  (void)dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
  const auto* header =
      static_cast<const gr_plugin_header_t*>(dlsym(shared->native(), GR_ENTRY_SYMBOL));
  if (header == nullptr) {
    return broken("it has no symbol " GR_ENTRY_SYMBOL ": it is not a plugin of gradrack " +
                  std::to_string(GR_ABI_MAJOR) + ".x, or was built without GR_PLUGIN");
  }
  GR_TRY(check_plugin_header(*header));
  if (header->entry == nullptr) return broken("its header has no entry function");
  Library library;
  library.path = path;
  GR_TRY(enter_library(*header, &library));
  return library;
}

}  // namespace

bool Factory::declares(std::string_view option) const {
  return std::any_of(options.begin(), options.end(),
                     [&](const gr_option_t& row) { return option == row.name; });
}

std::string Factory::text() const { return kind + " '" + name + "' (" + library + ")"; }

const std::vector<std::string>& plugin_kinds() {
  static const auto* kinds = new std::vector<std::string>{
      "model", "data", "optimizer", "lr_schedule", "precision", "scheduler", "backend", "metrics"};
  return *kinds;
}

std::string explain_load_error(const std::string& path, const std::string& system_text,
                               const std::string& looked) {
  const auto between = [&](const char* from, const char* to) -> std::string {
    const size_t begin = system_text.find(from);
    if (begin == std::string::npos) return "";
    const size_t start = begin + std::string_view(from).size();
    return system_text.substr(start, system_text.find(to, start) - start);
  };
  const std::string opened = system_text.substr(0, system_text.find(':'));
  std::string advice;
  if (system_text.find("cannot open shared object file") != std::string::npos && opened != path) {
    advice = "it needs " + opened + ", which was not found" + looked +
             ": install the package that has it, or name its folder in LD_LIBRARY_PATH";
  } else if (system_text.find("undefined symbol") != std::string::npos) {
    advice = "it uses the symbol '" + between("undefined symbol: ", " ") +
             "', which nothing that it links has: link the library that defines it (-z defs finds "
             "this while building)";
  } else if (system_text.find("' not found") != std::string::npos) {
    advice = "it was built for a newer system (" + between("version `", "'") +
             "): rebuild it on this one";
  } else if (system_text.find("ELF") != std::string::npos ||
             system_text.find("file too short") != std::string::npos) {
    advice = "it is not a shared library for this machine: build it again, or remove it";
  } else {
    advice = "the system cannot load it";
  }
  return advice + " [" + system_text + "]";
}

Result<Library> load_library(const std::string& path) {
  GR_TRY(plugins_still_run());
  // Of each path, for the life of the process: entry is called once. [main] alone.
  static auto* loaded = new std::map<std::string, Library>;
  const auto known = loaded->find(path);
  if (known != loaded->end()) return known->second;
  GR_ASSIGN(Library library, open_library(path));
  loaded->emplace(path, library);
  return library;
}

}  // namespace gradrack
