// SPDX-License-Identifier: Apache-2.0
// Blocks of host memory: see memory.hpp.
#include "backends/common/memory.hpp"

#include <algorithm>
#include <cstdlib>

#include "backends/common/host_backend.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace gradrack::host {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

}  // namespace

void* allocate_block(int64_t bytes) noexcept {
  const bool large = bytes >= kHugePage;
  const int64_t alignment = large ? kHugePage : kAlignment;
  const int64_t rounded = (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes < 0 || rounded < bytes) return nullptr;
  void* block = nullptr;
  if (posix_memalign(&block, size_t(alignment), size_t(rounded)) != 0) return nullptr;
#if defined(__linux__)
  // A wish: where the system has no huge pages the block is as good, only slower.
  if (large) (void)madvise(block, size_t(bytes / kHugePage * kHugePage), MADV_HUGEPAGE);
#endif
  return block;
}

void release_block(void* block) noexcept { std::free(block); }

}  // namespace gradrack::host
