// SPDX-License-Identifier: Apache-2.0
// One plugin library: load it, check its header before any call, check all that it declares.
//
// Second step of plugin/. Invariant: a Library that was returned is wholly usable and stays mapped
// for the life of the process; one fault anywhere refuses all of it, with the reason.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/config/options.hpp"
#include "gradrack/plugin.h"

namespace gradrack {

/// One thing that a library can make, copied out of its gr_factory_t and checked.
struct Factory {
  std::string kind;
  std::string name;
  std::string version;
  std::string help;
  OptionTable options;
  std::string library;              ///< path
  const gr_host_t* host = nullptr;  ///< the table to hand to probe and create
  int32_t (*probe)(const gr_host_t*, gr_error_t*) = nullptr;  ///< may be NULL
  int32_t (*create)(const gr_host_t*, const gr_options_t*, void*, gr_error_t*) = nullptr;

  bool declares(std::string_view option) const;
  /// "optimizer 'adamw' (/path/of/the/library.so)", for messages.
  std::string text() const;
};

struct Library {
  std::string path;
  std::string id;
  std::string version;
  uint32_t abi_minor = 0;
  std::vector<Factory> factories;
  const void* (*get_extension)(const char* id) = nullptr;  ///< of the library; may be NULL
};

/// The kinds this host knows, in the order of a run file.
const std::vector<std::string>& plugin_kinds();

/// Loads the library at an absolute path, once a process: asked again, it gives the same library
/// without another call of its entry. The error says what is wrong and how to mend it:
/// GR_UNSUPPORTED when the system cannot load it (missing library, symbol, wrong machine),
/// GR_VERSION when the ABI versions do not meet, GR_INVALID_ARGUMENT when it breaks the contract.
/// [main]
Result<Library> load_library(const std::string& path);

/// The second half of loading: calls the entry of a checked header and reads what it lists into
/// `library`, whose path is set. Errors as load_library. [main]
Status enter_library(const gr_plugin_header_t& header, Library* library);

/// The system's loader message, reworded: which library or symbol is missing, what to do. `looked`
/// is where a needed library was looked for, as looked_for_text of elf_needs.hpp says it.
std::string explain_load_error(const std::string& path, const std::string& system_text,
                               const std::string& looked = "");

}  // namespace gradrack
