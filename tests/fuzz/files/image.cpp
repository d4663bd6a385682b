// SPDX-License-Identifier: Apache-2.0
// PNG and JPEG files: pixels of the announced size, or a refusal.
#include <cstdlib>

#include "plugins/data/images/resize.hpp"
#include "tests/fuzz/files/input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const int64_t channels : {1, 3}) {
    gradrack::fuzz::refuse_or_read([&] {
      const Picture picture =
          decode_picture({reinterpret_cast<const std::byte*>(data), size}, channels, "input");
      if (static_cast<int64_t>(picture.pixels.size()) !=
          picture.height * picture.width * channels) {
        std::abort();
      }
      std::vector<float> out(static_cast<size_t>(channels * 8 * 8));
      resize(picture, centre_crop(picture, 8, 8), 8, 8, false, 1, out);
    });
  }
  return 0;
}
