// SPDX-License-Identifier: Apache-2.0
// Team: a handful of threads that share the pieces of one loop at a time.
//
// The thread that calls works too, so a team of one has no threads of its own. Invariant: a loop's
// pieces are numbered by whoever cuts it, so who runs which changes no result. A second caller
// while the team is busy runs its pieces itself, in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "backends/common/stream.hpp"

namespace gradrack::cpu {

class Team {
 public:
  /// Starts threads - 1 threads; `cores`, where there are any: the core of each thread, the
  /// caller's first. `owner`: whose team it is.
  Team(const void* owner, int threads, std::vector<int> cores);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  const void* owner() const { return owner_; }
  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// The calling thread belongs to this team for the rest of its life, as the one that calls
  /// run_pieces(), and goes to its core.
  void join() { join_at(0); }
  /// That of the calling thread; null: none.
  static Team* of_this_thread();

  /// body(k) for each k in [0, pieces), each on any thread of the team. body must not throw. [any]
  template <class Function>
  void run_pieces(int64_t pieces, const Function& body) {
    if (pieces <= 1 || threads() == 1 || busy_.exchange(true, std::memory_order_acquire)) {
      for (int64_t k = 0; k < pieces; ++k) body(k);
      return;
    }
    share({[](const void* self, int64_t k) { (*static_cast<const Function*>(self))(k); }, &body,
           pieces});
    busy_.store(false, std::memory_order_release);
  }

 private:
  struct Job {
    void (*call)(const void* body, int64_t piece) = nullptr;
    const void* body = nullptr;
    int64_t pieces = 0;
  };
  void share(Job job);
  /// Takes and runs pieces of job number `number` until none is left.
  void work_on(uint32_t number);
  void join_at(size_t place);
  void worker(size_t place);
  void end_workers();

  const void* const owner_;
  const std::vector<int> cores_;
  Job job_;
  std::atomic<bool> busy_{false};
  std::atomic<uint64_t> ticket_{0};  // number of the job, and how many of its pieces nobody took
  std::atomic<int64_t> finished_{0};
  host::Progress issued_{4000};  // jobs so far; about 60 us of waiting before a thread sleeps
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace gradrack::cpu
