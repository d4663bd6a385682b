// SPDX-License-Identifier: Apache-2.0
// Prefetch: training batches prepared by threads of its own while steps run.
//
// Behind Feed. A bounded ring: `depth` batches from the one that is taken next. Invariant: a batch
// is a function of its index, so who prepared it, and when, changes nothing; the position of a run
// is what was taken, never what was prepared.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/data/batch_tensors.hpp"

namespace gradrack {

class Prefetch {
 public:
  /// Brings batch `index`. Called by worker threads, several at once where there are several.
  using Prepare = std::function<Status(int64_t index, PreparedBatch* out)>;

  /// Starts `workers` threads, at least one; they idle until the first take().
  Prefetch(Prepare prepare, int64_t depth, int64_t workers);
  /// Waits for the batches that are being prepared.
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Batch `index`, waiting for it; it stays until release(). Any index may be asked for, those
  /// that follow each other are ready soonest. The error of preparing it, or GR_CANCELLED once a
  /// stop signal came. One thread at a time.
  Result<const PreparedBatch*> take(int64_t index);
  /// Batch `index` was used: its room is free, and the next one is `index` + 1.
  void release(int64_t index);

 private:
  struct Slot {
    bool ready = false;
    Status status;
    PreparedBatch batch;
  };
  Slot& slot(int64_t index) { return slots_[static_cast<size_t>(index) % slots_.size()]; }
  void work();
  void restart(int64_t index, std::unique_lock<std::mutex>& lock);

  const Prepare prepare_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::vector<Slot> slots_;
  int64_t first_ = -1;  // the batch that is taken next; -1: none was asked for yet
  int64_t next_ = 0;    // the batch that is prepared next
  int64_t busy_ = 0;    // batches being prepared
  bool held_ = true;    // workers begin nothing
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace gradrack
