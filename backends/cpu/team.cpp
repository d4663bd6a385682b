// SPDX-License-Identifier: Apache-2.0
// Team: pieces are taken by compare-and-swap on a ticket of (job number, pieces left).
//
// Invariant: job_ is read only by a thread that holds a piece of it, and is replaced only when
// every piece of the old job has finished; so a thread that wakes late can touch nothing.
#include "backends/cpu/team.hpp"

#include "backends/cpu/cores.hpp"

namespace gradrack::cpu {
namespace {

thread_local Team* own_team = nullptr;

}  // namespace

Team::Team(const void* owner, int threads, std::vector<int> cores)
    : owner_(owner), cores_(std::move(cores)) {
  try {
    for (int k = 1; k < threads; ++k) {
      workers_.emplace_back([this, k] { worker(static_cast<size_t>(k)); });
    }
  } catch (...) {  // the system starts no more: those that run are not left behind
    end_workers();
    throw;
  }
}

Team::~Team() { end_workers(); }

void Team::end_workers() {
  stop_.store(true);
  issued_.advance(issued_.value() + 1);
  for (std::thread& thread : workers_) thread.join();
}

Team* Team::of_this_thread() { return own_team; }

void Team::join_at(size_t place) {
  own_team = this;
  if (place < cores_.size()) stay_on(cores_[place]);
}

void Team::share(Job job) {
  const uint64_t number = issued_.value() + 1;
  job_ = job;
  finished_.store(0, std::memory_order_relaxed);
  ticket_.store(number << 32 | static_cast<uint64_t>(job.pieces), std::memory_order_release);
  issued_.advance(number);
  work_on(static_cast<uint32_t>(number));
  for (int spin = 0; finished_.load(std::memory_order_acquire) < job.pieces; ++spin) {
    if (spin > 2000) std::this_thread::yield();  // whoever holds the last piece may want this core
  }
}

void Team::work_on(uint32_t number) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(ticket >> 32) == number && static_cast<uint32_t>(ticket) != 0) {
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel)) continue;
    const Job job = job_;
    job.call(job.body, job.pieces - static_cast<int64_t>(static_cast<uint32_t>(ticket)));
    finished_.fetch_add(1, std::memory_order_acq_rel);
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void Team::worker(size_t place) {
  join_at(place);
  for (uint64_t seen = 0;;) {
    issued_.wait(seen + 1);
    if (stop_.load()) return;
    seen = issued_.value();
    work_on(static_cast<uint32_t>(seen));
  }
}

}  // namespace gradrack::cpu
