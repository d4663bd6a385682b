// SPDX-License-Identifier: Apache-2.0
// Pool: a handful of threads that share the pieces of one loop at a time.
//
// Kernels call parallel(); the calling stream's thread works too. Invariant: how a loop is cut
// depends on its length and the number of threads alone, never on who is idle, so results have the
// same bits each time. A second stream that calls while the pool is taken runs its pieces itself,
// in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "backends/common/stream.hpp"

namespace gradrack::cpu {

class Pool {
 public:
  /// Starts threads - 1 threads.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// f(begin, end) over [0, count), cut into pieces of at least `grain`. f must not throw. [any]
  template <class Function>
  void parallel(int64_t count, int64_t grain, const Function& f) {
    const int64_t most = int64_t{kPiecesPerThread} * threads();
    const int64_t pieces = threads() == 1 ? 1 : std::min(most, count / std::max<int64_t>(grain, 1));
    if (pieces <= 1) {
      if (count > 0) f(int64_t{0}, count);
      return;
    }
    run_pieces(pieces, [&](int64_t k) { f(count * k / pieces, count * (k + 1) / pieces); });
  }

  /// f(k) for each k in [0, pieces), each on any thread.
  template <class Function>
  void run_pieces(int64_t pieces, const Function& f) {
    if (pieces <= 1 || threads() == 1 || busy_.exchange(true, std::memory_order_acquire)) {
      for (int64_t k = 0; k < pieces; ++k) f(k);
      return;
    }
    share({[](const void* body, int64_t k) { (*static_cast<const Function*>(body))(k); }, &f,
           pieces});
    busy_.store(false, std::memory_order_release);
  }

 private:
  // More pieces than threads, so that one late thread does not make the others wait for long.
  static constexpr int kPiecesPerThread = 2;

  struct Job {
    void (*call)(const void* body, int64_t piece) = nullptr;
    const void* body = nullptr;
    int64_t pieces = 0;
  };
  void share(Job job);
  /// Takes and runs pieces of job number `number` until none is left.
  void work_on(uint32_t number);
  void worker();

  Job job_;
  std::atomic<bool> busy_{false};
  std::atomic<uint64_t> ticket_{0};  // number of the job, and how many of its pieces nobody took
  std::atomic<int64_t> finished_{0};
  host::Progress issued_{4000};  // jobs so far; about 60 us of waiting before a thread sleeps
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

/// Cores this process may use: the scheduler's affinity, cut by the control group's quota; at
/// least 1.
int available_threads();

}  // namespace gradrack::cpu
