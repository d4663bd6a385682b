// SPDX-License-Identifier: Apache-2.0
// Where the system's loader looks for a library, told beforehand: advice for messages.
//
// Used when a library could not be loaded, to say what was looked for and where. Invariant: nothing
// is refused for what stands here, since the loader's own rules are richer than these (cache
// flavours, hardware folders, libraries already in memory).
#pragma once

#include <string>
#include <vector>

#include "core/plugin/elf_file.hpp"

namespace gradrack {

/// The folders in the loader's order for a library at `path`: RUNPATH with $ORIGIN replaced,
/// LD_LIBRARY_PATH, the system's folders. Each with where it comes from: "/x/lib (its RUNPATH)".
/// The loader takes LD_LIBRARY_PATH before RUNPATH, and so does this list.
std::vector<std::string> loader_folders(const ElfFile& elf, const std::string& path);

/// The needed libraries of `elf` that are in none of those folders, nor in the loader's cache.
std::vector<std::string> libraries_not_seen(const ElfFile& elf, const std::string& path);

/// " (looked for in A, B and the loader's cache)".
std::string looked_for_text(const ElfFile& elf, const std::string& path);

}  // namespace gradrack
