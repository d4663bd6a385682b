// SPDX-License-Identifier: Apache-2.0
// The program's own malloc: glibc's, but for allocations that a case makes fail.
//
// Linked into the executable alone, whose symbols come first for every library in the process.
// Invariant: until a case arms it, it does what glibc does. Not compiled in under sanitizers.
#include <cerrno>
#include <cstdlib>

#include "sdk/conformance/faults.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define KIT_EXPORT __attribute__((visibility("default")))

extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

KIT_EXPORT void* malloc(size_t size) noexcept {
  if (!gradrack::conform::allocation_fails_now()) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}

KIT_EXPORT void* calloc(size_t count, size_t size) noexcept {
  if (!gradrack::conform::allocation_fails_now()) return __libc_calloc(count, size);
  errno = ENOMEM;
  return nullptr;
}

KIT_EXPORT void* realloc(void* block, size_t size) noexcept {
  if (!gradrack::conform::allocation_fails_now()) return __libc_realloc(block, size);
  errno = ENOMEM;
  return nullptr;
}

KIT_EXPORT void* memalign(size_t alignment, size_t size) noexcept {
  if (!gradrack::conform::allocation_fails_now()) return __libc_memalign(alignment, size);
  errno = ENOMEM;
  return nullptr;
}

KIT_EXPORT void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return memalign(alignment, size);
}

KIT_EXPORT int posix_memalign(void** block, size_t alignment, size_t size) noexcept {
  if (gradrack::conform::allocation_fails_now()) return ENOMEM;
  *block = __libc_memalign(alignment, size);
  return *block != nullptr ? 0 : ENOMEM;
}

}  // extern "C"

namespace {
[[maybe_unused]] const bool announced = (gradrack::conform::allocation_hook_is_there(), true);
}  // namespace

#endif
