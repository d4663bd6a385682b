// SPDX-License-Identifier: Apache-2.0
// Writing manifests: see describe.hpp.
#include "core/plugin/describe.hpp"

#include <algorithm>
#include <filesystem>

#include "core/plugin/digest.hpp"
#include "core/plugin/runtimes.hpp"
#include "core/plugin/trust.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

bool is_in_every_system(const std::string& library) {
  for (const char* stem : {"libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "libpthread.so",
                           "libdl.so", "librt.so", "ld-linux"}) {
    if (library.starts_with(stem)) return true;
  }
  return false;
}

bool is_openmp(const std::string& library) { return runtime_kind(library) == "OpenMP"; }

// C threads, C11 threads, std::thread.
bool starts_threads(const std::string& symbol) {
  return symbol == "pthread_create" || symbol == "thrd_create" ||
         symbol.starts_with("_ZNSt6thread15_M_start_thread");
}

}  // namespace

Result<Manifest> describe_library(const std::string& path, std::string_view bytes,
                                  const Verdict& verdict) {
  GR_ASSIGN(const ElfFile elf, parse_elf(bytes));
  GR_TRY(check_elf_header(elf));
  Manifest manifest;
  manifest.file = manifest_path_of(path);
  manifest.id = verdict.id;
  manifest.version = verdict.version;
  manifest.abi_major = elf.header->abi_major;
  manifest.abi_min = elf.header->abi_min_minor;
  manifest.abi_max = elf.header->abi_max_minor;
  manifest.library = fs::path(path).filename().string();
  manifest.sha256 = sha256_hex(bytes);
  manifest.kinds = verdict.offers;
  const bool openmp = std::any_of(elf.needed.begin(), elf.needed.end(), is_openmp);
  const bool own = std::any_of(elf.imports.begin(), elf.imports.end(), starts_threads);
  manifest.threading = openmp ? "openmp" : own ? "own" : "none";
  for (const std::string& library : elf.needed) {
    if (!is_in_every_system(library)) manifest.needs.push_back(library);
  }
  return manifest;
}

Verdict answers_of(const Library& library) {
  Verdict verdict;
  verdict.id = library.id;
  verdict.version = library.version;
  verdict.abi_minor = library.abi_minor;
  for (const Factory& factory : library.factories) {
    verdict.offers.push_back({factory.kind, factory.name, factory.version, factory.help});
  }
  return verdict;
}

Result<Manifest> load_and_describe(const std::string& path) {
  GR_ASSIGN(const std::string bytes, read_trusted(path, true));
  GR_ASSIGN(const ElfFile elf, parse_elf(bytes));
  GR_TRY(check_elf_header(elf));
  GR_ASSIGN(const Library library, load_library(path));
  return describe_library(path, bytes, answers_of(library));
}

}  // namespace gradrack
