// SPDX-License-Identifier: Apache-2.0
// JSON Lines: faulty lines are refused or counted.
#include "plugins/data/jsonl/lines.hpp"
#include "tests/fuzz/files/input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  for (const bool skip : {false, true}) {
    gradrack::fuzz::refuse_or_read(
        [&] { (void)read_lines(content, "input", "text", skip, [] {}); });
  }
  return 0;
}
