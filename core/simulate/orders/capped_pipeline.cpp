// SPDX-License-Identifier: Apache-2.0
// Order `capped`: the shortest pipeline schedule found within the devices' memory limits.
//
// A search over the choices of wavefront.hpp: a grid of shapes first, then chains of small random
// changes, one from each of the best shapes and at last one from the best of the chains; a change
// is kept when it is no worse. The bubbles come from both ends of a step, so the chains look at a
// step of a few microbatches for each device, and the last of them at the whole one. The published
// schedules compete too, where they fit. Invariant: the work is counted in tasks, not
// in seconds, and the random numbers are fixed, so equal tables get equal answers.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "core/simulate/orders/wavefront.hpp"
#include "core/simulate/simulation.hpp"

namespace gradrack {
namespace {

constexpr int64_t kWork = 100'000'000;            // placed tasks: under a second
constexpr int64_t kChainWork = kWork * 65 / 100;  // of them before the whole step
constexpr uint32_t kShortStep = 3;                // microbatches for each device in that part
constexpr size_t kShapes = 6;                     // that chains start from
constexpr int64_t kChainTries = 1000;             // of a short chain, if all were placed whole
constexpr uint32_t kSeed = 2;                     // of the changes

class CappedSearch {
 public:
  explicit CappedSearch(const PipelineCosts& costs) : costs_(costs), waves_(costs), draw_(kSeed) {
    microbatches_ = std::min(costs.microbatches, kShortStep * count());
    for (const PipelineCosts::Stage& stage : costs.stages) {
      forward_ += static_cast<double>(stage.time[kF]) / count();
      round_trip_ += stage.time[kF] + stage.time[kB] + stage.send_forward + stage.send_gradient;
      longest_w_ = std::max(longest_w_, stage.time[kW]);
    }
  }

  WaveChoice run() {
    try_shapes();
    const int64_t half = (kChainWork - work_) / 2;
    const int64_t one = std::min(half, kChainTries * int64_t{3} * count() * microbatches_);
    Found best;
    for (size_t chain = 0; chain < static_cast<size_t>(half / one); ++chain) {
      best_ = shapes_[chain % shapes_.size()];
      improve(work_ + one);
      if (best_.span < best.span) best = best_;
    }
    best_ = best;
    improve(kChainWork);
    microbatches_ = costs_.microbatches;
    best_.span = INT64_MAX;
    consider(WaveChoice(best_.choice));
    improve(kWork);
    return best_.choice;
  }
  int64_t span() const { return best_.span; }
  int64_t tried() const { return tried_; }

 private:
  uint32_t count() const { return static_cast<uint32_t>(costs_.stages.size()); }

  struct Found {
    int64_t span = INT64_MAX;
    WaveChoice choice;
  };

  /// INT64_MAX: it does not fit, or is longer than `most`. A try counts as one task at least.
  int64_t try_one(const WaveChoice& choice, int64_t most) {
    const int64_t before = waves_.placed();
    const int64_t span = waves_.span(choice, microbatches_, most);
    work_ += 1 + waves_.placed() - before;
    ++tried_;
    return span;
  }

  void consider(const WaveChoice& choice) {
    const int64_t span = try_one(choice, best_.span);
    if (span <= best_.span) best_ = {span, choice};
  }

  // Keeps the best few shapes, of equal ones the first.
  void consider_shape(const WaveChoice& choice) {
    const int64_t most = shapes_.size() < kShapes ? INT64_MAX : shapes_.back().span;
    const int64_t span = try_one(choice, most);
    const auto at = std::lower_bound(shapes_.begin(), shapes_.end(), span,
                                     [](const Found& a, int64_t b) { return a.span < b; });
    if (at != shapes_.end() && at->span == span) return;
    shapes_.insert(at, {span, choice});
    if (shapes_.size() > kShapes) shapes_.pop_back();
  }

  // `per_stage` forwards in flight for each device that is left, and `more`; at most what fits
  // less `spare`.
  std::vector<int64_t> warm_up(double per_stage, int more, int spare) const {
    std::vector<int64_t> out;
    for (uint32_t s = 0; s < count(); ++s) {
      const auto wish = static_cast<int64_t>(per_stage * (count() - s)) + more;
      const int64_t room = costs_.stages[s].room();
      int64_t mine = std::clamp<int64_t>(wish, 1, std::max<int64_t>(1, room - spare));
      if (s > 0) mine = std::min(mine, out.back());
      out.push_back(mine);
    }
    return out;
  }

  // What device 0 waits for its first gradient at least.
  int64_t first_wait() const {
    const PipelineCosts::Stage& stage = costs_.stages[0];
    const int64_t filled = std::min<int64_t>(stage.room(), costs_.microbatches) * stage.time[kF];
    return std::max<int64_t>({round_trip_ - stage.time[kB] - filled, stage.time[kF], 1});
  }

