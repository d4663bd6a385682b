// SPDX-License-Identifier: Apache-2.0
// Windows: which tokens a row of a batch holds, for sources of next-token batches.
//
// Tokens lie in parts (a file is one, a shard is one); a window is `block` tokens of a range and
// the one behind them, so it crosses no border. Where windows may be partial, the last one of a
// range has fewer. Invariant: the window of a row is a function of (seed, split, index, batch_size,
// row), so a position in the data is a number.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gradrack/data.hpp"

namespace corpus {

/// Tokens [first, first + count) of part `part`.
struct Range {
  size_t part = 0;
  int64_t first = 0;
  int64_t count = 0;
};

/// A window: the tokens [first, first + count), each with the one behind it as its target.
struct Window {
  size_t part = 0;
  int64_t first = 0;
  int64_t count = 0;
};

/// How training goes through its windows.
enum class WindowOrder {
  kRandom,     ///< each by a draw of its own, from any place: `random_windows`
  kPermuted,   ///< those at 0, block, 2 block, ... of each range, in a new order each epoch
  kSequential  ///< the same as they lie
};

/// The option's declaration and its meaning.
constexpr gr_option_t order_option(const char* standard) {
  return GR_OPT_CHOICE("order", standard, "random_windows|permuted|sequential",
                       "training windows: from random places; each once an epoch, in a new order "
                       "each epoch; or as they lie");
}
WindowOrder window_order(const std::string& name);

/// Splits n tokens by position: what trains. A fraction counts in millionths, so that 0.1 means
/// exactly floor(n * 9 / 10).
int64_t training_part(int64_t tokens, double validation_fraction);

/// Is anything kept at all? A millionth is the least that counts.
bool keeps_some(double validation_fraction);

/// Is what `text` names kept for evaluation? A function of the text alone, so that it stays on its
/// side when others come and go.
bool validates_by_hash(std::string_view text, double validation_fraction);

/// Random numbers of row `row` of a batch. `tag` keeps them apart from other draws. [any]
std::array<uint32_t, 4> draw_for_row(const gr_batch_request_t& request, int64_t row, uint32_t tag);

class Windows {
 public:
  /// `partial`: a range of n tokens has windows for all of its n - 1 targets; those that are drawn
  /// begin at multiples of `block` too.
  Windows(std::vector<Range> train, std::vector<Range> validation, int64_t block, WindowOrder order,
          bool partial = false);

  int64_t block() const { return block_; }
  int64_t train_items() const { return train_.total(); }  ///< windows to draw from
  int64_t validation_items() const { return validation_.total(); }

  /// All that decides the windows, as text.
  std::string identity() const;

  /// As gr_data_t.rows. Throws GR_INVALID_ARGUMENT for a batch that cannot exist. [any]
  int64_t rows(const gr_batch_request_t& request) const;
  /// That of row `row` of a batch, below rows(). [any]
  Window window(const gr_batch_request_t& request, int64_t row) const;

 private:
  /// The windows of some ranges, numbered through.
  class Index {
   public:
    /// `step`: tokens between two windows.
    Index(std::vector<Range> ranges, int64_t block, int64_t step, bool partial);
    int64_t total() const { return ends_.empty() ? 0 : ends_.back(); }
    Window at(int64_t number) const;
    std::string text() const;

   private:
    std::vector<Range> ranges_;
    std::vector<int64_t> ends_;  // by range: windows up to its end
    int64_t block_, step_;
  };

  int64_t train_number(const gr_batch_request_t& request, int64_t row) const;

  int64_t block_;
  WindowOrder order_;
  Index train_, validation_;
};

}  // namespace corpus
