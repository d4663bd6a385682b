// SPDX-License-Identifier: Apache-2.0
// Product: cuts C into passes, tasks and tiles; see product.hpp. product_run.cpp runs them.
//
// Order of the loops, outermost first: passes (all of B at once, unless it is large), tasks (rows
// by panels of B, over the threads), blocks of k, panels, tiles. So a panel's block of B stays in
// the first cache while the rows of a task, which stay in the second, go by.
#include "backends/cpu/product.hpp"

#include <algorithm>

namespace gradrack::cpu {
namespace {

constexpr int64_t kMostRows = 128;                // of a task
constexpr int64_t kTaskBytes = int64_t{1} << 19;  // of A and sums: a part of the second cache
constexpr int64_t kLargestTile = 32 * 32;
constexpr int64_t kMostSums = int64_t{16} << 20;  // bytes put aside between passes
constexpr int64_t kPackedAtOnce = 32;             // numbers of k; a multiple of every table's depth

/// Numbers of k in a block: so many that its panel of B takes a good part of the first cache.
int64_t block_depth(const TileLoops& loops) { return loops.narrow ? 512 : 384; }

}  // namespace

Product::Product(ProductShape shape, int threads, int64_t packed_limit, const TileLoops* loops)
    : shape_(std::move(shape)),
      loops_(loops != nullptr ? *loops : tile_loops(shape_.narrow)),
      threads_(threads) {
  cut_columns();
  cut_depth(packed_limit);
  cut_passes(packed_limit);
  cut_rows();
}

void Product::cut_columns() {
  for (size_t j = 0; j < shape_.parts.size(); ++j) {
    for (int64_t at = 0; at < shape_.parts[j].columns; at += loops_.columns) {
      const int64_t left = shape_.parts[j].columns - at;
      panels_.push_back({static_cast<int>(j), at, std::min<int64_t>(loops_.columns, left)});
    }
  }
  if (!shape_.paired) return;
  panel_unit_ = 2;  // the parts' panels in turn; pairs are never cut
  std::sort(panels_.begin(), panels_.end(), [](const Panel& one, const Panel& other) {
    return std::pair(one.column, one.part) < std::pair(other.column, other.part);
  });
}

/// Numbers of k that are packed at a time. Either all columns of a part of k, where going over C
/// once more a part is cheaper than reading A once more for a part of the columns; or all of k for
/// some columns, as long as a few panels fit.
int64_t Product::pass_depth(int64_t limit) const {
  constexpr int64_t kLeastDepth = 128, kFewPanels = 8;
  const auto panels = std::max<int64_t>(1, static_cast<int64_t>(panels_.size()));
  const int64_t bytes = loops_.columns * loops_.element();  // of a panel, a number of k
  const int64_t wide = limit / (panels * bytes);
  int64_t a_bytes = 0, c_bytes = 0;  // a row of A, of C
  for (const ProductShape::Term& term : shape_.terms) {
    const int64_t to_turn = term.a.column == 1 ? 1 : 4;  // packing costs more than reading
    a_bytes += term.k * loops_.element() * to_turn;
  }
  for (const ProductShape::Part& part : shape_.parts) c_bytes += 2 * 4 * part.columns;
  const bool room = all_direct() || shape_.rows * c_bytes / 2 <= kMostSums;
  if (room && wide >= kLeastDepth && c_bytes <= a_bytes) return wide;
  return limit / (std::min(panels, kFewPanels) * bytes);
}

void Product::cut_depth(int64_t limit) {
  const int64_t pass = std::max<int64_t>(pass_depth(limit) / loops_.depth, 1) * loops_.depth;
  const int64_t most = std::min(block_depth(loops_), pass);
  for (size_t t = 0; t < shape_.terms.size(); ++t) {
    const int64_t k = shape_.terms[t].k;
    const int64_t count = parts_of(k, most);
    const int64_t each = count == 0 ? 0 : up(parts_of(k, count), loops_.depth);
    for (int64_t at = 0; at < k; at += each) blocks_.push_back({t, at, std::min(each, k - at), 0});
  }
  if (blocks_.empty()) blocks_.push_back({0, 0, 0, 0});  // zeros are written all the same
}

bool Product::all_direct() const {
  return std::all_of(panels_.begin(), panels_.end(),
                     [this](const Panel& panel) { return direct(panel); });
}

void Product::cut_passes(int64_t limit) {
  const auto bytes = [&](int64_t depth) { return loops_.packed_b_bytes(depth); };
  const int64_t most_depth = pass_depth(limit);
  int64_t depth = 0;
  std::vector<std::pair<size_t, size_t>> chunks;
  size_t first = 0;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const int64_t size = loops_.padded(blocks_[b].size);
    if (b > first && depth + size > most_depth) {
      chunks.push_back({first, b});
      first = b;
      depth = 0;
    }
    blocks_[b].before = depth;
    depth += size;
  }
  chunks.push_back({first, blocks_.size()});
  int64_t deepest = 0;
  for (const auto& [from, to] : chunks) {
    deepest = std::max(deepest, blocks_[to - 1].before + loops_.padded(blocks_[to - 1].size));
  }
  const int64_t most = limit / std::max<int64_t>(1, bytes(deepest)) / panel_unit_;
  const auto fit = static_cast<size_t>(std::max<int64_t>(1, most) * panel_unit_);
  for (size_t at = 0; at < panels_.size(); at += fit) {
    const size_t end = fit < panels_.size() - at ? at + fit : panels_.size();
    for (const auto& [from, to] : chunks) {
      const Block& last = blocks_[to - 1];
      passes_.push_back({at, end, from, to, last.before + loops_.padded(last.size)});
    }
  }
  for (const Pass& pass : passes_) {
    packed_bytes_ = std::max(packed_bytes_, pass.panels() * bytes(pass.depth));
  }
  packed_bytes_ = up(packed_bytes_, kAlign);
  // Sums between passes are kept for all rows, unless all go to C itself.
  if (chunks.size() > 1 && !all_direct()) {
    const auto panels = static_cast<int64_t>(std::min(fit, panels_.size()));
    sums_bytes_ = up(shape_.rows, loops_.rows) * panels * loops_.columns * int64_t{sizeof(float)};
  }
}