  void try_shapes() {
    const double trip = forward_ > 0 ? static_cast<double>(round_trip_) / forward_ / count() : 2;
    const auto wait = static_cast<double>(first_wait());
    for (const double per_stage : {1.0, 1.25, 1.5, trip, trip + 0.1, trip + 0.25}) {
      for (int more = -2; more <= 1; ++more) {
        for (int spare = 0; spare <= 1; ++spare) {
          WaveChoice choice;
          choice.warm_up = warm_up(per_stage, more, spare);
          for (const double share : {0.0, 0.5, 0.8, 1.0, 1.2}) {
            choice.patience.assign(count(), static_cast<int64_t>(share * wait));
            try_fillings(choice);
          }
        }
      }
    }
  }

  void try_fillings(WaveChoice choice) {
    for (const int64_t overhang_b : {0, 50}) {
      choice.overhang_b = overhang_b;
      choice.fill_before_f = false;
      consider_shape(choice);
      choice.fill_before_f = true;
      for (const int64_t overhang_f : {0, 50}) {
        choice.overhang_f = overhang_f;
        consider_shape(choice);
      }
      choice.overhang_f = 0;
    }
  }

  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(draw_()) % limit; }

  void improve(int64_t until) {
    while (work_ < until) {
      WaveChoice choice = best_.choice;
      const uint32_t changes = 1 + below(2);
      for (uint32_t k = 0; k < changes; ++k) change(&choice);
      consider(choice);
    }
  }

  void change(WaveChoice* choice) {
    const uint32_t what = below(8);
    const uint32_t from = below(count());
    const uint32_t to = std::min(count(), from + 1 + below(count()));
    if (what < 5) {
      change_warm_up(choice, from, to);
    } else if (what == 5) {
      change_patience(choice, from, to);
    } else if (what == 6) {
      (below(2) == 0 ? choice->overhang_b : choice->overhang_f) = 10 * below(11);
    } else {
      choice->fill_before_f = !choice->fill_before_f;
    }
  }

  void change_warm_up(WaveChoice* choice, uint32_t from, uint32_t to) {
    auto& list = choice->warm_up;
    const int64_t step = below(2) == 0 ? 1 : -1;
    for (uint32_t s = from; s < to; ++s) {
      list[s] = std::clamp<int64_t>(list[s] + step, 1, costs_.stages[s].room());
    }
    for (uint32_t s = 1; s < count(); ++s) list[s] = std::min(list[s], list[s - 1]);
  }

  void change_patience(WaveChoice* choice, uint32_t from, uint32_t to) {
    const int64_t tenths = 5 + below(11);
    const int64_t more = below(3) == 0 ? longest_w_ : 0;
    const bool all = below(2) == 0;
    for (uint32_t s = all ? 0 : from; s < (all ? count() : to); ++s) {
      int64_t& mine = choice->patience[s];
      mine = std::min<int64_t>(mine / 10 * tenths + more, int64_t{1} << 53);
    }
  }

  const PipelineCosts& costs_;
  Wavefront waves_;
  std::mt19937 draw_;
  uint32_t microbatches_ = 0;
  double forward_ = 0;
  int64_t round_trip_ = 0;
  int64_t longest_w_ = 0;
  int64_t work_ = 0, tried_ = 0;
  std::vector<Found> shapes_;
  Found best_;
};

// The span of a published schedule, or INT64_MAX when it does not fit the memory.
Result<int64_t> span_of(const SimTable& table, const OrderAnswer& answer) {
  GR_ASSIGN(const Schedule schedule, schedule_from(table.tasks, answer.order, answer.stream, 1));
  GR_ASSIGN(const Simulation run, simulate(table, schedule));
  return check_memory(table, run).ok() ? run.span_ns : INT64_MAX;
}

}  // namespace

Result<OrderAnswer> capped_pipeline_order(const SimTable& table, const OptionValues& options) {
  GR_ASSIGN(const Pipeline pipeline, read_pipeline(table));
  GR_ASSIGN(const PipelineCosts costs, read_costs(table, pipeline));
  CappedSearch search(costs);
  const WaveChoice choice = search.run();
  if (search.span() == INT64_MAX) {
    return Status(GR_FAILED_PRECONDITION,
                  table.name +
                      ": no schedule keeps the memory limits: forwards hold more than "
                      "their gradients free, so that it adds up over the microbatches")
        .in_area(Area::kConfig);
  }
  GR_ASSIGN(OrderAnswer best, merge_lanes(table, pipeline, Wavefront(costs).lanes(choice)));
  best.notes = {fmt::format("best of {} schedules by waves", search.tried())};
  int64_t span = search.span();
  const struct {
    const char* name;
    Result<OrderAnswer> (*make)(const SimTable&, const OptionValues&);
  } published[] = {{"zb_h1", zb_h1_order}, {"zb_h2", zb_h2_order}};
  for (const auto& [name, make] : published) {
    GR_ASSIGN(OrderAnswer other, make(table, options));
    GR_ASSIGN(const int64_t its, span_of(table, other));
    if (its >= span) continue;
    span = its;
    best = std::move(other);
    best.notes = {fmt::format("{} is the best that was found", name)};
  }
  return best;
}

}  // namespace gradrack
