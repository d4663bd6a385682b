// SPDX-License-Identifier: Apache-2.0
// Writing manifests: from a library to what its manifest says.
//
// Used by `gradrack plugins manifest` and by gradrack-probe --manifest, which gradrack_add_plugin
// runs after linking. Invariant: everything comes from the library's bytes or from its own answers,
// nothing from the machine, so that equal libraries have equal manifests.
#pragma once

#include <string>
#include <string_view>

#include "core/plugin/elf_file.hpp"
#include "core/plugin/library.hpp"
#include "core/plugin/manifest.hpp"

namespace gradrack {

/// What a loaded library says of itself, as a verdict without runtimes; its status is OK.
Verdict answers_of(const Library& library);

/// The manifest of the library at `path`. `bytes` are the file's, `verdict` what the library
/// answered. Threading is read off the imports: "openmp" (needs an OpenMP runtime), "own" (starts
/// threads), else "none"; `needs` are the needed libraries that not every system has.
Result<Manifest> describe_library(const std::string& path, std::string_view bytes,
                                  const Verdict& verdict);

/// The same for a library that is loaded for it, into this process: for gradrack-probe.
Result<Manifest> load_and_describe(const std::string& path);

}  // namespace gradrack
