// SPDX-License-Identifier: Apache-2.0
// Replaces the global operator new: see count_allocations.hpp. The array forms come down to it by
// default; over-aligned ones do not, and are not counted. The nothrow form is here because the
// sanitizers' own would not match the delete below.
#include "tests/support/count_allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<size_t> count = 0;
}

void* operator new(size_t bytes) {
  ++count;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace gradrack::test {

size_t allocation_count() { return count; }

}  // namespace gradrack::test
