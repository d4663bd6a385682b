// SPDX-License-Identifier: Apache-2.0
// Product: matrix products of one A with several B side by side, or sums of products, cut into
// tiles and run over the pool or by one thread on a range of rows.
//
//   C_j = alpha (A_0 B_0j + A_1 B_1j + ...)      for each part j; terms are summed in float32
//
// Made once for its shapes; a run allocates nothing. B is packed at each run, once, into the
// workspace; A is read in place where its layout allows. Invariant: the sum of an element has one
// order, which depends on the shapes alone. Any size may be 0. The innermost loops are in
// tiles.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/pool.hpp"
#include "backends/cpu/tiles.hpp"

namespace gradrack::cpu {

/// How a factor lies in memory: steps, in elements, between its rows and columns, one of them 1.
struct FactorLayout {
  bool narrow = false;  // bfloat16, else float32
  int64_t row = 0, column = 1;
};

struct ProductShape {
  struct Term {
    int64_t k = 0;
    FactorLayout a;               // [rows, k]
    std::vector<FactorLayout> b;  // [k, columns] of each part
  };
  struct Part {
    int64_t columns = 0;
    bool narrow = false;  // C is bfloat16, else float32
    int64_t row = 0;      // elements between the rows of C

    /// Of so many rows C is larger than the caches: what is written is not there when it is read.
    bool outgrows_caches(int64_t rows) const { return rows * row * (narrow ? 2 : 4) >= kManyBytes; }
    static constexpr int64_t kManyBytes = int64_t{4} << 20;
  };
  bool narrow = false;  // factors are rounded to bfloat16 as they are packed; else float32 products
  int64_t rows = 0;
  std::vector<Term> terms;
  std::vector<Part> parts;
  float alpha = 1.0f;
  bool accumulate = false;  // C += ...; float32 C alone
  bool finish = false;      // a ProductFinish takes the sums instead of C
  // Two parts of equal width: `finish` gets each tile of the second after the one of the first at
  // its place, from the same thread.
  bool paired = false;
};

/// Finished sums, times alpha: rows and columns from (row, column) of part `part` on.
struct ProductTile {
  const float* sums;
  int64_t row_sums;  // elements between rows
  int part;
  int64_t row, rows, column, columns;
};

/// Takes tiles as they are finished, each element once, on any thread of the team.
class ProductFinish {
 public:
  virtual ~ProductFinish() = default;
  /// A tile of this place comes soon: what take() reads may be asked for.
  virtual void expect(const ProductTile&) const {}
  virtual void take(const ProductTile& tile) const = 0;
};

/// Pointers of one run: a[term], b[term * parts + part], c[part]; c or finish is null.
struct ProductData {
  const void* const* a = nullptr;
  const void* const* b = nullptr;
  void* const* c = nullptr;
  const ProductFinish* finish = nullptr;
};

class Product {
 public:
  /// `packed_limit`: bytes of B that may be packed at a time; larger ones are packed and used piece
  /// by piece. A product that is run by rows keeps all of B packed: give INT64_MAX.
  Product(ProductShape shape, int threads, int64_t packed_limit = kPackedLimit,
          const TileLoops* loops = nullptr);
  static constexpr int64_t kPackedLimit = int64_t{1} << 20;

  /// All of it, over the pool. `workspace`: workspace_bytes(), aligned to 64.
  void run(Pool& pool, const ProductData& data, void* workspace) const;
  /// All of it, on the calling thread.
  void run_alone(const ProductData& data, void* workspace) const;
  int64_t workspace_bytes() const;

  // By hand, where the caller has its own loops: pack() each piece, any order and thread; then
  // run_rows() on ranges of rows, any thread, each with a scratch of its own. For a product made
  // with packed_limit INT64_MAX.
  int64_t packed_bytes() const { return packed_bytes_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }
  int64_t pack_pieces() const { return static_cast<int64_t>(panels_.size()); }
  void pack(int64_t piece, const ProductData& data, void* packed) const;
  /// Rows [row, row + rows) of all parts. `data` begins at row 0, as in run().
  void run_rows(int64_t row, int64_t rows, const ProductData& data, const void* packed,
                void* scratch) const;

