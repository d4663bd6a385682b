// SPDX-License-Identifier: Apache-2.0
// TileLoops: the innermost loops of matrix products, one table an instruction set.
//
// A product C = A B is made of tiles of C, a few vectors wide and a few rows high, whose sums stay
// in registers while k runs. B is packed first, in panels as wide as a tile; A is read where it
// lies when a tile can do so, and packed otherwise. product.hpp cuts matrices into tiles.
// Invariant: the sum of an element has one order whatever tile it is in, and nothing is read or
// written beyond what the arguments say.
#pragma once

#include <cstdint>

namespace gradrack::cpu {

/// A matrix as it lies in memory, row-major or transposed: steps in elements, one of them 1.
struct Factor {
  const void* data = nullptr;
  bool narrow = false;  // bfloat16, else float32
  int64_t row = 0, column = 1;

  /// From element (i, j) on.
  Factor at(int64_t i, int64_t j) const {
    const int64_t offset = (i * row + j * column) * (narrow ? 2 : 4);
    return {static_cast<const char*>(data) + offset, narrow, row, column};
  }
};

/// The rows of A under a tile; steps in bytes.
struct TileRows {
  const char* data;
  int64_t row;
  int64_t step;   // from `depth` numbers of k to the next
  int64_t group;  // from 16 rows to the next
};

/// Where finished sums go.
struct TileTarget {
  void* data;
  bool narrow;
  int64_t row;  // step in elements
  float alpha;
  const float* plus;    // added to the sums, its rows as those of `data`; null: nothing
  bool stream = false;  // past the caches, where whole lines are written: for what is read later
};

struct TileLoops {
  const char* name;
  bool narrow;      // packed factors are bfloat16, else float32
  bool amx;         // run within an AmxTiles
  int rows;         // a tile has at most
  int columns;      // a panel of B has, the last filled up with zeros
  int depth;        // numbers of k in a step; packed factors are filled up with zeros
  int packed_rows;  // a packed tile of A has
  // A tile writes whole groups of so many rows and columns, and reads whole groups of rows.
  int row_group, column_group;

  /// c[rows, columns] (+)= A B over `steps` steps of k.
  void (*tile)(const TileRows& a, const void* b, int64_t steps, int rows, int columns, float* c,
               int64_t row_c, bool add);
  /// The first `rows` rows of a tile of A, and a panel's first `columns` of B, over k numbers.
  void (*pack_a)(const Factor& from, int64_t rows, int64_t k, void* to);
  void (*pack_b)(const Factor& from, int64_t k, int64_t columns, void* to);
  /// target = alpha sums (+ plus).
  void (*put)(const float* sums, int64_t row_sums, int64_t rows, int64_t columns,
              const TileTarget& target);
  /// to[rows][columns], without gaps, in float32; `from` is row-major.
  void (*get)(const Factor& from, int64_t rows, int64_t columns, float* to);

  int64_t element() const { return narrow ? 2 : 4; }
  /// Bytes of a packed tile of A and of a panel of B over k numbers.
  int64_t padded(int64_t k) const { return (k + depth - 1) / depth * depth; }
  int64_t packed_a_bytes(int64_t k) const { return padded(k) * packed_rows * element(); }
  int64_t packed_b_bytes(int64_t k) const { return padded(k) * columns * element(); }
  /// The packed rows of A that begin at `data`.
  TileRows packed_view(const void* data) const;
};

inline TileRows TileLoops::packed_view(const void* data) const {
  const auto* at = static_cast<const char*>(data);
  // float32: k by k, the rows side by side. bfloat16: `depth` numbers of 16 rows, row by row.
  if (!narrow) return {at, 4, int64_t{packed_rows} * 4, 64};
  return {at, int64_t{depth} * 2, int64_t{packed_rows} * depth * 2, int64_t{16} * depth * 2};
}

/// The loops for factors rounded to bfloat16 (`narrow`) or in float32 on this processor: those of
/// the set that simd() takes. Without instructions for bfloat16 its numbers are widened as they are
/// packed: TileLoops::narrow says so. [any]
const TileLoops& tile_loops(bool narrow);

// The tables, where compiled and, for _amx and _bfloat16, where the processor knows them; null
// otherwise. For tests and for the choice in tiles_select.cpp.
const TileLoops* tiles_base();
const TileLoops* tiles_avx2();
const TileLoops* tiles_avx512();
const TileLoops* tiles_bfloat16();
const TileLoops* tiles_amx();

}  // namespace gradrack::cpu
