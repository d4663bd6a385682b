// SPDX-License-Identifier: Apache-2.0
// Packing for tiles, and the way of finished sums to memory, for this file's instruction set.
// Internal linkage: see simd_vector.hpp.
#pragma once

#include "backends/cpu/simd_bfloat16.hpp"
#include "backends/cpu/simd_vector.hpp"
#include "backends/cpu/tiles.hpp"

namespace gradrack::cpu {
namespace {

/// A factor as lines (A's rows, B's columns) of numbers of k; steps in elements.
struct Lines {
  Lines(const Factor& from, bool lines_are_rows)
      : data(from.data),
        line(lines_are_rows ? from.row : from.column),
        k(lines_are_rows ? from.column : from.row) {}

  template <class T>
  const T* at(int64_t a, int64_t p) const {
    return static_cast<const T*>(data) + a * line + p * k;
  }

  const void* data;
  int64_t line, k;
};

/// Of each pair of rows (i, i + kWidth), swaps the blocks of kWidth numbers off the diagonal.
template <int kWidth, class V>
inline void turn_blocks(V* v) {
  I low, high;
  for (int k = 0; k < kLanes; ++k) {
    const bool odd = (k / kWidth) % 2 != 0;
    low[k] = odd ? kLanes + k - kWidth : k;
    high[k] = odd ? kLanes + k : k + kWidth;
  }
#pragma GCC unroll 16
  for (int k = 0; k < kLanes / 2; ++k) {
    const int i = k / kWidth * 2 * kWidth + k % kWidth;
    const V a = v[i], b = v[i + kWidth];
    v[i] = __builtin_shuffle(a, b, low);
    v[i + kWidth] = __builtin_shuffle(a, b, high);
  }
}

/// Turns a square of kLanes x kLanes numbers over: blocks of one number, two, four, ...
template <class V>
inline void turn(V* v) {
  turn_blocks<1>(v);
  turn_blocks<2>(v);
  if constexpr (kLanes >= 8) turn_blocks<4>(v);
  if constexpr (kLanes >= 16) turn_blocks<8>(v);
}

inline int64_t at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }

/// `n` <= kLanes lines from line `a` over k numbers: to[k][room], filled up with zeros.
template <class T, bool kWhole>
inline void pack_lanes(const Lines& from, int64_t a, int64_t n, int64_t k, int64_t room,
                       float* to) {
  constexpr int64_t kAhead = 16;  // rows that are asked for before they are read
  if (from.line == 1) {
    for (int64_t p = 0; p < k; ++p) {
      const T* const source = from.at<T>(a, p);
      __builtin_prefetch(source + kAhead * from.k);
      store(to + p * room, read_lanes(source, kWhole ? kLanes : n));
    }
    return;
  }
  F v[kLanes];
  int64_t p = 0;
  for (; p + kLanes <= k; p += kLanes) {
    for (int64_t i = 0; i < kLanes; ++i) {
      v[i] = kWhole || i < n ? read_lanes(from.at<T>(a + i, p), kLanes) : F{};
    }
    turn(v);
    for (int64_t i = 0; i < kLanes; ++i) store(to + (p + i) * room, v[i]);
  }
  if (p == k) return;
  for (int64_t i = 0; i < kLanes; ++i) {
    v[i] = i < n ? read_lanes(from.at<T>(a + i, p), k - p) : F{};
  }
  turn(v);
  for (int64_t i = 0; i < k - p; ++i) store(to + (p + i) * room, v[i]);
}

template <class T>
inline void pack_lines(const Lines& from, int64_t width, int64_t room, int64_t k, float* to) {
  for (int64_t a = 0; a < room; a += kLanes, to += kLanes) {
    const int64_t n = at_most(width - a, kLanes);
    if (n == kLanes) {
      pack_lanes<T, true>(from, a, n, k, room, to);
    } else if (n > 0) {
      pack_lanes<T, false>(from, a, n, k, room, to);
    } else {
      for (int64_t p = 0; p < k; ++p) store(to + p * room, F{});
    }
  }
}

/// `width` lines, filled up to `room`, k by k.
inline void pack_floats(const Factor& from, bool lines_are_rows, int64_t width, int64_t room,
                        int64_t k, float* to) {
  const Lines lines(from, lines_are_rows);
  if (from.narrow) return pack_lines<uint16_t>(lines, width, room, k, to);
  pack_lines<float>(lines, width, room, k, to);
}

#if defined(__AVX512F__)
constexpr int64_t kLine = 64;  // bytes

/// Rows of float32 that lie in whole lines of memory are written past the caches: whoever reads
/// them will not find them there anyway, and the lines are not read first. False: nothing is done.
inline bool stream_rows(const float* sums, int64_t row_sums, int64_t rows, int64_t columns,
                        const TileTarget& target) {
  auto* y = static_cast<float*>(target.data);
  if (target.narrow || reinterpret_cast<uintptr_t>(y) % kLine != 0) return false;
  if (columns % kLanes != 0 || target.row % kLanes != 0) return false;
  const F alpha = splat(target.alpha);
  for (int64_t i = 0; i < rows; ++i, sums += row_sums, y += target.row) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      F v = load(sums + j) * alpha;
      if (target.plus != nullptr) v = load(target.plus + i * target.row + j) + v;
      _mm512_stream_ps(y + j, (__m512)v);
    }
  }
  _mm_sfence();  // before anyone is told that they are there
  return true;
}
#else
inline bool stream_rows(const float*, int64_t, int64_t, int64_t, const TileTarget&) {
  return false;
}
#endif

template <class T>
inline void put_rows(const float* sums, int64_t row_sums, int64_t rows, int64_t columns,
                     const TileTarget& target) {
  const F alpha = splat(target.alpha);
  const int64_t whole = columns / kLanes * kLanes, rest = columns - whole;
  const float* plus = target.plus;
  T* y = static_cast<T*>(target.data);
  for (int64_t i = 0; i < rows; ++i, sums += row_sums, y += target.row) {
    for (int64_t j = 0; j < whole; j += kLanes) {
      const F v = load(sums + j) * alpha;
      write_lanes(plus != nullptr ? load(plus + j) + v : v, y + j, kLanes);
    }
    if (rest > 0) {
      F v = load_part(sums + whole, rest) * alpha;
      if (plus != nullptr) v = load_part(plus + whole, rest) + v;
      write_lanes(v, y + whole, rest);
    }
    if (plus != nullptr) plus += target.row;
  }
}

void put_sums(const float* sums, int64_t row_sums, int64_t rows, int64_t columns,
              const TileTarget& target) {
  if (target.stream && stream_rows(sums, row_sums, rows, columns, target)) return;
  if (target.narrow) return put_rows<uint16_t>(sums, row_sums, rows, columns, target);
  put_rows<float>(sums, row_sums, rows, columns, target);
}

template <class T>
inline void get_rows(const T* x, int64_t row, int64_t rows, int64_t columns, float* to) {
  for (int64_t i = 0; i < rows; ++i, x += row, to += columns) {
    int64_t j = 0;
    for (; j + kLanes <= columns; j += kLanes) store(to + j, read_lanes(x + j, kLanes));
    if (j < columns) store_part(to + j, read_lanes(x + j, columns - j), columns - j);
  }
}

void get_numbers(const Factor& from, int64_t rows, int64_t columns, float* to) {
  if (from.narrow) {
    return get_rows(static_cast<const uint16_t*>(from.data), from.row, rows, columns, to);
  }
  get_rows(static_cast<const float*>(from.data), from.row, rows, columns, to);
}

}  // namespace
}  // namespace gradrack::cpu
