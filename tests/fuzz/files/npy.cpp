// SPDX-License-Identifier: Apache-2.0
// .npy files: headers and conversions.
#include "plugins/data/arrays/npy.hpp"

#include "tests/fuzz/files/input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const gradrack::fuzz::InputFile file(data, size);
  gradrack::fuzz::refuse_or_read([&] {
    const NpyArray array = read_npy(file.path(), "features");
    gradrack::fuzz::refuse_or_read([&] { (void)to_floats(array, "features"); });
    gradrack::fuzz::refuse_or_read([&] { (void)to_integers(array, "labels"); });
  });
  return 0;
}
