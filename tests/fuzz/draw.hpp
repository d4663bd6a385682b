// SPDX-License-Identifier: Apache-2.0
// Draw: the random choices of one case, and what a case fills with them.
//
// A case is a pure function of (seed, number), so that `abi_fuzz --seed S --case N` repeats it.
// Numbers are drawn so that edges are frequent: 0, 1, -1, the largest, and anything. Pointers are
// never random: a wrong address cannot be told from a right one; they are NULL or lead to memory
// that is there.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "gradrack/gradrack.h"

namespace gradrack::fuzz {

class Draw {
 public:
  Draw(uint64_t seed, uint64_t number) : engine_(seed * UINT64_C(0x9e3779b97f4a7c15) + number) {}

  uint64_t below(uint64_t limit) { return engine_() % limit; }
  bool one_in(uint64_t n) { return below(n) == 0; }

  /// An integer of any kind.
  template <typename T>
  T number() {
    switch (below(6)) {
      case 0:
        return T{0};
      case 1:
        return static_cast<T>(below(9));
      case 2:
        return static_cast<T>(-1 - static_cast<int64_t>(below(3)));
      case 3:
        return std::numeric_limits<T>::max();
      case 4:
        return std::numeric_limits<T>::min();
      default:
        return static_cast<T>(engine_());
    }
  }
  double real() {
    const double reals[] = {0.0, -0.0, 1.0, -1.5, 1e300, -1e300, 1e-320, INFINITY, -INFINITY, NAN};
    return reals[below(sizeof reals / sizeof reals[0])];
  }
  /// 0...4096: what a struct may say of itself.
  uint32_t struct_size() { return static_cast<uint32_t>(below(4097)); }
  /// Good usually, else anything.
  template <typename T>
  T mostly(T good) {
    return one_in(4) ? number<T>() : good;
  }
  void bytes(void* to, size_t count) {
    for (size_t k = 0; k < count; ++k) static_cast<unsigned char*>(to)[k] = engine_() & 255;
  }
  /// Static text, or NULL now and then.
  const char* text(const char* good) {
    static const char long_text[] =
        "a very long text with \x1b[31m, \n, %s%n, \xff\xfe and quotes \"' that goes on and on and "
        "on and on and on and on and on and on and on and on and on and on and on and on and on";
    const char* texts[] = {nullptr, "",      "a|b||c", "[",   "1e999",
                           "-1",    "[1, 2", "~",      ": {", long_text};
    return one_in(4) ? texts[below(sizeof texts / sizeof texts[0])] : good;
  }
  /// A status, known or not, with an error record of random bytes (no end of text, perhaps).
  int32_t status(gr_error_t* err, int32_t good = GR_OK) {
    if (!one_in(8)) return good;
    bytes(err, sizeof *err);
    if (one_in(2)) std::memset(err, 'x', sizeof *err);
    return number<int32_t>();
  }

 private:
  std::mt19937_64 engine_;
};

/// The current case: what the fuzzed plugin's functions draw from.
Draw& current();

// Targets. Each runs one case and may only return.
void fuzz_header(Draw& draw);
void fuzz_elf(Draw& draw);
void fuzz_options(Draw& draw);
void fuzz_library(Draw& draw);
void fuzz_instance(Draw& draw);
void fuzz_plan(Draw& draw);
void fuzz_optimizer(Draw& draw);
void fuzz_schedule(Draw& draw);
void fuzz_data(Draw& draw);

/// Bytes of a library, to be changed at random. Called once.
void set_library_bytes(std::string bytes);

}  // namespace gradrack::fuzz
