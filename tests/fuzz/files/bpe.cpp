// SPDX-License-Identifier: Apache-2.0
// tokenizer.json: what is taken encodes any text, and gives it back.
#include <algorithm>
#include <cstdlib>

#include "plugins/data/common/bpe_files.hpp"
#include "plugins/data/common/utf8.hpp"
#include "tests/fuzz/files/input.hpp"

namespace {

// With add_prefix_space each piece between added tokens may have got one.
std::string without_spaces(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gradrack::fuzz::refuse_or_read([&] {
    const gradrack::fuzz::InputFile file(data, size);
    const corpus::Bpe tokenizer(corpus::read_bpe(file.path(), ""), true, true);
    const std::string text = corpus::replace_ill_formed(
        "she sells\r\n <|endoftext|>\xF0\x9F\x98\x80 " +
        std::string(reinterpret_cast<const char*>(data), size < 512 ? size : 512));
    const std::vector<int32_t> ids = tokenizer.encode(text, [] {});
    const std::string back = tokenizer.decode(std::vector<int64_t>(ids.begin(), ids.end()));
    if (without_spaces(back) != without_spaces(text)) std::abort();
  });
  return 0;
}