void Product::cut_rows() {
  int64_t depth = 1, most_panels = 1, columns = 0;
  for (const Pass& pass : passes_) {
    depth = std::max(depth, pass.depth);
    most_panels = std::max(most_panels, pass.panels());
  }
  for (const ProductShape::Part& part : shape_.parts) columns += part.columns;
  int64_t inner = 0;
  for (const ProductShape::Term& term : shape_.terms) inner += term.k;
  // Pieces that take 2 us or more, and some for each thread, so that a late one is not waited for.
  const int64_t grain = loops_.narrow ? 1 << 21 : 1 << 18;  // multiply-adds
  const int64_t work = shape_.rows * columns * inner / grain;
  const int64_t wanted = threads_ == 1 ? 1 : std::clamp<int64_t>(work, 1, int64_t{4} * threads_);

  const bool sums = blocks_.size() > 1 && sums_bytes_ == 0;
  const int64_t row_sums = sums ? most_panels * loops_.columns * int64_t{sizeof(float)} : 0;
  const int64_t fit =
      kTaskBytes / (depth * loops_.element() + row_sums) / loops_.rows * loops_.rows;
  const int64_t most = std::clamp<int64_t>(fit, loops_.rows, up(kMostRows, loops_.rows));
  // Rows are cut evenly, at tiles, into a multiple of the threads; columns too, where rows are few.
  const int64_t tiles_high = std::max<int64_t>(1, parts_of(shape_.rows, loops_.rows));
  // A panel of B is read for the tiles of a block: not too few of them.
  constexpr int64_t kFewTiles = 7;
  const int64_t blocks = std::max(std::min(wanted, parts_of(tiles_high, kFewTiles)),
                                  parts_of(tiles_high * loops_.rows, most));
  row_blocks_ = std::min(tiles_high, wanted > 1 ? up(blocks, threads_) : blocks);
  block_rows_ = parts_of(tiles_high, row_blocks_) * loops_.rows;
  const int64_t groups = parts_of(wanted, row_blocks_);
  block_panels_ = std::max<int64_t>(2, up(parts_of(most_panels, groups), panel_unit_));

  const int64_t tiles = block_rows_ / loops_.rows;
  rows_bytes_ = up(tiles * loops_.packed_a_bytes(depth), kAlign);
  scratch_bytes_ = rows_bytes_;
  if (sums) scratch_bytes_ += block_rows_ * block_panels_ * loops_.columns * int64_t{sizeof(float)};
}

/// Sums go to C itself: nothing is done to them afterwards.
bool Product::direct(const Panel& panel) const {
  return !shape_.finish && shape_.alpha == 1.0f &&
         !shape_.parts[static_cast<size_t>(panel.part)].narrow;
}

