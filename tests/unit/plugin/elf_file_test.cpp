// SPDX-License-Identifier: Apache-2.0
// Reading libraries without loading them: what is said of good ones, wrong ones and any bytes.
#include "core/plugin/elf_file.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "core/plugin/elf_needs.hpp"

namespace gradrack {
namespace {

std::string fault_path(const std::string& name) {
  return std::string(GRADRACK_FAULT_DIR) + "/" + name + "/" + name + ".so";
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

const std::string& good() {
  static const auto* bytes = new std::string(bytes_of(fault_path("good")));
  return *bytes;
}

// The good library with one field of its ELF header replaced.
template <typename T>
std::string with(size_t offset, T value) {
  std::string bytes = good();
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

std::string refusal(const std::string& bytes) {
  const Result<ElfFile> elf = parse_elf(bytes);
  return elf.ok() ? check_elf_header(*elf).message() : elf.status().message();
}

TEST(ElfFile, ReadsWhatALibraryExportsAndNeeds) {
  const Result<ElfFile> elf = parse_elf(good());
  ASSERT_TRUE(elf.ok()) << elf.status().message();
  EXPECT_TRUE(std::count(elf->exports.begin(), elf->exports.end(), GR_ENTRY_SYMBOL) == 1);
  EXPECT_TRUE(std::count(elf->needed.begin(), elf->needed.end(), "libc.so.6") == 1);
  EXPECT_TRUE(std::any_of(
      elf->version_needs.begin(), elf->version_needs.end(), [](const ElfVersionNeed& need) {
        return need.library == "libc.so.6" && need.version.compare(0, 6, "GLIBC_") == 0;
      }));
}

TEST(ElfFile, ReadsTheEntryHeaderFromTheFile) {
  const Result<ElfFile> elf = parse_elf(good());
  ASSERT_TRUE(elf.ok() && elf->header.has_value());
  EXPECT_EQ(elf->header->magic, GR_PLUGIN_MAGIC);
  EXPECT_EQ(elf->header->struct_size, sizeof(gr_plugin_header_t));
  EXPECT_EQ(elf->header->abi_major, static_cast<uint32_t>(GR_ABI_MAJOR));
  EXPECT_EQ(elf->header->entry, nullptr);
  EXPECT_TRUE(check_elf_header(*elf).ok());
}

TEST(ElfFile, PLG03_OtherMajorIsRefusedFromTheFileAlone) {
  const Result<ElfFile> elf = parse_elf(bytes_of(fault_path("major")));
  ASSERT_TRUE(elf.ok());
  const Status status = check_elf_header(*elf);
  EXPECT_EQ(status.code(), GR_VERSION);
  EXPECT_EQ(status.message(),
            "it speaks plugin ABI 2.0..3, gradrack 1.0.0 speaks 1.0..1: upgrade gradrack");
}

TEST(ElfFile, PLG03_RangeOfMinorsThatDoesNotMeetIsRefusedFromTheFileAlone) {
  EXPECT_EQ(refusal(bytes_of(fault_path("too_new"))),
            "it speaks plugin ABI 1.4..5, gradrack 1.0.0 speaks 1.0..1: upgrade gradrack");
}

TEST(ElfFile, PLG03_HeadersOfOtherSizes) {
  gr_plugin_header_t header = {GR_PLUGIN_MAGIC, sizeof header, GR_ABI_MAJOR, 0, 0, nullptr};
  EXPECT_TRUE(check_plugin_header(header).ok());
  header.struct_size = 4096;
  EXPECT_TRUE(check_plugin_header(header).ok());
  header.struct_size = sizeof header - 1;
  EXPECT_NE(check_plugin_header(header).message().find("its header has 31 bytes, 32 wanted"),
            std::string::npos);
}

TEST(ElfFile, EntryOfAnotherMajorsNameIsAVersionError) {
  ElfFile elf;
  elf.exports = {"gradrack_plugin_v2"};
  EXPECT_EQ(check_elf_header(elf).message(),
            "it speaks plugin ABI 2 alone, gradrack 1.0.0 speaks 1.0..1: upgrade gradrack");
}

TEST(ElfFile, LibraryWithoutTheEntrySymbol) {
  EXPECT_EQ(refusal(bytes_of(fault_path("no_header"))),
            "it has no symbol gradrack_plugin_v1: it is not a plugin of gradrack 1.x, or was built "
            "without GR_PLUGIN");
}

TEST(ElfFile, TextFile) {
  EXPECT_EQ(refusal("#!/bin/sh\nexit 0\n"),
            "it is a text file, not a shared library: build it again, or remove it");
}

TEST(ElfFile, EmptyFile) { EXPECT_EQ(refusal(""), "it is an empty file: build or copy it again"); }

TEST(ElfFile, OtherBytes) {
  EXPECT_EQ(refusal(std::string("\x01\x02\x03", 3)),
            "it is not a shared library (no ELF magic number): build it again, or remove it");
}

TEST(ElfFile, ThirtyTwoBits) {
  EXPECT_EQ(refusal(with<uint8_t>(EI_CLASS, ELFCLASS32)).substr(0, 22), "it is a 32-bit library");
}

TEST(ElfFile, OtherArchitecture) {
  const uint16_t other = EM_RISCV;
  EXPECT_EQ(refusal(with(offsetof(Elf64_Ehdr, e_machine), other)).substr(0, 24),
            "it was built for RISC-V,");
}

TEST(ElfFile, BigEndian) {
  EXPECT_EQ(refusal(with<uint8_t>(EI_DATA, ELFDATA2MSB)).substr(0, 36),
            "it was built for a big-endian machin");
}

TEST(ElfFile, ProgramAndObjectFile) {
  EXPECT_EQ(refusal(bytes_of("/proc/self/exe")), "it is a program, not a shared library");
  EXPECT_EQ(refusal(with<uint16_t>(offsetof(Elf64_Ehdr, e_type), ET_EXEC)),
            "it is a program, not a shared library");
  EXPECT_EQ(refusal(with<uint16_t>(offsetof(Elf64_Ehdr, e_type), ET_REL)),
            "it is an object file: link it with gradrack_add_plugin");
}

TEST(ElfFile, TruncatedSegmentsAreRefusedBeforeTheLoaderFaultsOnThem) {
  Elf64_Ehdr head;
  std::memcpy(&head, good().data(), sizeof head);
  size_t needed = 0;
  for (size_t k = 0; k < head.e_phnum; ++k) {
    Elf64_Phdr segment;
    std::memcpy(&segment, good().data() + head.e_phoff + k * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) needed = std::max(needed, segment.p_offset + segment.p_filesz);
  }
  ASSERT_LT(needed, good().size());
  EXPECT_TRUE(parse_elf(std::string_view(good()).substr(0, needed)).ok());
  const std::string text = refusal(good().substr(0, needed - 1));
  EXPECT_EQ(text.substr(0, 27),
            "it is cut short: it has " + std::to_string(needed - 1).substr(0, 3))
      << text;
}

TEST(ElfFile, AnyLengthGivesAnAnswer) {
  size_t refused = 0;
  for (size_t size = 0; size < good().size(); ++size) {
    // A copy of exactly that size, so that a read past the end is one past an allocation.
    const std::string bytes = good().substr(0, size);
    refused += parse_elf(bytes).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 4096u);
}

TEST(ElfFile, RandomFlipsGiveAnAnswer) {
  std::mt19937_64 random(20240611);
  size_t refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = good();
    const size_t flips = 1 + random() % 16;
    for (size_t k = 0; k < flips; ++k) {
      // Half of them in the headers, where each bit means something.
      const size_t range = random() % 2 == 0 ? size_t{1024} : bytes.size();
      bytes[random() % range] ^= static_cast<char>(1u << (random() % 8));
    }
    const Result<ElfFile> elf = parse_elf(bytes);
    refused += elf.ok() && check_elf_header(*elf).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 400u);
  EXPECT_LT(refused, 4000u);
}

TEST(ElfFile, RandomDynamicSegmentsGiveAnAnswer) {
  std::mt19937_64 random(7);
  Elf64_Ehdr head;
  std::memcpy(&head, good().data(), sizeof head);
  Elf64_Phdr dynamic = {};
  for (size_t k = 0; k < head.e_phnum && dynamic.p_type != PT_DYNAMIC; ++k) {
    std::memcpy(&dynamic, good().data() + head.e_phoff + k * sizeof dynamic, sizeof dynamic);
  }
  ASSERT_EQ(dynamic.p_type, static_cast<uint32_t>(PT_DYNAMIC));
  const size_t entries = dynamic.p_filesz / sizeof(Elf64_Dyn);
  size_t answered = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = good();
    for (int k = 0; k < 3; ++k) {
      const uint64_t value = random() >> (random() % 64);
      const size_t at = dynamic.p_offset + (random() % entries) * sizeof(Elf64_Dyn) + 8;
      std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    answered += parse_elf(bytes).status().message().size() < 1000 ? 1 : 0;
  }
  EXPECT_EQ(answered, 4000u);
}

TEST(ElfNeeds, SeesWhatIsThereAndWhatIsNot) {
  const std::string path = fault_path("missing_library");
  const Result<ElfFile> elf = parse_elf(bytes_of(path));
  ASSERT_TRUE(elf.ok()) << elf.status().message();
  EXPECT_EQ(libraries_not_seen(*elf, path), std::vector<std::string>{"libfault_needed.so"});
}

TEST(ElfNeeds, OriginStandsForTheLibrarysOwnFolder) {
  ElfFile elf;
  elf.runpath = "$ORIGIN/../needs:${ORIGIN}";
  const std::vector<std::string> folders = loader_folders(elf, "/p/plugins/a.so");
  EXPECT_EQ(std::count(folders.begin(), folders.end(), "/p/needs (its RUNPATH)"), 1);
  EXPECT_EQ(std::count(folders.begin(), folders.end(), "/p/plugins (its RUNPATH)"), 1);
  EXPECT_NE(looked_for_text(elf, "/p/plugins/a.so").find("/p/needs (its RUNPATH)"),
            std::string::npos);
}

}  // namespace
}  // namespace gradrack
