// SPDX-License-Identifier: Apache-2.0
// Checksum: see checksum.hpp.
#include "core/state/checksum.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <memory>

#include "core/state/atomic_file.hpp"

namespace gradrack {

struct Checksum::State {
  State() : xxh(XXH3_createState()) {
    GR_CHECK(xxh != nullptr && XXH3_128bits_reset(xxh) == XXH_OK);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(xxh); }
  XXH3_state_t* xxh;
};

Checksum::Checksum() : state_(std::make_unique<State>()) {}
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;
Checksum::~Checksum() = default;

void Checksum::add(const void* data, size_t bytes) {
  if (bytes == 0) return;
  XXH3_128bits_update(state_->xxh, data, bytes);
  bytes_ += static_cast<int64_t>(bytes);
}

std::string Checksum::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_->xxh));
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

Result<Checksum> checksum_of_file(const std::string& path) {
  constexpr size_t kBlockBytes = size_t{1} << 18;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return file_error("read", path, errno);
  Checksum sum;
  const auto block = std::make_unique_for_overwrite<char[]>(kBlockBytes);
  int failed = 0;
  for (;;) {
    const ssize_t got = ::read(descriptor, block.get(), kBlockBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) failed = errno;
    if (got <= 0) break;
    sum.add(block.get(), static_cast<size_t>(got));
  }
  ::close(descriptor);
  if (failed != 0) return file_error("read", path, failed);
  return sum;
}

}  // namespace gradrack
