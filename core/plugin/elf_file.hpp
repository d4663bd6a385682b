// SPDX-License-Identifier: Apache-2.0
// What a shared library says of itself, read from its bytes; nothing is loaded, no code runs.
//
// Part of the first look at a library, after trust.hpp and before the probe. The reader follows the
// loader: program headers and the dynamic segment, not section headers, which may be stripped.
// Invariant: any bytes give an answer; every offset and count is checked against the file before it
// is used. It does not resolve symbols and does not follow needed libraries (elf_needs.hpp looks
// for those, for advice alone).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"
#include "gradrack/plugin.h"

namespace gradrack {

/// A version of a needed library's symbols that must be there: {"libc.so.6", "GLIBC_2.34"}.
struct ElfVersionNeed {
  std::string library;
  std::string version;
};

struct ElfFile {
  std::string soname;
  std::string runpath;  ///< DT_RUNPATH, else DT_RPATH
  std::vector<std::string> needed;
  std::vector<ElfVersionNeed> version_needs;
  std::vector<std::string> exports;  ///< dynamic symbols that are defined here
  std::vector<std::string> imports;  ///< dynamic symbols that are wanted from elsewhere
  /// The bytes of `gradrack_plugin_v1`. `entry` is always NULL: the loader fills it in.
  std::optional<gr_plugin_header_t> header;
};

/// Reads an ELF64 shared library for this machine from its whole bytes. The errors finish the
/// sentence "FILE: ...". GR_UNSUPPORTED: a text file, an empty or truncated one, 32 bits, another
/// architecture, a program or an object file; GR_INVALID_ARGUMENT: tables that contradict
/// themselves. [any]
Result<ElfFile> parse_elf(std::string_view bytes);

/// What is wrong with the entry header before anything is loaded: no entry symbol, and what
/// check_plugin_header finds.
Status check_elf_header(const ElfFile& elf);

/// Magic number, size, major version and range of minors against this host's. GR_VERSION when the
/// versions do not meet, with both and what to upgrade; GR_INVALID_ARGUMENT otherwise. `entry` is
/// not looked at.
Status check_plugin_header(const gr_plugin_header_t& header);

}  // namespace gradrack
