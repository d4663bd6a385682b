// SPDX-License-Identifier: Apache-2.0
// What level 0 asks of a file beyond core/plugin/elf_file.hpp: flags, undefined symbols, the stack.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"

namespace gradrack::conform {

struct ElfFlags {
  bool binds_now = false;              ///< DF_BIND_NOW, DF_1_NOW or DT_BIND_NOW
  bool nodelete = false;               ///< DF_1_NODELETE
  bool text_relocations = false;       ///< DT_TEXTREL or DF_TEXTREL
  bool stack_known = false;            ///< PT_GNU_STACK is there
  bool executable_stack = false;       ///< ... and executable
  std::vector<std::string> undefined;  ///< strong dynamic symbols that are not defined here
};

/// Reads bytes that parse_elf of elf_file.hpp accepted. GR_INVALID_ARGUMENT: a table leaves the
/// file.
Result<ElfFlags> read_elf_flags(std::string_view bytes);

}  // namespace gradrack::conform
