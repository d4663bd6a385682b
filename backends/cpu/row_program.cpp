// SPDX-License-Identifier: Apache-2.0
// RowProgram: see row_program.hpp.
#include "backends/cpu/row_program.hpp"

#include <algorithm>
#include <cstring>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/loop_plan.hpp"
#include "backends/cpu/row_blocks.hpp"

namespace gradrack::cpu {

using Kind = RowStep::Kind;
using Where = RowValue::Kind;

/// What one thread works on: scratch of its own, tile after tile.
class RowProgram::Piece {
 public:
  Piece(const RowProgram& program, const Launch& launch, int64_t index)
      : code_(program.code_),
        loops_(program.context_.loops),
        launch_(launch),
        sums_(launch.sums == nullptr
                  ? nullptr
                  : launch.sums + index * static_cast<int64_t>(code_.sums.size()) * code_.width) {
    for (size_t v = 0; v < code_.values.size(); ++v) {
      const RowValue& value = code_.values[v];
      if (value.kind == Where::kNumber) fill(value, 0, 0, 1);
      if (value.kind == Where::kRow && code_.whole_rows && value.at >= 0) {
        for (int64_t r = 0; r < code_.tile_rows; ++r) copy(value, 0, r * code_.width, code_.width);
      }
    }
  }

  /// Rows [begin, end), whole ones.
  void run_rows(int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += code_.tile_rows) {
      run_tile(row, 0, std::min(code_.tile_rows, end - row), code_.width);
    }
  }

  /// Tiles [begin, end), counted row by row, that are pieces of a row.
  void run_pieces(int64_t begin, int64_t end, int64_t tiles_a_row) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t from = tile % tiles_a_row * code_.tile_width;
      run_tile(tile / tiles_a_row, from, 1, std::min(code_.tile_width, code_.width - from));
    }
  }

 private:
  void run_tile(int64_t row, int64_t column, int64_t rows, int64_t width) {
    begin_ = row * code_.width + column;
    column_ = column;
    count_ = rows * width;
    rows_ = rows;
    for (const RowValue& value : code_.values) {
      if (value.kind == Where::kRow && !code_.whole_rows && value.at >= 0)
        copy(value, column, 0, width);
      if (value.kind != Where::kColumn) continue;
      for (int64_t r = 0; r < rows; ++r) fill(value, row + r, r * width, width);
    }
    for (const RowStep& step : code_.steps) run_step(step);
  }

  void run_step(const RowStep& step) {
    switch (step.kind) {
      case Kind::kWiden:
        loops_.from_bfloat16(host::data<uint16_t>(launch_.in[step.place]) + begin_, at(step.y),
                             count_);
        return;
      case Kind::kRound:
        loops_.round_bfloat16(at(step.a), at(step.y), count_);
        return;
      case Kind::kNarrow:
        loops_.to_bfloat16(at(step.a), host::data<uint16_t>(launch_.out[step.place]) + begin_,
                           count_);
        return;
      case Kind::kCopy:
        std::memmove(at(step.y), at(step.a), static_cast<size_t>(count_) * sizeof(float));
        return;
      case Kind::kUnary:
        step.unary(at(step.a), at(step.y), count_, step.alpha);
        return;
      case Kind::kBinary:
        step.binary(at(step.a), stride(step.a), at(step.b), stride(step.b), at(step.y), count_,
                    step.alpha);
        return;
      default:
        for (int64_t r = 0; r < rows_; ++r) run_row(step, r, r * code_.width);
    }
  }

  // The steps of a normalisation, a row at a time; `from` is where row `r` of the tile begins.
  void run_row(const RowStep& step, int64_t r, int64_t from) {
    RowStatistics& s = statistics_[step.statistics][r];
    const int64_t n = code_.width;
    switch (step.kind) {
      case Kind::kStatistics:
        s = loops_.statistics(at(step.a) + from, n, step.norm);
        return;
      case Kind::kNorm:
        loops_.norm(at(step.a) + from, s, at(step.b), step.c < 0 ? nullptr : at(step.c),
                    at(step.y) + from, n);
        return;
      case Kind::kNormGrad:
        loops_.norm_grad(at(step.a) + from, at(step.b) + from, s, at(step.c), step.norm.center,
                         at(step.y) + from, n);
        return;
      default:
        loops_.norm_scale_grad(at(step.a) + from, at(step.b) + from, s, sums_ + step.place * n, n);
    }
  }

  int64_t stride(int value) const {
    return code_.values[static_cast<size_t>(value)].kind == Where::kNumber ? 0 : 1;
  }

  float* at(int v) {
    const RowValue& value = code_.values[static_cast<size_t>(v)];
    switch (value.kind) {
      case Where::kInput:  // only read: what steps write is no input
        return static_cast<float*>(launch_.in[value.place]->data) + begin_;
      case Where::kOutput:
        return host::data<float>(launch_.out[value.place]) + begin_;
      default:
        if (value.at >= 0) return scratch_ + value.at;
        return static_cast<float*>(launch_.in[value.place]->data) + column_;
    }
  }

  // Elements [from, from + n) of an input, widened, to scratch.
  void copy(const RowValue& value, int64_t from, int64_t to, int64_t n) {
    float* y = scratch_ + value.at + to;
    const DLTensor* in = launch_.in[value.place];
    if (value.narrow) {
      loops_.from_bfloat16(host::data<uint16_t>(in) + from, y, n);
    } else {
      std::memcpy(y, host::data<float>(in) + from, static_cast<size_t>(n) * sizeof(float));
    }
  }
  // Element `from` of an input, n times.
  void fill(const RowValue& value, int64_t from, int64_t to, int64_t n) {
    copy(value, from, to, 1);
    float* y = scratch_ + value.at + to;
    std::fill(y + 1, y + n, *y);
  }

  const RowCode& code_;
  const Simd& loops_;
  const Launch& launch_;
  double* sums_;
  int64_t begin_ = 0, column_ = 0, count_ = 0, rows_ = 0;  // of the tile
  RowStatistics statistics_[kRowStatistics][kTileRows];
  alignas(64) float scratch_[kRowScratch];
};

