// SPDX-License-Identifier: Apache-2.0
// The entry header against this host's versions: see elf_file.hpp. The same judgement serves the
// bytes of a file that is not loaded and the symbol of one that is.
#include <cstdlib>

#include "core/plugin/elf_file.hpp"
#include "core/plugin/host_table.hpp"

namespace gradrack {
namespace {

constexpr std::string_view kEntryStem = "gradrack_plugin_v";

std::string range_text(uint32_t major, uint32_t min, uint32_t max) {
  return std::to_string(major) + "." + std::to_string(min) +
         (min == max ? "" : ".." + std::to_string(max));
}

std::string host_range() {
  return "gradrack " + host_version() + " speaks " +
         range_text(GR_ABI_MAJOR, kHostMinMinor, kHostMaxMinor);
}

}  // namespace

Status check_plugin_header(const gr_plugin_header_t& header) {
  if (header.magic != GR_PLUGIN_MAGIC) {
    return invalid_argument("its " GR_ENTRY_SYMBOL
                            " does not begin with the magic number: define it with "
                            "GR_PLUGIN of the SDK");
  }
  const bool major_differs = header.abi_major != GR_ABI_MAJOR;
  if (!major_differs && header.struct_size < sizeof header) {
    return invalid_argument("its header has " + std::to_string(header.struct_size) + " bytes, " +
                            std::to_string(sizeof header) +
                            " wanted: define it with GR_PLUGIN of the SDK");
  }
  if (!major_differs && header.abi_min_minor <= header.abi_max_minor &&
      header.abi_min_minor <= kHostMaxMinor && header.abi_max_minor >= kHostMinMinor) {
    return {};
  }
  const bool older =
      header.abi_major < GR_ABI_MAJOR || (!major_differs && header.abi_max_minor < kHostMinMinor);
  return {GR_VERSION, "it speaks plugin ABI " +
                          range_text(header.abi_major, header.abi_min_minor, header.abi_max_minor) +
                          ", " + host_range() +
                          (older ? ": rebuild the plugin with this SDK" : ": upgrade gradrack")};
}

Status check_elf_header(const ElfFile& elf) {
  if (elf.header) return check_plugin_header(*elf.header);
  for (const std::string& name : elf.exports) {
    if (name.size() <= kEntryStem.size() || name.compare(0, kEntryStem.size(), kEntryStem) != 0) {
      continue;
    }
    const std::string major = name.substr(kEntryStem.size());
    const bool older = std::strtoul(major.c_str(), nullptr, 10) < GR_ABI_MAJOR;
    return {GR_VERSION, "it speaks plugin ABI " + major + " alone, " + host_range() +
                            (older ? ": rebuild the plugin with this SDK" : ": upgrade gradrack")};
  }
  return invalid_argument("it has no symbol " GR_ENTRY_SYMBOL ": it is not a plugin of gradrack " +
                          std::to_string(GR_ABI_MAJOR) + ".x, or was built without GR_PLUGIN");
}

}  // namespace gradrack
