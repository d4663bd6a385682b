// SPDX-License-Identifier: Apache-2.0
// Prefetch: see prefetch.hpp.
#include "core/data/prefetch.hpp"

#include <chrono>

#include "core/base/stop_signal.hpp"

namespace gradrack {

Prefetch::Prefetch(Prepare prepare, int64_t depth, int64_t workers)
    : prepare_(std::move(prepare)), slots_(static_cast<size_t>(depth)) {
  for (int64_t k = 0; k < workers; ++k) workers_.emplace_back([this] { work(); });
}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Prefetch::work() {
  std::unique_lock lock(mutex_);
  const auto may_begin = [this] {
    return !held_ && next_ < first_ + static_cast<int64_t>(slots_.size());
  };
  while (true) {
    work_.wait(lock, [&] { return stop_ || may_begin(); });
    if (stop_) return;
    const int64_t index = next_++;
    ++busy_;
    Slot& mine = slot(index);
    lock.unlock();
    Status status;
    try {
      status = prepare_(index, &mine.batch);
    } catch (const std::bad_alloc&) {
      status = Status(GR_OUT_OF_MEMORY, "no memory for a batch that is prepared ahead");
    }
    lock.lock();
    --busy_;
    mine.status = std::move(status);
    mine.ready = true;
    done_.notify_all();
  }
}

void Prefetch::restart(int64_t index, std::unique_lock<std::mutex>& lock) {
  held_ = true;
  done_.wait(lock, [this] { return busy_ == 0; });
  for (Slot& one : slots_) one.ready = false;
  first_ = next_ = index;
  held_ = false;
  work_.notify_all();
}

Result<const PreparedBatch*> Prefetch::take(int64_t index) {
  std::unique_lock lock(mutex_);
  if (index != first_) restart(index, lock);
  const Slot& wanted = slot(index);
  // A signal handler can wake nobody, so it is looked for.
  constexpr std::chrono::milliseconds kLook(50);
  while (!done_.wait_for(lock, kLook, [&] { return wanted.ready; })) {
    if (stop_signal() != 0) return Status(GR_CANCELLED, "stopped while waiting for a batch");
  }
  if (!wanted.status.ok()) return wanted.status;
  return &wanted.batch;
}

void Prefetch::release(int64_t index) {
  {
    const std::lock_guard lock(mutex_);
    slot(index).ready = false;
    first_ = index + 1;
  }
  work_.notify_one();
}

}  // namespace gradrack
