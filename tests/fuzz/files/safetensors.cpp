// SPDX-License-Identifier: Apache-2.0
// Safetensors files: what opens has each of its tensors inside its bytes.
#include "core/state/safetensors.hpp"

#include <cstdlib>

#include "tests/fuzz/files/input.hpp"

namespace {
volatile std::byte seen;  // so that the bytes are read
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const gradrack::fuzz::InputFile input(data, size);
  const auto metadata = gradrack::safetensors_metadata(input.path());
  const auto file = gradrack::SafetensorsFile::open(input.path());
  if (!file.ok()) {
    if (file.status().message().empty()) std::abort();
    return 0;
  }
  if (!metadata.ok() || *metadata != file->metadata()) std::abort();
  size_t covered = 0;
  for (const gradrack::SafetensorsEntry& entry : file->entries()) {
    if (file->find(entry.name) != &entry) std::abort();
    covered += file->bytes(entry).size();
    for (const std::byte byte : file->bytes(entry)) seen = byte;
  }
  if (covered + 8 > size) std::abort();
  return 0;
}