RowProgram::RowProgram(const host::GroupSpec& group, const Context& context, RowCode code)
    : context_(context),
      code_(std::move(code)),
      block_rows_(sum_block_rows(code_.rows)),
      blocks_((code_.rows + block_rows_ - 1) / block_rows_) {
  for (const int place : code_.sums) {
    narrow_sums_.push_back(group.outputs[static_cast<size_t>(place)].dtype == GR_BFLOAT16);
  }
}

int64_t RowProgram::workspace_bytes() const {
  const int64_t sums = static_cast<int64_t>(code_.sums.size());
  return blocks_ * sums * code_.width * int64_t{sizeof(double)};
}

int32_t RowProgram::run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
                        gr_error_t*) const {
  Launch launch{in, out, code_.sums.empty() ? nullptr : static_cast<double*>(workspace)};
  const int64_t grain = kPlainGrain / code_.work;  // elements worth a thread
  if (launch.sums != nullptr) {
    std::memset(workspace, 0, static_cast<size_t>(workspace_bytes()));
    context_.pool.run_pieces(blocks_, [&](int64_t block) {
      Piece piece(*this, launch, block);
      piece.run_rows(block * block_rows_, std::min(code_.rows, (block + 1) * block_rows_));
    });
    join_sums(launch);
  } else if (code_.whole_rows) {
    const int64_t rows = std::max<int64_t>(1, grain / code_.width);
    context_.pool.parallel(code_.rows, rows, [&](int64_t begin, int64_t end) {
      Piece(*this, launch, 0).run_rows(begin, end);
    });
  } else {
    const int64_t tiles = (code_.width + code_.tile_width - 1) / code_.tile_width;
    const int64_t least = std::max<int64_t>(1, grain / code_.tile_width);
    context_.pool.parallel(code_.rows * tiles, least, [&](int64_t begin, int64_t end) {
      Piece(*this, launch, 0).run_pieces(begin, end, tiles);
    });
  }
  return GR_OK;
}

void RowProgram::join_sums(const Launch& launch) const {
  const int64_t n = code_.width, sums = static_cast<int64_t>(code_.sums.size());
  for (int64_t k = 0; k < sums; ++k) {
    DLTensor* out = launch.out[code_.sums[static_cast<size_t>(k)]];
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t block = 0; block < blocks_; ++block) {
        sum += launch.sums[(block * sums + k) * n + j];
      }
      const float rounded = static_cast<float>(sum);
      if (narrow_sums_[static_cast<size_t>(k)]) {
        context_.loops.to_bfloat16(&rounded, host::data<uint16_t>(out) + j, 1);
      } else {
        host::data<float>(out)[j] = rounded;
      }
    }
  }
}

}  // namespace gradrack::cpu
