// SPDX-License-Identifier: Apache-2.0
// Feed: batches from a data plugin into the input tensors of a plan.
//
// Matches what the data offers with what a graph wants, by name, and binds the graph's symbols.
// Invariant: after bindings() answered for a graph, fill() brings exactly what that graph expects,
// and a batch is a function of (seed, split, index) alone.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/data/batch_tensors.hpp"
#include "core/data/prefetch.hpp"
#include "core/graph/graph.hpp"

namespace gradrack {

class Feed {
 public:
  /// `data` (not owned) outlives the feed; `name` is for messages. [main]
  static Result<Feed> make(const gr_data_t& data, std::string name, uint64_t seed);

  const gr_data_info_t& info() const { return info_; }

  /// From now on the next `depth` training batches of `batch` rows are prepared ahead, by `workers`
  /// threads where the source allows several at once, else by one. The same bytes. The feed stays
  /// where it is from here on. [main]
  void prepare_ahead(int64_t batch, int64_t depth, int64_t workers);

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

  /// What batch `index` of a split is when `batch` rows are asked for. Allocates nothing. Waits for
  /// a batch that is prepared ahead: GR_CANCELLED once a stop signal came. [exec]
  Result<BatchDescription> describe(int32_t split, int64_t index, int64_t batch) const;

  /// Rows of batch `index` of a split when `batch` are asked for; 0 after the end. [any]
  Result<int64_t> rows(int32_t split, int64_t index, int64_t batch) const;
  /// Fills one tensor per name. `batch` is the size that `index` counts in; the tensors hold rows()
  /// rows and have the sizes that describe() told. A tensor may be NULL when the graph does not
  /// read it: it is then filled into memory of the feed's own. Allocates nothing after the first
  /// call. [exec]
  Status fill(int32_t split, int64_t index, int64_t batch, int64_t rows,
              const std::vector<DLTensor*>& tensors, const BatchSizes& sizes = {});
  /// Describes batch `index` and fills memory of `out`, which is kept for the next call. From any
  /// thread, several at once.
  Status prepare(int32_t split, int64_t index, int64_t batch, int64_t rows,
                 PreparedBatch* out) const;

  /// Digits that tell whether two feeds bring the same: of the identity that the source gives, of
  /// the first batch of either split, for `batch` rows, and of how much there is. GR_* of the data.
  /// [any]
  Result<std::string> fingerprint(int64_t batch) const;

 private:
  Status read_batch_info();
  const gr_data_output_t& output(size_t k) const;
  /// Dim `d` of an output, "batch" aside.
  int64_t size_of(const gr_dim_t& dim, const BatchSizes& sizes) const;
  /// Gives a tensor the shape of output k.
  DLTensor* reshape(size_t k, int64_t rows, const BatchSizes& sizes, BatchTensor* tensor) const;
  /// One call of the source at a time, unless it is one for several threads.
  std::unique_lock<std::mutex> lock_calls() const;
  bool is_ahead(int64_t batch) const { return ahead_ != nullptr && batch == ahead_batch_; }
  Result<BatchDescription> ask(int32_t split, int64_t index, int64_t batch) const;
  Status call(int32_t split, int64_t index, int64_t batch, DLTensor* const* tensors) const;
  Status copy_ahead(int64_t index, const std::vector<DLTensor*>& tensors);
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
  std::vector<BatchTensor> spares_;  ///< for outputs that no plan reads
  std::vector<DLTensor*> filled_;
  std::unique_ptr<std::mutex> calls_ = std::make_unique<std::mutex>();
  int64_t ahead_batch_ = 0;
  std::unique_ptr<Prefetch> ahead_;  ///< last: its threads use the rest
};

}  // namespace gradrack
