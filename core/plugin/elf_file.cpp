// SPDX-License-Identifier: Apache-2.0
// Reading ELF: see elf_file.hpp. Layouts are those of <elf.h> (System V ABI, gABI chapter 4 and 5).
#include "core/plugin/elf_file.hpp"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstring>

namespace gradrack {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kHostMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kHostMachine = EM_AARCH64;
#else
#error "name this machine's e_machine number here"
#endif

// More than any real library has; keeps a forged count from costing time.
constexpr uint64_t kMaxSymbols = 1u << 20;
constexpr uint64_t kMaxDynamic = 4096;
constexpr uint64_t kMaxNameBytes = 4096;

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "AArch64";
    case EM_386:
      return "x86 (32-bit)";
    case EM_ARM:
      return "ARM (32-bit)";
    case EM_RISCV:
      return "RISC-V";
    case EM_PPC64:
      return "POWER";
    case EM_S390:
      return "S/390";
    default:
      return "machine number " + std::to_string(machine);
  }
}

Status malformed(const std::string& what) {
  return invalid_argument("it is a damaged shared library (" + what + "): build or copy it again");
}

bool is_text(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, 64);
  return std::all_of(head.begin(), head.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u >= 0x80 || std::isprint(u) != 0 || std::isspace(u) != 0;
  });
}

class ElfReader {
 public:
  explicit ElfReader(std::string_view bytes) : bytes_(bytes) {}

  Result<ElfFile> read();

 private:
  // False when [offset, offset + sizeof(T)) is not in the file.
  template <typename T>
  bool get(uint64_t offset, T* out) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return false;
    std::memcpy(out, bytes_.data() + offset, sizeof(T));
    return true;
  }

  Status check_identity();
  Status read_segments();
  Status read_symbols(ElfFile* elf) const;
  void read_version_needs(ElfFile* elf) const;
  bool to_offset(uint64_t address, uint64_t* offset) const;
  bool text_at(uint64_t index, std::string* out) const;
  uint64_t symbol_count() const;
  uint64_t gnu_symbol_count(uint64_t address) const;
  uint64_t tag(int64_t name) const;  // 0 when the dynamic segment has none

  std::string_view bytes_;
  Elf64_Ehdr head_ = {};
  std::vector<Elf64_Phdr> loads_;
  std::vector<Elf64_Dyn> dynamic_;
};

Status ElfReader::check_identity() {
  if (bytes_.empty()) return unsupported("it is an empty file: build or copy it again");
  if (bytes_.substr(0, 4) != std::string_view("\x7f"
                                              "ELF",
                                              4)) {
    return unsupported(is_text(bytes_) ? "it is a text file, not a shared library: build it again, "
                                         "or remove it"
                                       : "it is not a shared library (no ELF magic number): build "
                                         "it again, or remove it");
  }
  if (!get(0, &head_)) return unsupported("it is cut short: not even its first header is whole");
  if (head_.e_ident[EI_CLASS] != ELFCLASS64) {
    return unsupported("it is a 32-bit library, gradrack is a 64-bit program: build it for " +
                       machine_name(kHostMachine));
  }
  if (head_.e_ident[EI_DATA] != ELFDATA2LSB || head_.e_machine != kHostMachine) {
    return unsupported("it was built for " +
                       (head_.e_ident[EI_DATA] != ELFDATA2LSB ? std::string("a big-endian machine")
                                                              : machine_name(head_.e_machine)) +
                       ", this machine is " + machine_name(kHostMachine) + ": build it here");
  }
  if (head_.e_type == ET_DYN) return {};
  if (head_.e_type == ET_EXEC) return unsupported("it is a program, not a shared library");
  if (head_.e_type == ET_REL) {
    return unsupported("it is an object file: link it with gradrack_add_plugin");
  }
  return unsupported("it is no shared library (ELF type " + std::to_string(head_.e_type) + ")");
}

