// SPDX-License-Identifier: Apache-2.0
// tokenize KIND FILE [MERGES] < TEXT > IDS: the bundled tokenizers on any bytes.
//
// For comparisons with other programs: bytes that are no UTF-8 become U+FFFD, ids come out as
// little-endian int32. stderr says what it took.
#include <chrono>
#include <cstdio>
#include <string>

#include "gradrack/error.hpp"
#include "plugins/data/common/tokenizer.hpp"

namespace {

std::string read_all(std::FILE* file) {
  std::string text;
  char chunk[1 << 16];
  while (const size_t got = std::fread(chunk, 1, sizeof chunk, file)) text.append(chunk, got);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fputs("tokenize bpe|sentencepiece FILE [MERGES] < TEXT > IDS\n", stderr);
    return 2;
  }
  corpus::TokenizerChoice choice;
  choice.kind = argv[1];
  choice.file = argv[2];
  choice.merges = argc > 3 ? argv[3] : "";
  choice.replace_ill_formed = true;
  try {
    const std::string text = read_all(stdin);
    const auto tokenizer = corpus::load_tokenizer(choice);
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<int32_t> ids = tokenizer->encode(text, [] {});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "%zu bytes, %zu ids, %.1f MB/s\n", text.size(), ids.size(),
                 static_cast<double>(text.size()) / 1e6 / took.count());
    const bool whole = std::fwrite(ids.data(), sizeof ids[0], ids.size(), stdout) == ids.size();
    return whole && std::fflush(stdout) == 0 ? 0 : 1;
  } catch (const gradrack::sdk::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
