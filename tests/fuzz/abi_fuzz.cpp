// SPDX-License-Identifier: Apache-2.0
// Whatever a plugin hands over, the host refuses it or goes on, and never crashes.
//
//   abi_fuzz [--cases N] [--seed S] [--case K]
//
// Runs N cases (default 100000), each a random answer of a plugin at one place of the ABI: entry
// headers, files, option tables, factories, instance tables, device infos, claims, kernel infos,
// state declarations, schedules, data infos, batches; any struct_size from 0 to 4096. Built with
// sanitizers (preset asan) a read or write out of bounds ends it. `--case K` repeats one case; what
// kills the program prints it.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/base/log.hpp"
#include "tests/fuzz/draw.hpp"

namespace gradrack::fuzz {
namespace {

struct Target {
  const char* name;
  void (*run)(Draw&);
  uint32_t weight;  // of 100
};
constexpr Target kTargets[] = {
    {"header", fuzz_header, 20},      {"elf", fuzz_elf, 15},
    {"options", fuzz_options, 10},    {"library", fuzz_library, 1},
    {"instance", fuzz_instance, 19},  {"plan", fuzz_plan, 10},
    {"optimizer", fuzz_optimizer, 5}, {"schedule", fuzz_schedule, 10},
    {"data", fuzz_data, 10},
};

Draw* now = nullptr;
uint64_t seed = 1, number = 0;
const char* target_name = "";

void say_case() {
  char line[160];
  const int length = std::snprintf(
      line, sizeof line, "abi_fuzz: died in %s; repeat with --seed %llu --case %llu\n", target_name,
      static_cast<unsigned long long>(seed), static_cast<unsigned long long>(number));
  if (length > 0 && write(2, line, static_cast<size_t>(length)) < 0) _exit(3);
}

void on_signal(int signal) {
  say_case();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

const Target& pick(Draw& draw) {
  uint64_t at = draw.below(100);
  for (const Target& target : kTargets) {
    if (at < target.weight) return target;
    at -= target.weight;
  }
  return kTargets[0];
}

void run_case(uint64_t index, uint64_t* counts) {
  number = index;
  Draw draw(seed, index);
  now = &draw;
  const Target& target = pick(draw);
  target_name = target.name;
  target.run(draw);
  ++counts[&target - kTargets];
  now = nullptr;
}

bool read_library(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const bool good = !bytes.empty();
  set_library_bytes(std::move(bytes));
  return good;
}

int run(uint64_t first, uint64_t count) {
  uint64_t counts[std::size(kTargets)] = {};
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t k = 0; k < count; ++k) run_case(first + k, counts);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("abi_fuzz: %llu cases without a crash in %.1f s, seed %llu:",
              static_cast<unsigned long long>(count), took.count(),
              static_cast<unsigned long long>(seed));
  for (size_t k = 0; k < std::size(kTargets); ++k) {
    std::printf(" %s %llu", kTargets[k].name, static_cast<unsigned long long>(counts[k]));
  }
  std::printf("\n");
  return 0;
}

}  // namespace

Draw& current() { return *now; }

int main_of(int argc, char** argv) {
  uint64_t cases = 100000, first = 0;
  for (int k = 1; k + 1 < argc; k += 2) {
    const std::string word = argv[k];
    const uint64_t value = std::strtoull(argv[k + 1], nullptr, 10);
    if (word == "--cases") {
      cases = value;
    } else if (word == "--seed") {
      seed = value;
    } else if (word == "--case") {
      first = value;
      cases = 1;
    } else {
      std::fprintf(stderr, "usage: abi_fuzz [--cases N] [--seed S] [--case K]\n");
      return 2;
    }
  }
  if (!read_library(GRADRACK_FUZZ_LIBRARY)) {
    std::fprintf(stderr, "abi_fuzz: %s cannot be read\n", GRADRACK_FUZZ_LIBRARY);
    return 2;
  }
  start_logging({LogFormat::kText, true});
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    std::signal(signal, on_signal);
  return run(first, cases);
}

}  // namespace gradrack::fuzz

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

int main(int argc, char** argv) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(gradrack::fuzz::say_case);
#endif
  return gradrack::fuzz::main_of(argc, argv);
}
