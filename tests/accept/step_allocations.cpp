// SPDX-License-Identifier: Apache-2.0
// step_allocations: trains a run file and counts what its steps ask of the C library's allocator,
// on all threads, whoever asks: the host, a plugin, or a library that a plugin brings.
//
//   step_allocations CONFIG --steps N [--set a.b=c]... [--plugin-path DIR]...
//
// The first steps are not counted: caches fill. The functions below stand before the C library's
// own for every library of the process (its manual: "Replacing malloc").
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>

#include "core/train/trainer.hpp"
#include "tests/accept/step_hash.hpp"

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {
std::atomic<size_t> asked = 0;
}

extern "C" {
void* malloc(size_t bytes) {
  asked.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  asked.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  asked.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  asked.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  void* const memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
}

namespace gradrack {
namespace {

constexpr int64_t kFirst = 5;  // steps that fill caches

struct Request {
  SessionRequest session;
  int64_t steps = 1;
};

Status run(const Request& request) {
  GR_ASSIGN(const std::unique_ptr<Session> session, open_session(request.session));
  GR_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::make(*session));
  size_t least = SIZE_MAX, most = 0, all = 0;
  for (int64_t step = 0; step < kFirst + request.steps; ++step) {
    const size_t before = asked;
    GR_TRY(trainer->step().status());
    if (step < kFirst) continue;
    const size_t here = asked - before;
    least = std::min(least, here);
    most = std::max(most, here);
    all += here;
  }
  fmt::print("allocations in {} steps: {} (a step: {} to {})\n", request.steps, all, least, most);
  return all == 0 ? Status() : internal_error("a step asks for memory");
}

}  // namespace
}  // namespace gradrack

int main(int argc, char** argv) {
  using namespace gradrack;
  Request request;
  CLI::App app("Counts the allocations of training steps.");
  add_session_options(app, &request.session, &request.steps);
  CLI11_PARSE(app, argc, argv);
  const Status status = run(request);
  if (status.ok()) return 0;
  fmt::print(stderr, "step_allocations: {}\n", status.message());
  return 1;
}
