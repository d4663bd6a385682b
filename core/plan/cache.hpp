// SPDX-License-Identifier: Apache-2.0
// PlanCache: a plan is made once for its key, whoever asks, and found again by it.
//
// Between whoever trains or evaluates and make_plan(). Several threads share one. Invariants: a key
// is built by one thread at a time and the others wait for that build; nothing is found under a key
// that differs in any part; what a miss lacked, what was put out for the limit, and every failure
// is said aloud. Plans that are put out live on with the executors that use them.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/events.hpp"
#include "core/plan/key.hpp"
#include "core/plan/plan.hpp"

namespace gradrack {

/// Counts since the cache was made.
struct PlanCacheStatistics {
  int64_t builds = 0;     // that succeeded
  int64_t rebinds = 0;    // made from a plan of other shapes
  int64_t failures = 0;   // plans that could not be made
  int64_t hits = 0;       // held when asked for
  int64_t waits = 0;      // asked for while another thread made it
  int64_t evictions = 0;  // put out for the limit
  int64_t build_ns = 0;   // of all builds, failed ones too
  int64_t rebind_ns = 0;  // of all rebinds, refused ones too
  /// "6 builds in 12.3 ms, 2 rebinds in 1.0 ms, 42 hits, 18 waits, 0 evictions"; failures where
  /// there were some.
  std::string text() const;
};

class PlanCache {
 public:
  using Answer = Result<std::shared_ptr<const Plan>>;
  using Build = std::function<Answer()>;
  using Held = std::pair<PlanKey, std::shared_ptr<const Plan>>;

  /// Keeps the `limit` (at least 1) plans that were used last.
  explicit PlanCache(size_t limit = 64);

  /// The plan of `key`; where none is held, `build` makes it on this thread, which must play
  /// [plan] then. Threads that ask meanwhile wait and get the same answer. A failed build is not
  /// kept. `build` must not ask for the same key.
  ///
  /// With `bindings` (of the shapes in the key), a held plan whose key differs in the shapes alone
  /// is bound to them instead, without `build`; where a backend refuses that, `build` it is.
  /// Errors: those of `build`; GR_FAILED_PRECONDITION: a build while strict. [any]
  Answer get(const PlanKey& key, const Build& build, const Bindings* bindings = nullptr);

  /// Where a plan is held under `key`, `plan` stands in for it from now on: the same one in another
  /// order, say. [any]
  void replace(const PlanKey& key, std::shared_ptr<const Plan> plan);

  /// From now on a build is an error that says what differs from the plans held. Re-binding is
  /// none.
  void set_strict(bool strict);
  /// Hears "plan_miss" and "plan_rebind" (debug), "plan_rebuild" and "plan_evicted" (warn) as
  /// Events, on the thread that caused them. Set it before threads share the cache.
  void listen(EventSink::Listener listener) { listener_ = std::move(listener); }

  PlanCacheStatistics statistics() const;
  /// All that is held, the last used first.
  std::vector<Held> held() const;

 private:
  /// A build on its way, shared by the builder and those who wait.
  struct Flight;

  /// What is known of a miss when the lock is given up.
  struct Miss {
    std::string why;
    bool strict = false;
    std::shared_ptr<const Plan> relative;  // of other shapes; null: none
  };

  std::string explain_miss(const PlanKey& key) const;
  std::shared_ptr<const Plan> relative_of(const PlanKey& key) const;
  Answer make(const Miss& miss, const Build& build, const Bindings* bindings);
  void land(const PlanKey& key, Flight& flight, const Answer& answer);
  std::vector<Held> put_out();
  void tell(const char* kind, Level level, const std::string& message) const;

  const size_t limit_;
  EventSink::Listener listener_;
  mutable std::mutex mutex_;  // over all below
  bool strict_ = false;
  PlanCacheStatistics statistics_;
  std::list<Held> held_;  // last used first
  std::unordered_map<Digest, std::list<Held>::iterator, DigestHash> found_;
  std::unordered_map<Digest, std::shared_ptr<Flight>, DigestHash> flights_;
  std::list<Digest> evicted_;  // the last `limit_`, so that a miss can say so
};

}  // namespace gradrack
