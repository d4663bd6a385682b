// SPDX-License-Identifier: Apache-2.0
// Stream: a single-producer single-consumer ring of work, with positions as events.
//
// The pusher writes a slot, then advances queued_; the worker reads it, then advances done_.
// Invariant: a slot and its pointers are reused only after done_ has passed them.
#include "backends/common/stream.hpp"

#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>

#include "backends/common/recording.hpp"

namespace gradrack::host {
namespace {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// steady_clock is CLOCK_MONOTONIC on the systems that this runs on.
int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

void Progress::advance(uint64_t value) {
  value_.store(value);  // seq_cst: ordered before the look at sleepers_
  if (sleepers_.load() == 0) return;
  { const std::lock_guard<std::mutex> lock(mutex_); }
  changed_.notify_all();
}

void Progress::wait(uint64_t target) {
  for (int spin = 0; spin < spins_; ++spin) {
    if (value() >= target) return;
    relax();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  sleepers_.fetch_add(1);
  changed_.wait(lock, [&] { return value_.load() >= target; });
  sleepers_.fetch_sub(1);
}

Stream::Stream(bool threaded, std::unique_ptr<Seat> seat)
    : queue_(threaded ? kQueue : 1), pointers_(kPointers), seat_(std::move(seat)) {
  if (threaded) thread_ = std::thread([this] { worker(); });
}

Stream::~Stream() {
  if (!thread_.joinable()) return;
  done_.wait(position());
  stop_.store(true);
  queued_.advance(position() + 1);  // wakes the worker; no work stands behind this position
  thread_.join();
}

Stream::Work& Stream::begin_push() {
  const uint64_t at = position();
  if (at >= queue_.size()) done_.wait(at + 1 - queue_.size());
  return queue_[at % queue_.size()];
}

void Stream::end_push() {
  const uint64_t at = position();
  if (thread_.joinable()) {
    queued_.advance(at + 1);
    return;
  }
  queued_.advance(at + 1);
  execute(queue_[0], at);
  done_.advance(at + 1);
}

DLTensor** Stream::take_pointers(uint64_t count, Work* work) {
  uint64_t start = pointers_used_;
  if (start % kPointers + count > kPointers)
    start += kPointers - start % kPointers;  // no split runs
  const uint64_t end = start + count;
  // Wait piece by piece until the worker has freed enough; freed pointers precede done_.
  while (end > pointers_freed_.load(std::memory_order_acquire) + kPointers) {
    done_.wait(done_.value() + 1);
  }
  pointers_used_ = end;
  work->pointers_end = end;
  return pointers_.data() + start % kPointers;
}

void Stream::run(const Kernel* kernel, const Maps& maps, const DLTensor* const* inputs,
                 DLTensor* const* outputs, void* workspace) {
  if (recording_ != nullptr) {
    recording_->add_run(lane_, kernel, maps, inputs, outputs, workspace);
    return;
  }
  Work& work = begin_push();
  DLTensor** at = take_pointers(maps.inputs.size() + maps.outputs.size(), &work);
  work.kernel = kernel;
  work.destination = workspace;
  work.pointers = at;
  work.output_offset = maps.inputs.size();
  for (const int32_t k : maps.inputs) *at++ = k < 0 ? nullptr : const_cast<DLTensor*>(inputs[k]);
  for (const int32_t k : maps.outputs) *at++ = k < 0 ? nullptr : outputs[k];
  end_push();
}

void Stream::copy(void* destination, const void* source, int64_t bytes) {
  if (recording_ != nullptr) {
    recording_->add_copy(lane_, destination, source, bytes);
    return;
  }
  Work& work = begin_push();
  work.kernel = nullptr;
  work.destination = destination;
  work.source = source;
  work.bytes = bytes;
  work.pointers_end = pointers_used_;
  end_push();
}

void Stream::wait(std::shared_ptr<Stream> other, uint64_t position) {
  Work& work = begin_push();
  work.kernel = nullptr;
  work.other = std::move(other);
  work.bytes = static_cast<int64_t>(position);
  work.pointers_end = pointers_used_;
  end_push();
}

void Stream::mark(Mark* mark) {
  mark->ns.store(Mark::kNotPassed, std::memory_order_relaxed);
  Work& work = begin_push();
  work.mark = mark;
  work.pointers_end = pointers_used_;
  end_push();
}

void Stream::record_to(std::shared_ptr<Recording> recording, uint32_t lane) {
  recording_ = std::move(recording);
  lane_ = lane;
}

void Stream::replay(Recording* recording, uint32_t lane, uint64_t turn) {
  Work& work = begin_push();
  work.recording = recording;
  work.lane = lane;
  work.turn = turn;
  work.pointers_end = pointers_used_;
  end_push();
}

uint64_t Stream::enter() {
  const uint64_t at = position();
  queued_.advance(at + 1);
  return at;
}

bool Stream::skips(uint64_t position, gr_error_t* err) {
  if (!ever_failed_.load(std::memory_order_acquire)) return false;
  const std::lock_guard<std::mutex> lock(error_mutex_);
  if (!failed_.load(std::memory_order_relaxed) && position >= skip_until_) return false;
  *err = error_;
  return true;
}

void Stream::fail(uint64_t position, const gr_error_t& err) {
  const std::lock_guard<std::mutex> lock(error_mutex_);
  error_ = err;
  error_position_ = position;
  ever_failed_.store(true, std::memory_order_release);
  failed_.store(true, std::memory_order_release);
}

bool Stream::poisoned(uint64_t position, gr_error_t* err) {
  if (!ever_failed_.load(std::memory_order_acquire)) return false;
  const std::lock_guard<std::mutex> lock(error_mutex_);
  if (position <= error_position_) return false;
  if (!failed_.load(std::memory_order_relaxed) && position > skip_until_) return false;
  *err = error_;
  return true;
}

/// Skipped work still waits: a later, healthy piece may rely on this order.
void Stream::execute_wait(const Work& work, uint64_t position) {
  if (work.other.get() == this) return;
  const auto target = static_cast<uint64_t>(work.bytes);
  work.other->done_.wait(target);
  gr_error_t err;
  if (skips(position, &err) || !work.other->poisoned(target, &err)) return;
  fail(position, err);
}

void Stream::execute(Work& work, uint64_t position) {
  if (work.other != nullptr) {
    execute_wait(work, position);
    work.other.reset();
  } else if (work.recording != nullptr) {
    work.recording->run_lane(work.lane, work.turn, *this, position);
    work.recording = nullptr;
  } else if (work.mark != nullptr) {
    work.mark->ns.store(now_ns(), std::memory_order_release);
    work.mark = nullptr;
  } else if (!failed_.load(std::memory_order_acquire) &&
             position >= skip_until_.load(std::memory_order_relaxed)) {
    if (work.kernel == nullptr) {
      if (work.bytes > 0) std::memcpy(work.destination, work.source, size_t(work.bytes));
    } else {
      gr_error_t err = {};
      DLTensor** const out = work.pointers + work.output_offset;
      if (run_guarded(*work.kernel, work.pointers, out, work.destination, &err) != GR_OK) {
        fail(position, err);
      }
    }
  }
  pointers_freed_.store(work.pointers_end, std::memory_order_release);
}

void Stream::worker() {
  if (seat_ != nullptr) seat_->enter();
  for (uint64_t at = 0;; ++at) {
    queued_.wait(at + 1);
    if (stop_.load()) return;
    execute(queue_[at % queue_.size()], at);
    done_.advance(at + 1);
  }
}

int32_t Stream::synchronize(uint64_t position, gr_error_t* err) {
  done_.wait(position);
  if (!failed_.load(std::memory_order_acquire)) return GR_OK;
  const std::lock_guard<std::mutex> lock(error_mutex_);
  if (!failed_.load(std::memory_order_relaxed) || error_position_ >= position) return GR_OK;
  // What was queued behind the error before anyone knew of it stays skipped, whatever the timing.
  skip_until_.store(this->position(), std::memory_order_relaxed);
  failed_.store(false, std::memory_order_release);
  if (err != nullptr) *err = error_;
  return error_.code;
}

int32_t run_guarded(const Kernel& kernel, const DLTensor* const* in, DLTensor* const* out,
                    void* workspace, gr_error_t* err) noexcept {
  try {
    const int32_t status = kernel.run(in, out, workspace, err);
    if (status != GR_OK && err->code == GR_OK) {
      return gr_fail(err, status, "kernel", "the kernel failed without saying why");
    }
    return status;
  } catch (const std::bad_alloc&) {
    return gr_fail(err, GR_OUT_OF_MEMORY, "kernel", "out of memory inside a kernel");
  } catch (const std::exception& e) {
    return gr_fail(err, GR_INTERNAL, "kernel", e.what());
  } catch (...) {
    return gr_fail(err, GR_INTERNAL, "kernel",
                   "a kernel threw something that is no std::exception");
  }
}

}  // namespace gradrack::host