 private:
  /// A range of one term's k that is summed in registers.
  struct Block {
    size_t term;
    int64_t k, size;
    int64_t before;  // numbers of k, filled up, of the blocks before it in its pass
  };
  struct Panel {
    int part;
    int64_t column, columns;
  };
  /// Panels and blocks whose packed B fits the limit: all, unless B is large.
  struct Pass {
    size_t first_panel, last_panel, first_block, last_block;
    int64_t depth;  // numbers of k of a panel, filled up
    int64_t panels() const { return static_cast<int64_t>(last_panel - first_panel); }
  };
  /// What one thread does at a time: some rows by some panels of a pass.
  struct Task {
    const Pass* pass;
    int64_t row, rows, height;  // height: of a tile
    size_t first_panel, last_panel;
    const ProductData* data;
    const char* packed;
    float* sums;  // of the task's first element, where there is more than one block
    int64_t row_sums;
    char* rows_packed;  // A, where it cannot be read in place
  };

  struct Range {
    int64_t row, rows;
    size_t first_panel, last_panel;
  };

  class Flow;
  static constexpr int64_t kAlign = 64;
  static int64_t parts_of(int64_t n, int64_t each) { return (n + each - 1) / each; }
  static int64_t up(int64_t n, int64_t unit) { return parts_of(n, unit) * unit; }
  /// Places for packed B: two where one is read while the next pass is packed.
  int64_t places() const { return threads_ > 1 && passes_.size() > 1 ? 2 : 1; }

  void cut_columns();
  int64_t pass_depth(int64_t limit) const;
  void cut_depth(int64_t limit);
  void cut_passes(int64_t limit);
  void cut_rows();
  bool direct(const Panel& panel) const;
  bool streams(const Panel& panel) const;
  bool all_direct() const;
  bool in_place(const Block& block, int64_t rows) const;
  int64_t row_of(int64_t block) const;
  int64_t tasks(const Pass& pass) const;
  const char* panel_at(const Pass& pass, const Block& block, size_t panel,
                       const char* packed) const;
  TileRows rows_of(const Task& task, const Block& block, int64_t row, int64_t rows) const;
  void pack_panels(const Pass& pass, size_t first, size_t last, const ProductData& data,
                   char* packed) const;
  void pack_rows(const Task& task) const;
  int64_t most_tasks() const;
  int64_t pieces(const Pass& pass) const;
  void pack_piece(const Pass& pass, int64_t piece, int64_t count, const ProductData& data,
                  char* packed) const;
  void run_numbered(const Pass& pass, int64_t task, const ProductData& data, const char* packed,
                    char* sums, char* scratch) const;
  Task make_task(const Pass& pass, const Range& range, const ProductData& data, const char* packed,
                 char* sums, char* scratch) const;
  void expect(const TileRows& a, const Block& block, int64_t rows) const;
  void run_task(const Task& task) const;
  ProductTile run_tile(const Task& task, size_t block, size_t panel, int64_t row, int64_t rows,
                       float* small) const;
  void hand_over(const Task& task, const ProductTile& tile) const;

  ProductShape shape_;
  const TileLoops& loops_;
  int threads_;
  std::vector<Block> blocks_;
  std::vector<Panel> panels_;
  std::vector<Pass> passes_;
  int64_t panel_unit_ = 1;  // panels that stay together
  int64_t row_blocks_ = 1;
  int64_t block_rows_ = 0, block_panels_ = 0;  // of a task at most
  int64_t packed_bytes_ = 0, sums_bytes_ = 0, rows_bytes_ = 0, scratch_bytes_ = 0;
};

}  // namespace gradrack::cpu