/// Sums that are finished in one go are written past the caches where C is large.
bool Product::streams(const Panel& panel) const {
  const ProductShape::Part& part = shape_.parts[static_cast<size_t>(panel.part)];
  return blocks_.size() == 1 && !shape_.accumulate && part.outgrows_caches(shape_.rows);
}

const char* Product::panel_at(const Pass& pass, const Block& block, size_t panel,
                              const char* packed) const {
  const int64_t place = static_cast<int64_t>(panel - pass.first_panel);
  return packed + loops_.packed_b_bytes(block.before) * pass.panels() +
         loops_.packed_b_bytes(block.size) * place;
}

/// Panels [first, last) of B. Where B's rows lie as in memory all panels are given some rows at a
/// time, so that memory is read in its order.
void Product::pack_panels(const Pass& pass, size_t first, size_t last, const ProductData& data,
                          char* packed) const {
  for (size_t b = pass.first_block; b < pass.last_block; ++b) {
    const Block& block = blocks_[b];
    const std::vector<FactorLayout>& layouts = shape_.terms[block.term].b;
    const bool by_rows = layouts[0].column == 1;
    const int64_t step = by_rows ? kPackedAtOnce : std::max<int64_t>(1, block.size);
    for (int64_t k = 0; k < block.size; k += step) {
      for (size_t panel = first; panel < last; ++panel) {
        const Panel& p = panels_[panel];
        const auto part = static_cast<size_t>(p.part);
        const FactorLayout& layout = layouts[part];
        const Factor factor{data.b[block.term * shape_.parts.size() + part], layout.narrow,
                            layout.row, layout.column};
        char* const to = const_cast<char*>(panel_at(pass, block, panel, packed));
        loops_.pack_b(factor.at(block.k + k, p.column), std::min(step, block.size - k), p.columns,
                      to + loops_.packed_b_bytes(k));
      }
    }
  }
}

/// Whether a tile of so many rows can read A where it lies.
bool Product::in_place(const Block& block, int64_t rows) const {
  const FactorLayout& layout = shape_.terms[block.term].a;
  return layout.narrow == loops_.narrow && layout.column == 1 && block.size % loops_.depth == 0 &&
         rows % loops_.row_group == 0;
}

/// A's rows under a tile over a block of k: in place, or where pack_rows() puts them.
TileRows Product::rows_of(const Task& task, const Block& block, int64_t row, int64_t rows) const {
  if (in_place(block, rows)) {
    const FactorLayout& layout = shape_.terms[block.term].a;
    const auto* a = static_cast<const char*>(task.data->a[block.term]);
    const int64_t element = loops_.element(), row_bytes = layout.row * element;
    return {a + row * row_bytes + block.k * element, row_bytes, loops_.depth * element,
            16 * row_bytes};
  }
  const int64_t tiles = parts_of(task.rows, task.height), tile = (row - task.row) / task.height;
  return loops_.packed_view(task.rows_packed + loops_.packed_a_bytes(block.before) * tiles +
                            loops_.packed_a_bytes(block.size) * tile);
}

void Product::pack_rows(const Task& task) const {
  for (size_t b = task.pass->first_block; b < task.pass->last_block; ++b) {
    const Block& block = blocks_[b];
    const FactorLayout& layout = shape_.terms[block.term].a;
    const Factor a{task.data->a[block.term], layout.narrow, layout.row, layout.column};
    const bool turned = layout.column != 1;  // as in pack_panels()
    const int64_t step = turned ? kPackedAtOnce : std::max<int64_t>(1, block.size);
    for (int64_t k = 0; k < block.size; k += step) {
      for (int64_t at = 0; at < task.rows; at += task.height) {
        const int64_t row = task.row + at, rows = std::min(task.height, task.rows - at);
        if (in_place(block, rows)) continue;
        char* const to = const_cast<char*>(rows_of(task, block, row, rows).data);
        loops_.pack_a(a.at(row, block.k + k), rows, std::min(step, block.size - k),
                      to + loops_.packed_a_bytes(k));
      }
    }
  }
}

/// Asks for A's rows under a tile, in place, before they are read.
void Product::expect(const TileRows& a, const Block& block, int64_t rows) const {
  const int64_t bytes = block.size * loops_.element();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t at = 0; at < bytes; at += kAlign)
      __builtin_prefetch(a.data + i * a.row + at, 0, 2);
  }
}

