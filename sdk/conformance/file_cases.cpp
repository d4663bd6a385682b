// SPDX-License-Identifier: Apache-2.0
// Level 0: the file itself, read before it is loaded, and what it exports.
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/base/text.hpp"
#include "core/plugin/elf_file.hpp"
#include "core/plugin/elf_needs.hpp"
#include "core/plugin/trust.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/context.hpp"
#include "sdk/conformance/elf_flags.hpp"

namespace gradrack::conform {
namespace {

Result<ElfFile> elf_of(Context& context) {
  GR_ASSIGN(const std::string bytes, read_trusted(context.target().library, true));
  return parse_elf(bytes);
}

Result<ElfFlags> flags_of(Context& context) {
  GR_ASSIGN(const std::string bytes, read_trusted(context.target().library, true));
  GR_ASSIGN(const ElfFile elf, parse_elf(bytes));
  return read_elf_flags(bytes);
}

Outcome is_shared_library(Context& context) { return outcome_of(elf_of(context).status()); }

Outcome header_in_file(Context& context) {
  CONFORM_ASSIGN(const ElfFile elf, elf_of(context));
  return outcome_of(check_elf_header(elf));
}

Outcome one_export(Context& context) {
  CONFORM_ASSIGN(const ElfFile elf, elf_of(context));
  std::vector<std::string> others;
  for (const std::string& symbol : elf.exports) {
    if (symbol != GR_ENTRY_SYMBOL) others.push_back(symbol);
  }
  if (others.empty()) return pass();
  const size_t count = others.size();
  if (count > 8) others.resize(8);
  return fail("it exports " + std::to_string(count) + " symbols besides " GR_ENTRY_SYMBOL ": " +
              join(others) + (count > 8 ? ", ..." : "") +
              "; they can clash with another plugin's: link with gradrack_plugin.map");
}

Outcome binds_now(Context& context) {
  CONFORM_ASSIGN(const ElfFlags flags, flags_of(context));
  return flags.binds_now ? pass()
                         : fail(
                               "symbols are looked up late, so a missing one ends a run in the "
                               "middle: link with -z now");
}

Outcome nodelete(Context& context) {
  CONFORM_ASSIGN(const ElfFlags flags, flags_of(context));
  return flags.nodelete ? pass() : fail("it could be unmapped: link with -z nodelete");
}

Outcome stack(Context& context) {
  CONFORM_ASSIGN(const ElfFlags flags, flags_of(context));
  if (!flags.stack_known) return fail("it says nothing of its stack: link with -z noexecstack");
  return flags.executable_stack ? fail("it asks for an executable stack: link with -z noexecstack")
                                : pass();
}

Outcome text_relocations(Context& context) {
  CONFORM_ASSIGN(const ElfFlags flags, flags_of(context));
  return flags.text_relocations ? fail("it has text relocations: compile all of it with -fPIC")
                                : pass();
}

Outcome needed_found(Context& context) {
  CONFORM_ASSIGN(const ElfFile elf, elf_of(context));
  void* handle = dlopen(context.target().library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) return pass();
  const char* text = dlerror();
  return fail(explain_load_error(context.target().library, text != nullptr ? text : "") +
              looked_for_text(elf, context.target().library));
}

// A symbol must come from what the library itself names as needed: what happens to be in the
// program that loads it is luck. The loader is asked, so RUNPATH and dependencies of dependencies
// count.
Outcome no_undefined(Context& context) {
  CONFORM_ASSIGN(const ElfFile elf, elf_of(context));
  CONFORM_ASSIGN(const ElfFlags flags, flags_of(context));
  CONFORM_ASSIGN(Subject * subject, context.subject());
  (void)subject;
  std::vector<void*> needed;
  for (const std::string& name : elf.needed) {
    void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (handle != nullptr) needed.push_back(handle);
  }
  std::vector<std::string> missing;
  for (const std::string& symbol : flags.undefined) {
    bool found = false;
    for (void* handle : needed) {
      dlerror();
      (void)dlsym(handle, symbol.c_str());
      found = found || dlerror() == nullptr;
    }
    if (!found) missing.push_back(symbol);
  }
  if (missing.empty()) return pass();
  return fail("no library that it names as needed has " + join(missing) +
              ": link with -z defs, and name what has them");
}

// The registry refuses files that others may write, unless it is told not to.
Outcome file_mode(Context& context) {
  struct stat info = {};
  if (::stat(context.target().library.c_str(), &info) != 0) return fail("cannot be examined");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return pass();
  return fail("others than its owner may write the file, so hosts refuse it: chmod go-w " +
              context.target().library);
}

Outcome loads(Context& context) { return outcome_of(context.subject().status()); }

}  // namespace

void add_file_cases(const Target&, std::vector<Case>* cases) {
  const auto add = [&](const char* id, const char* title, Outcome (*run)(Context&)) {
    Case one{id, 0, title, run};
    one.batch = "L0";
    cases->push_back(std::move(one));
  };
  add("L0.elf", "it is a shared library for this machine", is_shared_library);
  add("L0.header", "the entry header can be read from the file", header_in_file);
  add("L0.exports", "it exports gradrack_plugin_v1 and nothing else", one_export);
  add("L0.bind_now", "symbols are bound when it is loaded", binds_now);
  add("L0.nodelete", "it stays mapped", nodelete);
  add("L0.stack", "no executable stack", stack);
  add("L0.text_relocations", "no text relocations", text_relocations);
  add("L0.mode", "nobody but its owner may write the file", file_mode);
  add("L0.needed", "the libraries that it needs are found", needed_found);
  add("L0.undefined", "each symbol comes from a library that it needs", no_undefined);
  add("L0.loads", "the system loads it and it has an entry header", loads);
}

}  // namespace gradrack::conform