Status ElfReader::read_segments() {
  if (head_.e_phentsize != sizeof(Elf64_Phdr)) return malformed("size of a program header");
  uint64_t wanted_bytes = head_.e_phoff;
  for (uint64_t k = 0; k < head_.e_phnum; ++k) {
    Elf64_Phdr segment;
    if (!get(head_.e_phoff + k * sizeof segment, &segment)) {
      return unsupported("it is cut short: its program headers lie beyond its end");
    }
    if (segment.p_type == PT_LOAD) {
      loads_.push_back(segment);
      const uint64_t end = segment.p_offset + segment.p_filesz;
      if (end < segment.p_offset) return malformed("size of a segment");
      wanted_bytes = std::max(wanted_bytes, end);
    } else if (segment.p_type == PT_DYNAMIC) {
      Elf64_Dyn entry;
      const uint64_t count = std::min(segment.p_filesz / sizeof entry, kMaxDynamic);
      for (uint64_t i = 0; i < count && get(segment.p_offset + i * sizeof entry, &entry); ++i) {
        if (entry.d_tag == DT_NULL) break;
        dynamic_.push_back(entry);
      }
    }
  }
  if (wanted_bytes > bytes_.size()) {
    return unsupported("it is cut short: it has " + std::to_string(bytes_.size()) +
                       " bytes and needs " + std::to_string(wanted_bytes) +
                       ": build or copy it again");
  }
  if (loads_.empty() || dynamic_.empty()) return malformed("no dynamic segment");
  return {};
}

uint64_t ElfReader::tag(int64_t name) const {
  for (const Elf64_Dyn& entry : dynamic_) {
    if (entry.d_tag == name) return entry.d_un.d_val;
  }
  return 0;
}

// Address 0 is what an absent table has, and no table lies there: the ELF header does.
bool ElfReader::to_offset(uint64_t address, uint64_t* offset) const {
  if (address == 0) return false;
  for (const Elf64_Phdr& segment : loads_) {
    if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
    *offset = segment.p_offset + (address - segment.p_vaddr);
    return true;
  }
  return false;
}

// A name of the dynamic string table; false when it is not a text within it.
bool ElfReader::text_at(uint64_t index, std::string* out) const {
  uint64_t table = 0;
  const uint64_t table_bytes = tag(DT_STRSZ);
  if (index >= table_bytes || !to_offset(tag(DT_STRTAB), &table)) return false;
  if (table > bytes_.size() || index >= bytes_.size() - table) return false;
  const uint64_t most =
      std::min({bytes_.size() - table - index, table_bytes - index, kMaxNameBytes});
  const std::string_view text = bytes_.substr(table + index, most);
  const size_t end = text.find('\0');
  if (end == std::string_view::npos) return false;
  *out = text.substr(0, end);
  return true;
}

// The table of hashes is the only place that says how many dynamic symbols there are.
uint64_t ElfReader::gnu_symbol_count(uint64_t address) const {
  uint64_t at = 0;
  uint32_t head[4];  // buckets, first symbol hashed, words of the filter, shift
  if (!to_offset(address, &at) || !get(at, &head)) return 0;
  const uint64_t buckets = at + sizeof head + uint64_t{head[2]} * sizeof(uint64_t);
  const uint64_t chains = buckets + uint64_t{head[0]} * sizeof(uint32_t);
  uint64_t last = 0;
  for (uint64_t k = 0; k < std::min<uint64_t>(head[0], kMaxSymbols); ++k) {
    uint32_t first = 0;
    if (!get(buckets + k * sizeof first, &first)) break;
    last = std::max<uint64_t>(last, first);
  }
  if (last < head[1]) return head[1];
  for (uint64_t steps = 0; steps < kMaxSymbols; ++steps, ++last) {
    uint32_t hash = 0;
    if (!get(chains + (last - head[1]) * sizeof hash, &hash)) break;
    if ((hash & 1) != 0) return last + 1;  // end of the last chain
  }
  return last;
}

