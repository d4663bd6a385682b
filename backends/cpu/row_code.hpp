// SPDX-License-Identifier: Apache-2.0
// RowCode: a group of elementwise nodes and normalisations as steps over tiles.
//
// Made once, when a group is claimed or prepared; row_program.cpp runs it. A tile is some whole
// rows, or a piece of one, small enough to stay in the nearest cache: each step runs one hot loop
// over it, so values inside the group never see memory. Values are float32 in a tile; what is
// bfloat16 in the graph is rounded where its node would round it, so the bits are those of the
// nodes run one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/common/group.hpp"
#include "backends/cpu/simd.hpp"

namespace gradrack::cpu {

/// Where the numbers of a value are while a tile is worked on.
struct RowValue {
  enum class Kind {
    kTile,    // in scratch
    kInput,   // in an input's memory: float32, of the group's shape
    kOutput,  // in an output's memory: float32
    kRow,     // an input of one row, that all rows read
    kColumn,  // an input of one number a row
    kNumber   // an input of one number
  };
  Kind kind = Kind::kTile;
  int place = -1;       // of the input or output at the border
  bool narrow = false;  // the input is bfloat16
  int64_t at = -1;      // where it begins in scratch, in floats; -1: in memory
};

struct RowStep {
  enum class Kind {
    kWiden,       // input `place`, bfloat16 -> y
    kRound,       // a -> y, through bfloat16
    kNarrow,      // a -> output `place`, bfloat16
    kCopy,        // a -> y
    kUnary,       // a -> y
    kBinary,      // a, b -> y
    kStatistics,  // of each row of a
    kNorm,        // a, scale b, bias c -> y
    kNormGrad,    // gradient a, x b, scale c -> y
    kScaleGrad    // gradient a, x b: added to column sums number `place`
  };
  Kind kind = Kind::kCopy;
  int a = -1, b = -1, c = -1, y = -1;  // values; -1: none
  int place = -1;
  int statistics = -1;  // which of RowCode::statistics
  UnaryLoop unary = nullptr;
  BinaryLoop binary = nullptr;
  float alpha = 1.0f;
  RowNorm norm = {};
};

struct RowCode {
  int64_t rows = 1;
  int64_t width = 1;        // elements of a row
  bool whole_rows = false;  // tiles are whole rows; else pieces of one row
  int64_t tile_rows = 1;    // of a tile
  int64_t tile_width = 1;   // the width, or less
  int64_t work = 1;         // of one element, in plain operations
  int64_t scratch = 0;      // floats for all values in a tile
  int statistics = 0;       // different ones a row
  std::vector<RowValue> values;
  std::vector<RowStep> steps;
  std::vector<int> sums;      // output places of column sums
  std::vector<int> in_place;  // by output: the input whose memory it may take, or -1
};

/// Most floats of RowCode::scratch, most rows a tile, most different statistics.
inline constexpr int64_t kRowScratch = 65536;
inline constexpr int64_t kTileRows = 64;
inline constexpr int kRowStatistics = 4;

/// Fills `code`, or gives the reason why these nodes cannot be one pass.
std::string make_row_code(const host::GroupSpec& group, const Simd& loops, RowCode* code);

}  // namespace gradrack::cpu
