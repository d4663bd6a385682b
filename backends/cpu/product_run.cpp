// SPDX-License-Identifier: Apache-2.0
// Product: running passes and tasks, over the pool, alone or by rows; see product.hpp.
//
// Over the pool, threads take the pieces of packing and the tasks of all passes from one list, in
// which what a piece needs stands before it: a thread waits for that alone, never for all others at
// the end of a pass. B is packed into two places in turn.
#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <thread>

#include "backends/cpu/amx.hpp"
#include "backends/cpu/product.hpp"

namespace gradrack::cpu {
namespace {

/// The calling thread's AMX tiles, where the loops want them.
class OpenTiles {
 public:
  explicit OpenTiles(const TileLoops& loops) {
    if (loops.amx) tiles_.emplace();
  }

 private:
  std::optional<AmxTiles> tiles_;
};

template <class Condition>
void wait_until(const Condition& holds) {
  for (int spin = 0; !holds(); ++spin) {
    if (spin > 2000) std::this_thread::yield();  // whoever is waited for may want this core
  }
}

}  // namespace

/// The first row of a block of rows, or the end.
int64_t Product::row_of(int64_t block) const {
  const int64_t tiles = parts_of(shape_.rows, loops_.rows);
  return std::min(shape_.rows, tiles * block / row_blocks_ * loops_.rows);
}

int64_t Product::tasks(const Pass& pass) const {
  return row_blocks_ * parts_of(pass.panels(), block_panels_);
}

/// Pieces that the packing of a pass is cut into.
int64_t Product::pieces(const Pass& pass) const {
  return std::min<int64_t>(pass.panels(), int64_t{2} * threads_);
}

void Product::pack_piece(const Pass& pass, int64_t piece, int64_t count, const ProductData& data,
                         char* packed) const {
  const auto panel = [&](int64_t k) {
    return pass.first_panel + static_cast<size_t>(pass.panels() * k / count);
  };
  pack_panels(pass, panel(piece), panel(piece + 1), data, packed);
}

Product::Task Product::make_task(const Pass& pass, const Range& range, const ProductData& data,
                                 const char* packed, char* sums, char* scratch) const {
  Task task{&pass,  range.row, range.rows, 0,      range.first_panel, range.last_panel, &data,
            packed, nullptr,   0,          scratch};
  const int64_t tiles = parts_of(range.rows, loops_.rows);
  task.height = up(parts_of(range.rows, tiles), loops_.row_group);
  if (sums_bytes_ > 0) {
    task.row_sums = static_cast<int64_t>(passes_[0].panels()) * loops_.columns;
    task.sums = reinterpret_cast<float*>(sums) + range.row * task.row_sums +
                static_cast<int64_t>(range.first_panel - pass.first_panel) * loops_.columns;
  } else if (blocks_.size() > 1) {
    task.row_sums = static_cast<int64_t>(range.last_panel - range.first_panel) * loops_.columns;
    task.sums = reinterpret_cast<float*>(scratch + rows_bytes_);
  }
  return task;
}

void Product::run_numbered(const Pass& pass, int64_t task, const ProductData& data,
                           const char* packed, char* sums, char* scratch) const {
  const int64_t groups = parts_of(pass.panels(), block_panels_);
  const int64_t row = row_of(task / groups), rows = row_of(task / groups + 1) - row;
  const size_t begin = pass.first_panel + static_cast<size_t>(task % groups * block_panels_);
  const size_t end = std::min(begin + static_cast<size_t>(block_panels_), pass.last_panel);
  run_task(make_task(pass, {row, rows, begin, end}, data, packed, sums, scratch));
}

/// One run over the pool: the list of pieces and how far each pass is.
class Product::Flow {
 public:
  Flow(const Product& product, const ProductData& data, char* workspace)
      : product_(product),
        data_(data),
        packed_(workspace),
        sums_(workspace + p().places() * p().packed_bytes_) {
    char* const counters = sums_ + p().sums_bytes_ + p().threads_ * p().scratch_bytes_;
    passes_ = reinterpret_cast<Done*>(counters);
    rounds_ = reinterpret_cast<std::atomic<int32_t>*>(passes_ + p().passes_.size());
    for (size_t k = 0; k < p().passes_.size(); ++k) new (&passes_[k]) Done;
    for (int64_t k = 0; k < p().most_tasks(); ++k) new (&rounds_[k]) std::atomic<int32_t>(0);
  }

  static int64_t bytes(const Product& product) {
    return static_cast<int64_t>(product.passes_.size() * sizeof(Done)) +
           product.most_tasks() * static_cast<int64_t>(sizeof(int32_t));
  }

