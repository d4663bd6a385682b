// SPDX-License-Identifier: Apache-2.0
// Flags of a shared library: see elf_flags.hpp. Every offset is checked before it is used.
#include "sdk/conformance/elf_flags.hpp"

#include <elf.h>

#include <cstring>
#include <map>
#include <optional>

namespace gradrack::conform {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  Result<ElfFlags> run() {
    const auto header = at<Elf64_Ehdr>(0);
    if (!header) return invalid_argument("its ELF header is cut off");
    for (uint64_t k = 0; k < header->e_phnum; ++k) {
      const auto segment = at<Elf64_Phdr>(header->e_phoff + k * sizeof(Elf64_Phdr));
      if (!segment) return invalid_argument("its program headers leave the file");
      segments_.push_back(*segment);
    }
    ElfFlags flags;
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_GNU_STACK) continue;
      flags.stack_known = true;
      flags.executable_stack = (segment.p_flags & PF_X) != 0;
    }
    read_dynamic();
    const uint64_t plain = tag(DT_FLAGS), more = tag(DT_FLAGS_1);
    flags.binds_now = (plain & DF_BIND_NOW) != 0 || (more & DF_1_NOW) != 0 || has(DT_BIND_NOW);
    flags.nodelete = (more & DF_1_NODELETE) != 0;
    flags.text_relocations = (plain & DF_TEXTREL) != 0 || has(DT_TEXTREL);
    GR_TRY(read_symbols(&flags));
    return flags;
  }

 private:
  template <typename T>
  std::optional<T> at(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  void read_dynamic() {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_DYNAMIC) continue;
      for (uint64_t k = 0; k < segment.p_filesz / sizeof(Elf64_Dyn); ++k) {
        const auto entry = at<Elf64_Dyn>(segment.p_offset + k * sizeof(Elf64_Dyn));
        if (!entry || entry->d_tag == DT_NULL) break;
        tags_[entry->d_tag] = entry->d_un.d_val;
      }
    }
  }

  bool has(int64_t name) const { return tags_.count(name) > 0; }
  uint64_t tag(int64_t name) const { return has(name) ? tags_.at(name) : 0; }

  std::optional<uint64_t> file_offset(uint64_t address) const {
    for (const Elf64_Phdr& s : segments_) {
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) {
        return address - s.p_vaddr + s.p_offset;
      }
    }
    return std::nullopt;
  }

  // Undefined symbols come before the defined ones that the hash table holds, so the first hashed
  // index bounds them; with the old hash table the count is written.
  std::optional<uint64_t> undefined_bound() const {
    if (has(DT_GNU_HASH)) {
      const auto offset = file_offset(tag(DT_GNU_HASH));
      const auto first = offset ? at<uint32_t>(*offset + 4) : std::nullopt;
      return first ? std::optional<uint64_t>(*first) : std::nullopt;
    }
    const auto offset = file_offset(tag(DT_HASH));
    const auto count = offset ? at<uint32_t>(*offset + 4) : std::nullopt;
    return count ? std::optional<uint64_t>(*count) : std::nullopt;
  }

  Status read_symbols(ElfFlags* flags) const {
    const auto symbols = file_offset(tag(DT_SYMTAB));
    const auto strings = file_offset(tag(DT_STRTAB));
    const auto bound = undefined_bound();
    if (!symbols || !strings || !bound) return invalid_argument("it has no dynamic symbols");
    for (uint64_t k = 1; k < *bound; ++k) {
      const auto symbol = at<Elf64_Sym>(*symbols + k * sizeof(Elf64_Sym));
      if (!symbol) return invalid_argument("its symbols leave the file");
      const bool strong = ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL;
      if (symbol->st_shndx != SHN_UNDEF || !strong) continue;
      const uint64_t name = *strings + symbol->st_name;
      if (name >= bytes_.size()) return invalid_argument("a symbol's name leaves the file");
      const std::string_view rest = bytes_.substr(name);
      flags->undefined.emplace_back(rest.substr(0, rest.find('\0')));
    }
    return {};
  }

  std::string_view bytes_;
  std::vector<Elf64_Phdr> segments_;
  std::map<int64_t, uint64_t> tags_;
};

}  // namespace

Result<ElfFlags> read_elf_flags(std::string_view bytes) { return Reader(bytes).run(); }

}  // namespace gradrack::conform
