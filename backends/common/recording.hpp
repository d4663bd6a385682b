// SPDX-License-Identifier: Apache-2.0
// Recording: what was called on some streams, as flat lists of work to be run again and again.
//
// Filled by Stream while it is recorded (capture.cpp), queued as one piece of work a stream, run by
// the streams' threads; where streams run inline, by the caller, in the order of the calls. Each
// stream of it is a lane; a wait names another lane and how many of its items have to be done.
// Every replay numbers the items anew, so that one may be queued behind another. Invariant: a
// replay allocates nothing, and leaves streams and events as launching would.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/common/stream.hpp"

namespace gradrack::host {

class Recording {
 public:
  explicit Recording(std::vector<std::shared_ptr<Stream>> streams);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  uint32_t lanes() const { return static_cast<uint32_t>(lanes_.size()); }
  /// The streams that are recorded; none once it is sealed.
  const std::vector<std::shared_ptr<Stream>>& streams() const { return streams_; }
  bool sealed() const { return sealed_; }

  // While it is made.
  void add_run(uint32_t lane, const Kernel* kernel, const Stream::Maps& maps,
               const DLTensor* const* inputs, DLTensor* const* outputs, void* workspace);
  void add_copy(uint32_t lane, void* destination, const void* source, int64_t bytes);
  /// Later items of `lane` wait until `other` has done `position` items.
  void add_wait(uint32_t lane, uint32_t other, uint64_t position);
  /// Items of `lane` so far: what an event records.
  uint64_t position(uint32_t lane) const { return lanes_[lane]->items.size(); }
  void seal();

  /// Queues every lane on its stream. One thread at a time.
  void replay(std::span<Stream* const> streams);
  /// Runs a lane of replay `turn`, which stands at `entry` of `stream`: called by the stream.
  void run_lane(uint32_t lane, uint64_t turn, Stream& stream, uint64_t entry);

 private:
  struct Item {
    const Kernel* kernel = nullptr;  // null: a copy, or a wait
    DLTensor** pointers = nullptr;   // inputs, then outputs
    DLTensor** outputs = nullptr;
    void* destination = nullptr;  // a run's workspace
    const void* source = nullptr;
    int64_t bytes = 0;      // of a copy
    int32_t wait_for = -1;  // a lane: this is a wait
    uint64_t position = 0;  // in that lane
    bool awaited = false;   // somebody waits for the items up to this one
  };

  /// Positions of a lane count on from replay to replay, so that they can be compared over time:
  /// those of replay `turn` begin at turn * stride() + 1; 0 is before the first.
  struct Lane {
    std::vector<Item> items;
    std::vector<std::unique_ptr<DLTensor*[]>> pointers;
    Progress done;
    // Items from failed_from to before failed_until were skipped or went wrong: the last such
    // stretch. What stands in it is in `error`.
    std::mutex error_mutex;
    int64_t failed_from = -1;
    std::atomic<int64_t> failed_until{-1};
    gr_error_t error = {};
    // While it runs: for whoever runs it.
    Stream* stream = nullptr;
    uint64_t entry = 0;  // position in the stream
    uint64_t turn = 0;
    size_t next = 0;
    bool skip = false;
    gr_error_t err = {};

    int64_t stride() const { return static_cast<int64_t>(items.size()) + 1; }
    int64_t at(uint64_t of_turn, uint64_t position) const {
      return static_cast<int64_t>(of_turn) * stride() + 1 + static_cast<int64_t>(position);
    }
  };

  void start(Lane& lane, uint64_t turn, Stream& stream, uint64_t entry);
  void step(Lane& lane);
  static void finish(Lane& lane);
  void wait(Lane& lane, const Item& item);
  /// What follows item `item` in this turn is skipped, and events behind it say so.
  static void fail(Lane& lane, int64_t item);
  void run_inline(std::span<Stream* const> streams, uint64_t turn);

  std::vector<std::shared_ptr<Stream>> streams_;
  bool sealed_ = false;
  bool threaded_;
  uint64_t turns_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<uint32_t> order_;  // lanes by call, for streams that run inline
};

}  // namespace gradrack::host