  /// Takes pieces until none is left: the packing of the first pass; then of each pass half of its
  /// tasks, the packing of the next, the other half.
  void work(int64_t worker) {
    const OpenTiles open(p().loops_);
    char* const scratch = sums_ + p().sums_bytes_ + worker * p().scratch_bytes_;
    size_t k = 0;
    for (int64_t first = pieces(0), piece = next_.fetch_add(1);; piece = next_.fetch_add(1)) {
      if (piece < pieces(0)) {
        pack(0, piece);
        continue;
      }
      while (piece - first >= tasks(k) + pieces(k + 1)) {
        first += tasks(k) + pieces(k + 1);
        if (++k == p().passes_.size()) return;
      }
      const int64_t at = piece - first, half = tasks(k) / 2, packing = pieces(k + 1);
      if (at < half) {
        compute(k, at, scratch);
      } else if (at < half + packing) {
        pack(k + 1, at - half);
      } else {
        compute(k, at - packing, scratch);
      }
    }
  }

 private:
  struct Done {
    std::atomic<int64_t> pieces{0}, tasks{0};
  };

  const Product& p() const { return product_; }
  int64_t tasks(size_t k) const { return p().tasks(p().passes_[k]); }
  int64_t pieces(size_t k) const { return k < p().passes_.size() ? p().pieces(p().passes_[k]) : 0; }
  char* packed(size_t k) const { return packed_ + static_cast<int64_t>(k % 2) * p().packed_bytes_; }
  void wait_for_tasks(size_t k) const {
    wait_until([&] { return passes_[k].tasks.load(std::memory_order_acquire) == tasks(k); });
  }

  void pack(size_t k, int64_t piece) {
    if (k >= 2) wait_for_tasks(k - 2);  // which read the same place
    p().pack_piece(p().passes_[k], piece, pieces(k), data_, packed(k));
    passes_[k].pieces.fetch_add(1, std::memory_order_release);
  }

  void compute(size_t k, int64_t task, char* scratch) {
    wait_until([&] { return passes_[k].pieces.load(std::memory_order_acquire) == pieces(k); });
    const auto round = static_cast<int32_t>(k);
    if (k > 0 && tasks(k) != tasks(k - 1)) {
      wait_for_tasks(k - 1);
    } else if (k > 0) {  // the task at the same place of C, or of the sums
      wait_until([&] { return rounds_[task].load(std::memory_order_acquire) == round; });
    }
    p().run_numbered(p().passes_[k], task, data_, packed(k), sums_, scratch);
    rounds_[task].store(round + 1, std::memory_order_release);
    passes_[k].tasks.fetch_add(1, std::memory_order_release);
  }

  const Product& product_;
  const ProductData& data_;
  char *packed_, *sums_;
  Done* passes_;
  std::atomic<int32_t>* rounds_;  // by task: passes that are done
  std::atomic<int64_t> next_{0};
};

int64_t Product::most_tasks() const {
  int64_t most = 0;
  for (const Pass& pass : passes_) most = std::max(most, tasks(pass));
  return most;
}

int64_t Product::workspace_bytes() const {
  const int64_t bytes =
      places() * packed_bytes_ + sums_bytes_ + threads_ * scratch_bytes_ + Flow::bytes(*this);
  return up(bytes, kAlign);
}

void Product::run(Pool& pool, const ProductData& data, void* workspace) const {
  if (shape_.rows == 0) return;
  if (threads_ == 1 || most_tasks() <= 1) return run_alone(data, workspace);
  Flow flow(*this, data, static_cast<char*>(workspace));
  pool.run_pieces(threads_, [&flow](int64_t worker) { flow.work(worker); });
}

void Product::run_alone(const ProductData& data, void* workspace) const {
  if (shape_.rows == 0) return;
  const OpenTiles open(loops_);
  char* const packed = static_cast<char*>(workspace);
  char* const sums = packed + places() * packed_bytes_;
  for (const Pass& pass : passes_) {
    pack_piece(pass, 0, 1, data, packed);
    for (int64_t k = 0; k < tasks(pass); ++k) {
      run_numbered(pass, k, data, packed, sums, sums + sums_bytes_);
    }
  }
}

void Product::pack(int64_t piece, const ProductData& data, void* packed) const {
  const auto panel = static_cast<size_t>(piece);
  pack_panels(passes_[0], panel, panel + 1, data, static_cast<char*>(packed));
}

void Product::run_rows(int64_t row, int64_t rows, const ProductData& data, const void* packed,
                       void* scratch) const {
  const OpenTiles open(loops_);
  const auto* b = static_cast<const char*>(packed);
  const Pass& pass = passes_[0];
  for (int64_t at = 0; at < rows; at += block_rows_) {
    const int64_t size = std::min(block_rows_, rows - at);
    for (size_t first = 0; first < panels_.size(); first += static_cast<size_t>(block_panels_)) {
      const size_t end = std::min(first + static_cast<size_t>(block_panels_), panels_.size());
      run_task(make_task(pass, {row + at, size, first, end}, data, b, nullptr,
                         static_cast<char*>(scratch)));
    }
  }
}

}  // namespace gradrack::cpu