void Product::run_task(const Task& task) const {
  pack_rows(task);
  alignas(kAlign) float small[2][kLargestTile];
  int turn = 0;
  ProductTile waiting{};
  for (size_t b = task.pass->first_block; b < task.pass->last_block; ++b) {
    for (size_t panel = task.first_panel; panel < task.last_panel; ++panel) {
      for (int64_t at = 0; at < task.rows; at += task.height) {
        const int64_t rows = std::min(task.height, task.rows - at);
        const int64_t next = at + task.height, next_rows = std::min(task.height, task.rows - next);
        if (panel == task.first_panel && next < task.rows && in_place(blocks_[b], next_rows)) {
          expect(rows_of(task, blocks_[b], task.row + next, next_rows), blocks_[b], next_rows);
        }
        if (shape_.finish && b + 1 == blocks_.size()) {
          const Panel& p = panels_[panel];
          task.data->finish->expect({nullptr, 0, p.part, task.row + at, rows, p.column, p.columns});
        }
        const ProductTile done = run_tile(task, b, panel, task.row + at, rows, small[turn]);
        hand_over(task, waiting);
        waiting = done;
        turn = 1 - turn;
      }
    }
  }
  hand_over(task, waiting);
}

/// Computes a tile. Its sums are handed over after the next one has been begun, for a processor
/// works on both at once: returns what is to be handed over later, with no rows where there is
/// nothing.
ProductTile Product::run_tile(const Task& task, size_t block, size_t panel, int64_t row,
                              int64_t rows, float* small) const {
  const Block& k = blocks_[block];
  const Panel& p = panels_[panel];
  const ProductShape::Part& part = shape_.parts[static_cast<size_t>(p.part)];
  const bool to_c = direct(p) && !streams(p), last = block + 1 == blocks_.size();
  const bool add = block > 0 || (to_c && shape_.accumulate);
  const TileRows a = rows_of(task, k, row, rows);
  const char* b = panel_at(*task.pass, k, panel, task.packed);
  const int64_t steps = parts_of(k.size, loops_.depth);
  const auto tile = [&](float* c, int64_t row_c) {
    loops_.tile(a, b, steps, static_cast<int>(rows), static_cast<int>(p.columns), c, row_c, add);
  };
  if (to_c) {
    float* c = static_cast<float*>(task.data->c[p.part]) + row * part.row + p.column;
    if (rows % loops_.row_group == 0 && p.columns % loops_.column_group == 0) {
      tile(c, part.row);
      return {};
    }
    if (add) {  // a tile writes more than there is: go by way of a small one
      for (int64_t i = 0; i < rows; ++i) {
        std::copy_n(c + i * part.row, p.columns, small + i * loops_.columns);
      }
    }
    tile(small, loops_.columns);
    loops_.put(small, loops_.columns, rows, p.columns, {c, false, part.row, 1.0f, nullptr});
    return {};
  }
  float* sums = small;
  int64_t row_sums = loops_.columns;
  if (blocks_.size() > 1) {
    row_sums = task.row_sums;
    sums = task.sums + (row - task.row) * row_sums +
           static_cast<int64_t>(panel - task.first_panel) * loops_.columns;
  }
  tile(sums, row_sums);
  return {sums, row_sums, p.part, row, last ? rows : 0, p.column, p.columns};
}

void Product::hand_over(const Task& task, const ProductTile& tile) const {
  if (tile.rows == 0) return;
  const ProductShape::Part& part = shape_.parts[static_cast<size_t>(tile.part)];
  if (!shape_.finish) {
    const int64_t at = (tile.row * part.row + tile.column) * (part.narrow ? 2 : 4);
    void* const c = static_cast<char*>(task.data->c[tile.part]) + at;
    loops_.put(tile.sums, tile.row_sums, tile.rows, tile.columns,
               {c, part.narrow, part.row, shape_.alpha,
                shape_.accumulate ? static_cast<const float*>(c) : nullptr,
                !shape_.accumulate && part.outgrows_caches(shape_.rows)});
    return;
  }
  if (shape_.alpha != 1.0f) {
    auto* sums = const_cast<float*>(tile.sums);
    loops_.put(sums, tile.row_sums, tile.rows, tile.columns,
               {sums, false, tile.row_sums, shape_.alpha, nullptr});
  }
  task.data->finish->take(tile);
}

}  // namespace gradrack::cpu
