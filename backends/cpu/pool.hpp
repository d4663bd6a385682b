// SPDX-License-Identifier: Apache-2.0
// Pool: the threads of one backend, in teams of equal size; each stream has a team of its own.
//
// Kernels call parallel() and get the team of the stream that runs them. Invariant: how a loop is
// cut depends on its length and the number of threads of a team alone, never on which stream it is
// or who is idle, so results have the same bits each time and on any number of streams.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cpu/team.hpp"

namespace gradrack::cpu {

class Pool {
 public:
  /// One team, anywhere.
  explicit Pool(int threads) : Pool(1, threads, {}) {}
  /// `cores`: of all threads, team by team; empty: anywhere.
  Pool(int teams, int threads_per_team, const std::vector<int>& cores);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Threads of a team.
  int threads() const { return threads_; }

  /// A seat for a stream's thread, at the team that has the fewest. The pool outlives it. [any]
  std::unique_ptr<host::Seat> take_seat();

  /// f(begin, end) over [0, count), cut into pieces of at least `grain`. f must not throw. [any]
  template <class Function>
  void parallel(int64_t count, int64_t grain, const Function& f) {
    const int64_t most = int64_t{kPiecesPerThread} * threads_;
    const int64_t pieces = threads_ == 1 ? 1 : std::min(most, count / std::max<int64_t>(grain, 1));
    if (pieces <= 1) {
      if (count > 0) f(int64_t{0}, count);
      return;
    }
    run_pieces(pieces, [&](int64_t k) { f(count * k / pieces, count * (k + 1) / pieces); });
  }

  /// f(k) for each k in [0, pieces), each on any thread of the calling thread's team.
  template <class Function>
  void run_pieces(int64_t pieces, const Function& f) {
    team().run_pieces(pieces, f);
  }

 private:
  // More pieces than threads, so that one late thread does not make the others wait for long.
  static constexpr int kPiecesPerThread = 2;

  class StreamSeat;
  /// That of the calling thread's seat; the first for a thread without one.
  Team& team();

  const int threads_;
  std::vector<std::unique_ptr<Team>> teams_;
  std::mutex mutex_;
  std::vector<int> seats_;  // taken, by team
};

}  // namespace gradrack::cpu
