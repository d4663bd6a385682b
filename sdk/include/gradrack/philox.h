// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10: the counter-based random numbers that every part of Gradrack draws.
//
// A number depends on its key and counter alone, so it does not depend on schedule, threads,
// recompute or resume. Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11
// (Random123).
#ifndef GRADRACK_PHILOX_H_
#define GRADRACK_PHILOX_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Four 32-bit numbers for (counter, key). [any]
static inline void gr_philox4x32(const uint32_t counter[4], uint64_t key, uint32_t out[4]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
    const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

/// Uniform in [0, 1) with 24 bits: exact in float32.
static inline double gr_uniform24(uint32_t x) { return (double)(x >> 8) * (1.0 / 16777216.0); }

/// 64-bit FNV-1a of a 0-terminated text: turns names into counters.
static inline uint64_t gr_hash_text(const char* text) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (; *text != '\0'; ++text) h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
  return h;
}

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_PHILOX_H_
