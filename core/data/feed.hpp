// SPDX-License-Identifier: Apache-2.0
// Feed: batches from a data plugin into the input tensors of a plan.
//
// Matches what the data offers with what a graph wants, by name, and binds the graph's symbols.
// Invariant: after bindings() answered for a graph, fill() brings exactly what that graph expects,
// and a batch is a function of (seed, split, index) alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "gradrack/data.h"

namespace gradrack {

/// Sizes of the symbols that gr.batch/1 declares, in its order; 0 beyond them.
using BatchSizes = std::array<int64_t, GR_MAX_BATCH_SYMBOLS>;

/// What one batch is.
struct BatchDescription {
  size_t set = 0;  ///< index into Feed::objective_sets(); 0 where there are none
  BatchSizes sizes = {};
};

class Feed {
 public:
  /// `data` (not owned) outlives the feed; `name` is for messages. [main]
  static Result<Feed> make(const gr_data_t& data, std::string name, uint64_t seed);

  const gr_data_info_t& info() const { return info_; }
  /// Names of the data's outputs, in its order: the order of fill()'s tensors.
  const std::vector<std::string>& names() const { return names_; }

  /// The sets of objectives that batches can have; empty: every batch has all.
  const std::vector<std::vector<std::string>>& objective_sets() const { return sets_; }
  /// Symbols among the dims of the outputs, "batch" aside, and their largest sizes.
  const std::vector<std::string>& symbols() const { return symbols_; }
  const BatchSizes& largest() const { return largest_; }

  /// Symbols of `graph` for batches of `rows` rows and those sizes. GR_INVALID_ARGUMENT, naming
  /// both sides: an input that the data does not bring, another dtype or rank, a dim that differs,
  /// a limit beyond the model's. [plan]
  Result<Bindings> bindings(const Graph& graph, int64_t rows, const BatchSizes& sizes = {}) const;

  /// What batch `index` of a split is when `batch` rows are asked for. Allocates nothing. [exec]
  Result<BatchDescription> describe(int32_t split, int64_t index, int64_t batch) const;

  /// Rows of batch `index` of a split when `batch` are asked for; 0 after the end. [any]
  Result<int64_t> rows(int32_t split, int64_t index, int64_t batch) const;
  /// Fills one tensor per name. `batch` is the size that `index` counts in; the tensors hold rows()
  /// rows and have the sizes that describe() told. A tensor may be NULL when the graph does not
  /// read it: it is then filled into memory of the feed's own. Allocates nothing after the first
  /// call. [exec]
  Status fill(int32_t split, int64_t index, int64_t batch, int64_t rows,
              const std::vector<DLTensor*>& tensors, const BatchSizes& sizes = {});

 private:
  /// Room for an output that no plan reads.
  struct Spare {
    std::vector<std::byte> bytes;
    std::vector<int64_t> dims;
    std::vector<int64_t> strides;
    DLTensor tensor = {};
  };
  Status read_batch_info();
  const gr_data_output_t& output(size_t k) const;
  /// Dim `d` of an output, "batch" aside.
  int64_t size_of(const gr_dim_t& dim, const BatchSizes& sizes) const;
  DLTensor* spare(size_t k, int64_t rows, const BatchSizes& sizes);
  Status check_input(const Value& input, const gr_data_output_t& output, int64_t rows,
                     const BatchSizes& sizes, Bindings* bindings) const;

  const gr_data_t* data_ = nullptr;
  const gr_batch_t* batches_ = nullptr;  ///< gr.batch/1; null: all batches are alike
  std::string name_;
  uint64_t seed_ = 0;
  gr_data_info_t info_ = {};
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> sets_;
  std::vector<std::string> symbols_;
  BatchSizes largest_ = {};
  std::vector<Spare> spares_;
  std::vector<DLTensor*> filled_;
};

}  // namespace gradrack
