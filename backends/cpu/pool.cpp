// SPDX-License-Identifier: Apache-2.0
// Pool: see pool.hpp.
#include "backends/cpu/pool.hpp"

namespace gradrack::cpu {
namespace {

/// Those of team `k`, if there are any.
std::vector<int> cores_of(const std::vector<int>& cores, int k, int threads) {
  if (cores.empty()) return {};
  const auto first = cores.begin() + std::ptrdiff_t{k} * threads;
  return {first, first + threads};
}

}  // namespace

class Pool::StreamSeat final : public host::Seat {
 public:
  StreamSeat(Pool* pool, size_t place) : pool_(pool), place_(place) {}
  ~StreamSeat() override {
    const std::lock_guard<std::mutex> lock(pool_->mutex_);
    --pool_->seats_[place_];
  }
  void enter() override { pool_->teams_[place_]->join(); }

 private:
  Pool* pool_;
  size_t place_;
};

Pool::Pool(int teams, int threads_per_team, const std::vector<int>& cores)
    : threads_(threads_per_team), seats_(static_cast<size_t>(teams), 0) {
  for (int k = 0; k < teams; ++k) {
    teams_.push_back(std::make_unique<Team>(this, threads_, cores_of(cores, k, threads_)));
  }
}

std::unique_ptr<host::Seat> Pool::take_seat() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto fewest = std::min_element(seats_.begin(), seats_.end());
  auto seat = std::make_unique<StreamSeat>(this, static_cast<size_t>(fewest - seats_.begin()));
  ++*fewest;
  return seat;
}

Team& Pool::team() {
  Team* const own = Team::of_this_thread();
  return own != nullptr && own->owner() == this ? *own : *teams_.front();
}

}  // namespace gradrack::cpu