uint64_t ElfReader::symbol_count() const {
  uint64_t count = 0;
  uint64_t at = 0;
  uint32_t head[2];  // buckets, chains: one chain entry a symbol
  if (to_offset(tag(DT_HASH), &at) && get(at, &head)) count = head[1];
  if (tag(DT_GNU_HASH) != 0) count = std::max(count, gnu_symbol_count(tag(DT_GNU_HASH)));
  return std::min(count, kMaxSymbols);
}

Status ElfReader::read_symbols(ElfFile* elf) const {
  uint64_t table = 0;
  if (!to_offset(tag(DT_SYMTAB), &table)) return malformed("no symbol table");
  const uint64_t count = symbol_count();
  for (uint64_t k = 1; k < count; ++k) {
    Elf64_Sym symbol;
    if (!get(table + k * sizeof symbol, &symbol)) return malformed("symbol table beyond the end");
    const unsigned binding = ELF64_ST_BIND(symbol.st_info);
    if (binding != STB_GLOBAL && binding != STB_WEAK) continue;
    std::string name;
    if (!text_at(symbol.st_name, &name)) return malformed("name of a symbol");
    if (symbol.st_shndx == SHN_UNDEF) {
      elf->imports.push_back(std::move(name));
      continue;
    }
    if (name == GR_ENTRY_SYMBOL) {
      gr_plugin_header_t header = {};
      uint64_t at = 0;
      // What stands before `entry` is enough to judge; an older struct may end there.
      if (to_offset(symbol.st_value, &at) && at <= bytes_.size() &&
          bytes_.size() - at >= offsetof(gr_plugin_header_t, entry)) {
        std::memcpy(&header, bytes_.data() + at, offsetof(gr_plugin_header_t, entry));
      }
      elf->header = header;
    }
    elf->exports.push_back(std::move(name));
  }
  return {};
}

// Advice only, so what does not fit is passed over.
void ElfReader::read_version_needs(ElfFile* elf) const {
  uint64_t at = 0;
  if (!to_offset(tag(DT_VERNEED), &at)) return;
  const uint64_t libraries = std::min<uint64_t>(tag(DT_VERNEEDNUM), 4096);
  for (uint64_t k = 0; k < libraries; ++k) {
    Elf64_Verneed need;
    std::string library;
    if (!get(at, &need) || !text_at(need.vn_file, &library)) return;
    uint64_t next = at + need.vn_aux;
    for (uint32_t i = 0; i < need.vn_cnt; ++i) {
      Elf64_Vernaux version;
      std::string name;
      if (!get(next, &version) || !text_at(version.vna_name, &name)) break;
      elf->version_needs.push_back({library, std::move(name)});
      if (version.vna_next == 0 || elf->version_needs.size() > 4096) break;
      next += version.vna_next;
    }
    if (need.vn_next == 0) return;
    at += need.vn_next;
  }
}

Result<ElfFile> ElfReader::read() {
  GR_TRY(check_identity());
  GR_TRY(read_segments());
  if ((tag(DT_FLAGS_1) & DF_1_PIE) != 0) {
    return unsupported("it is a program, not a shared library");
  }
  ElfFile elf;
  for (const Elf64_Dyn& entry : dynamic_) {
    std::string text;
    const bool path = entry.d_tag == DT_RUNPATH || (entry.d_tag == DT_RPATH && elf.runpath.empty());
    if (!path && entry.d_tag != DT_NEEDED && entry.d_tag != DT_SONAME) continue;
    if (!text_at(entry.d_un.d_val, &text)) return malformed("name of a library");
    if (entry.d_tag == DT_NEEDED) elf.needed.push_back(text);
    if (entry.d_tag == DT_SONAME) elf.soname = text;
    if (path) elf.runpath = text;
  }
  GR_TRY(read_symbols(&elf));
  read_version_needs(&elf);
  return elf;
}

}  // namespace

Result<ElfFile> parse_elf(std::string_view bytes) { return ElfReader(bytes).read(); }

}  // namespace gradrack
