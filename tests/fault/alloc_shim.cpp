// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD library that lets the Nth `operator new` of a program fail, counted from main().
//
//   ALLOC_FAULT_N=700           that one throws std::bad_alloc (or gives null where nothrow is
//   asked) ALLOC_FAULT_PLACES=FILE     nothing fails; FILE gets, a line each, the numbers of those
//                               allocations that were the first from their place: a place is the
//                               three innermost callers
#include <dlfcn.h>
#include <execinfo.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

constexpr int kCallers = 3;
constexpr int kOwnFrames = 3;
constexpr size_t kMostPlaces = size_t{1} << 16;

std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};
int64_t failing = 0;
std::atomic<uint64_t> places[kMostPlaces];
FILE* list = nullptr;
thread_local bool inside = false;  // backtrace() may allocate

uint64_t place_of_caller() {
  void* frames[kOwnFrames + kCallers] = {};
  const int count = backtrace(frames, kOwnFrames + kCallers);
  uint64_t hash = 0xcbf29ce484222325u;
  for (int k = kOwnFrames; k < count; ++k) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(frames[k])) * 0x100000001b3u;
  }
  return hash == 0 ? 1 : hash;
}

// Whether that place was not there yet.
bool add_place(uint64_t place) {
  for (size_t at = place % kMostPlaces, k = 0; k < kMostPlaces; ++k) {
    uint64_t there = 0;
    if (places[at].compare_exchange_strong(there, place)) return true;
    if (there == place) return false;
    at = (at + 1) % kMostPlaces;
  }
  return false;
}

[[gnu::noinline]] bool fails() {
  if (!counting.load(std::memory_order_relaxed) || inside) return false;
  const int64_t number = ++allocations;
  if (list != nullptr) {
    inside = true;
    if (add_place(place_of_caller())) std::fprintf(list, "%lld\n", static_cast<long long>(number));
    inside = false;
  }
  return number == failing;
}

[[gnu::noinline]] void* take(size_t bytes, size_t alignment) {
  if (fails()) return nullptr;
  if (bytes == 0) bytes = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* take_or_throw(size_t bytes, size_t alignment) {
  void* const memory = take(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

using Main = int (*)(int, char**, char**);
Main real_main = nullptr;

int counted_main(int argc, char** argv, char** environment) {
  if (const char* number = std::getenv("ALLOC_FAULT_N")) failing = std::atoll(number);
  if (const char* file = std::getenv("ALLOC_FAULT_PLACES")) list = std::fopen(file, "we");
  unsetenv("LD_PRELOAD");  // the children of the program are left alone
  counting = true;
  const int code = real_main(argc, argv, environment);
  counting = false;
  if (list != nullptr) std::fclose(list);
  list = nullptr;
  return code;
}

}  // namespace

extern "C" int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*end)(), void* stack) {
  real_main = main;
  const auto real =
      reinterpret_cast<decltype(&__libc_start_main)>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return real(counted_main, argc, argv, init, fini, end, stack);
}

void* operator new(size_t bytes) { return take_or_throw(bytes, 0); }
void* operator new[](size_t bytes) { return take_or_throw(bytes, 0); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, 0); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, 0); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
