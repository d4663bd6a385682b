// SPDX-License-Identifier: Apache-2.0
// Stream and Event: an in-order queue of work in host memory, inline or on its own thread.
//
// host_backend.cpp queues kernel runs, copies and waits here. An event is a position in a stream,
// so recording one costs nothing. Invariant: pushing allocates nothing and takes no lock unless a
// thread has to be woken; it blocks only when the queue is full. One thread pushes at a time (role
// exec). While a stream is recorded, what would be queued goes to the recording (recording.hpp).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/common/kernel.hpp"

namespace gradrack::host {

/// A counter that only grows and that threads can wait for.
class Progress {
 public:
  /// `spins`: how long wait() polls before it sleeps; the default is about 20 us.
  explicit Progress(int spins = 1000) : spins_(spins) {}
  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  /// Sets the counter and wakes who waits. One thread at a time.
  void advance(uint64_t value);
  /// Returns once value() >= target: spins shortly, then sleeps.
  void wait(uint64_t target);

 private:
  const int spins_;
  std::atomic<uint64_t> value_{0};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

class Recording;

/// When a stream came to it, on the host's monotonic clock.
struct Mark {
  static constexpr int64_t kNotPassed = INT64_MIN;
  std::atomic<int64_t> ns{kNotPassed};
};

/// Where the thread of a stream belongs: on which core, with which helpers. Kept until the stream
/// is destroyed.
class Seat {
 public:
  virtual ~Seat() = default;
  /// Called by that thread before its first work.
  virtual void enter() = 0;
};

class Stream {
 public:
  /// `threaded`: work runs on a thread of this stream's own, which takes `seat` if there is one;
  /// otherwise at once, in the caller.
  explicit Stream(bool threaded, std::unique_ptr<Seat> seat = nullptr);
  /// Finishes all queued work first.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// The most pointers (inputs and outputs together) one run can take.
  static constexpr uint64_t kMaxPointers = 4096;

  /// Queues one run. Input k of the node is inputs[input_map[k]], or nullptr for a map entry of -1.
  struct Maps {
    std::vector<int32_t> inputs;
    std::vector<int32_t> outputs;
  };
  void run(const Kernel* kernel, const Maps& maps, const DLTensor* const* inputs,
           DLTensor* const* outputs, void* workspace);
  /// Queues a copy of bytes; both ends must stay valid and untouched until it has happened.
  void copy(void* destination, const void* source, int64_t bytes);
  /// Later work waits until `other` has passed `position`, and is skipped when an error stands
  /// there: it is this stream's error then too.
  void wait(std::shared_ptr<Stream> other, uint64_t position);
  /// Queues a look at the clock, which skipped work does not skip.
  void mark(Mark* mark);

  /// Number of pieces of work queued so far: what an event records.
  uint64_t position() const { return queued_.value(); }
  bool threaded() const { return thread_.joinable(); }

  /// From here on calls go to lane `lane` of `recording`; null: they are queued again.
  void record_to(std::shared_ptr<Recording> recording, uint32_t lane);
  const std::shared_ptr<Recording>& recording() const { return recording_; }
  uint32_t lane() const { return lane_; }
  /// Queues lane `lane` of `recording`, for its replay `turn`.
  void replay(Recording* recording, uint32_t lane, uint64_t turn);
  // For a recording that runs in the caller's thread: the position that it takes; done with it.
  uint64_t enter();
  void leave(uint64_t position) { done_.advance(position + 1); }
  /// For what runs at `position`: an error before it is not dealt with, so it is to be skipped;
  /// `err` gets the error.
  bool skips(uint64_t position, gr_error_t* err);
  /// What runs at `position` has failed.
  void fail(uint64_t position, const gr_error_t& err);

  /// Blocks until `position` is passed. Then gives, once, the error of work before `position`.
  int32_t synchronize(uint64_t position, gr_error_t* err);

 private:
  struct Work {
    const Kernel* kernel = nullptr;
    void* destination = nullptr;  // a run's workspace
    const void* source = nullptr;
    int64_t bytes = 0;  // of a copy; a position for a wait
    std::shared_ptr<Stream> other;
    DLTensor** pointers = nullptr;  // a run's inputs, then outputs
    uint64_t output_offset = 0;
    uint64_t pointers_end = 0;  // counter of used pointers once this work is done
    Recording* recording = nullptr;
    uint32_t lane = 0;
    uint64_t turn = 0;
    Mark* mark = nullptr;
  };

  Work& begin_push();
  void end_push();
  DLTensor** take_pointers(uint64_t count, Work* work);
  void execute(Work& work, uint64_t position);
  void execute_wait(const Work& work, uint64_t position);
  /// Work before `position` went wrong or was skipped, and `err` says why.
  bool poisoned(uint64_t position, gr_error_t* err);
  void worker();

  static constexpr uint64_t kQueue = 2048;        // pieces of work
  static constexpr uint64_t kPointers = 1 << 14;  // pointers of queued runs
  std::vector<Work> queue_;
  std::vector<DLTensor*> pointers_;
  uint64_t pointers_used_ = 0;               // pusher's
  std::atomic<uint64_t> pointers_freed_{0};  // worker's
  Progress queued_;
  Progress done_;

  std::shared_ptr<Recording> recording_;
  uint32_t lane_ = 0;

  // The first error not yet given out; work is skipped while failed_ and below skip_until_. Once
  // given out, error_ and error_position_ stay for those who wait for an event behind them.
  std::mutex error_mutex_;
  gr_error_t error_ = {};
  uint64_t error_position_ = 0;
  std::atomic<bool> ever_failed_{false};
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> skip_until_{0};

  std::atomic<bool> stop_{false};
  std::unique_ptr<Seat> seat_;
  std::thread thread_;
};

/// A point in a stream, and one in a recording: its last record of either kind. [exec]
struct Event {
  std::shared_ptr<Stream> stream;  // null: never recorded, already passed
  uint64_t position = 0;
  std::weak_ptr<Recording> recording;
  uint32_t lane = 0;
  uint64_t item = 0;
};

/// Runs `kernel`, mapping an exception to `err`.
int32_t run_guarded(const Kernel& kernel, const DLTensor* const* in, DLTensor* const* out,
                    void* workspace, gr_error_t* err) noexcept;

}  // namespace gradrack::host
