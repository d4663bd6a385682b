// SPDX-License-Identifier: Apache-2.0
// host_identity() of verdict_cache.hpp: what a verdict depends on besides files of the library.
//
// Invariant: two machines or builds on which a library can behave differently have two texts. The
// CPU is known by its feature words, not by its name: a virtual machine may hide some.
#include <link.h>
#include <sys/auxv.h>

#include <cstdlib>
#include <cstring>

#include "core/plugin/host_table.hpp"
#include "core/plugin/verdict_cache.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace gradrack {
namespace {

void add_hex(uint64_t number, std::string* text) {
  char digits[24];
  (void)std::snprintf(digits, sizeof digits, ".%llx", static_cast<unsigned long long>(number));
  *text += digits;
}

std::string cpu_features() {
  std::string text;
  add_hex(getauxval(AT_HWCAP), &text);
  add_hex(getauxval(AT_HWCAP2), &text);
#if defined(__x86_64__) || defined(__i386__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) {
    add_hex(a, &text);  // family, model, stepping
    add_hex(c, &text);
    add_hex(d, &text);
    if ((c & bit_OSXSAVE) != 0) {  // which registers the system saves: AVX needs it as much
      unsigned low = 0, high = 0;
      __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
      add_hex(low, &text);
    }
  }
  for (unsigned leaf = 0; leaf < 2; ++leaf) {
    if (__get_cpuid_count(7, leaf, &a, &b, &c, &d) == 0) continue;
    for (const unsigned word : {a, b, c, d}) add_hex(word, &text);
  }
#endif
  return text;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The note that the linker leaves in the program; "" when it was linked without one.
std::string build_id() {
  std::string id;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        for (int k = 0; k < info->dlpi_phnum; ++k) {
          const ElfW(Phdr)& part = info->dlpi_phdr[k];
          if (part.p_type != PT_NOTE) continue;
          const char* at = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
          const char* end = at + part.p_memsz;
          while (end - at >= static_cast<ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof note);
            const char* name = at + sizeof note;
            const char* bytes = name + ((note.n_namesz + 3) & ~3u);
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                std::memcmp(name, "GNU", 4) == 0) {
              for (uint32_t b = 0; b < note.n_descsz; ++b) {
                add_hex(static_cast<unsigned char>(bytes[b]), static_cast<std::string*>(out));
              }
            }
            at = bytes + ((note.n_descsz + 3) & ~3u);
          }
        }
        return 1;  // the first is the program itself
      },
      &id);
  return id;
}

}  // namespace

const std::string& host_identity() {
  static const auto* text = new std::string(
      "gradrack " + host_version() + " build" + build_id() + " cpu" + cpu_features() + " path " +
      variable("LD_LIBRARY_PATH") + " preload " + variable("LD_PRELOAD"));
  return *text;
}

}  // namespace gradrack
