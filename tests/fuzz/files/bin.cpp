// SPDX-License-Identifier: Apache-2.0
// .bin files of token ids, in every form.
#include "plugins/data/tokens/shard.hpp"
#include "tests/fuzz/files/input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const gradrack::fuzz::InputFile file(data, size);
  for (const char* form : {"auto", "plain", "llmc"}) {
    for (const char* dtype : {"auto", "uint16", "uint32"}) {
      gradrack::fuzz::refuse_or_read([&] {
        const Shard shard(file.path(), {form, dtype});
        (void)shard.look(0, [] {});
        std::vector<int64_t> ids(static_cast<size_t>(shard.ids().size()));
        shard.ids().copy(0, ids);
        (void)shard.look(50000, [] {});
      });
    }
  }
  return 0;
}
