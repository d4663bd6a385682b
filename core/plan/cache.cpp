// SPDX-License-Identifier: Apache-2.0
// The cache of plans: see cache.hpp. The lock is held for look-ups and book-keeping alone, never
// while a plan is built or ends.
#include "core/plan/cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <optional>

#include "core/base/text.hpp"

namespace gradrack {

struct PlanCache::Flight {
  std::condition_variable landed;
  std::optional<Answer> answer;
};

namespace {

int64_t ns_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

Status strict_error(const std::string& why) {
  return {GR_FAILED_PRECONDITION,
          fmt::format("plans are strict, and this one was not made by the warm-up: {}; let the "
                      "warm-up cover it, or do without --strict-plans",
                      why)};
}

}  // namespace

std::string PlanCacheStatistics::text() const {
  return fmt::format(
      "{} build{} in {:.1f} ms, {} rebind{} in {:.1f} ms, {} hits, {} waits, {} evictions{}",
      builds, builds == 1 ? "" : "s", static_cast<double>(build_ns) * 1e-6, rebinds,
      rebinds == 1 ? "" : "s", static_cast<double>(rebind_ns) * 1e-6, hits, waits, evictions,
      failures > 0 ? fmt::format(", {} failed", failures) : "");
}

PlanCache::PlanCache(size_t limit) : limit_(std::max<size_t>(limit, 1)) {}

PlanCache::Answer PlanCache::get(const PlanKey& key, const Build& build, const Bindings* bindings) {
  std::unique_lock lock(mutex_);
  const auto found = found_.find(key.digest());
  if (found != found_.end()) {
    ++statistics_.hits;
    held_.splice(held_.begin(), held_, found->second);
    return found->second->second;
  }
  const auto waiting = flights_.find(key.digest());
  if (waiting != flights_.end()) {
    ++statistics_.waits;
    const std::shared_ptr<Flight> flight = waiting->second;
    flight->landed.wait(lock, [&] { return flight->answer.has_value(); });
    return *flight->answer;
  }
  const Miss miss = {explain_miss(key), strict_, bindings != nullptr ? relative_of(key) : nullptr};
  if (miss.strict && miss.relative == nullptr) return strict_error(miss.why);
  const std::shared_ptr<Flight> flight = std::make_shared<Flight>();
  flights_.emplace(key.digest(), flight);
  lock.unlock();
  Answer answer = make(miss, build, bindings);
  land(key, *flight, answer);
  return answer;
}

void PlanCache::replace(const PlanKey& key, std::shared_ptr<const Plan> plan) {
  const std::lock_guard lock(mutex_);
  const auto found = found_.find(key.digest());
  if (found != found_.end()) found->second->second.swap(plan);  // the old one goes without the lock
}

/// A plan of the same class, the last used one.
std::shared_ptr<const Plan> PlanCache::relative_of(const PlanKey& key) const {
  for (const auto& [held, plan] : held_) {
    if (held.class_digest() == key.class_digest() && plan->plan_class != nullptr) return plan;
  }
  return nullptr;
}

PlanCache::Answer PlanCache::make(const Miss& miss, const Build& build, const Bindings* bindings) {
  const auto start = std::chrono::steady_clock::now();
  if (miss.relative != nullptr) {
    Answer bound = rebind(*miss.relative, *bindings);
    const bool refused = bound.status().code() == GR_UNSUPPORTED;
    {
      const std::lock_guard lock(mutex_);
      statistics_.rebind_ns += ns_since(start);
      statistics_.rebinds += bound.ok() ? 1 : 0;
    }
    tell(refused ? "plan_rebuild" : "plan_rebind", refused ? Level::kWarn : Level::kDebug,
         refused ? fmt::format("a plan cannot be bound to other shapes ({}): {}", miss.why,
                               bound.status().message())
                 : miss.why);
    if (!refused) return bound;
    if (miss.strict) return strict_error(miss.why + "; " + bound.status().message());
  }
  tell("plan_miss", Level::kDebug, miss.why);
  const auto build_start = std::chrono::steady_clock::now();
  Answer built = build();
  const std::lock_guard lock(mutex_);
  statistics_.build_ns += ns_since(build_start);
  statistics_.builds += built.ok() ? 1 : 0;
  return built;
}

void PlanCache::land(const PlanKey& key, Flight& flight, const Answer& answer) {
  std::vector<Held> out;
  {
    const std::lock_guard lock(mutex_);
    if (answer.ok()) {
      held_.emplace_front(key, *answer);
      found_.emplace(key.digest(), held_.begin());
      evicted_.remove(key.digest());
      out = put_out();
    } else {
      ++statistics_.failures;
    }
    flight.answer = answer;
    flights_.erase(key.digest());
  }
  flight.landed.notify_all();
  for (const Held& old : out) {
    tell("plan_evicted", Level::kWarn,
         fmt::format("a plan of {} was put out: the cache holds {} plans at most",
                     old.first.parts().program, limit_));
  }
}

/// What is held beyond the limit, taken out of the cache.
std::vector<PlanCache::Held> PlanCache::put_out() {
  std::vector<Held> out;
  while (held_.size() > limit_) {
    const Digest digest = held_.back().first.digest();
    out.push_back(std::move(held_.back()));
    held_.pop_back();
    found_.erase(digest);
    evicted_.push_front(digest);
    if (evicted_.size() > limit_) evicted_.pop_back();
    ++statistics_.evictions;
  }
  return out;
}

std::string PlanCache::explain_miss(const PlanKey& key) const {
  if (std::find(evicted_.begin(), evicted_.end(), key.digest()) != evicted_.end()) {
    return fmt::format("it was put out, since the cache holds {} plans at most", limit_);
  }
  if (held_.empty()) return "no plan is held";
  std::vector<std::string> nearest;
  for (const Held& held : held_) {  // among equals the one used last
    std::vector<std::string> differs = held.first.differences(key);
    if (nearest.empty() || differs.size() < nearest.size()) nearest = std::move(differs);
  }
  return join(nearest, "; ");
}

void PlanCache::tell(const char* kind, Level level, const std::string& message) const {
  if (listener_) listener_({kind, level, message});
}

void PlanCache::set_strict(bool strict) {
  const std::lock_guard lock(mutex_);
  strict_ = strict;
}

PlanCacheStatistics PlanCache::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

std::vector<PlanCache::Held> PlanCache::held() const {
  const std::lock_guard lock(mutex_);
  return {held_.begin(), held_.end()};
}

}  // namespace gradrack
