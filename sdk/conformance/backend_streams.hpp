// SPDX-License-Identifier: Apache-2.0
// StreamLab: streams, events and a vector that counts, for the cases of L4.
//
// The device adds 1 to a vector again and again; the number in it tells how much of a stream's work
// had been done when something else looked. A chain is calibrated once to take long against the
// time that the host needs to queue it, so that what ignores an order looks too early. Invariant:
// on a right backend nothing here depends on timing.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "sdk/conformance/backend_cell.hpp"

namespace gradrack::conform {

/// float32 elements on the device. Stays where it is.
struct CountVector {
  DeviceBuffer buffer;
  DeviceTensor tensor;
  CountVector(DeviceBuffer made, int64_t elements)
      : buffer(std::move(made)), tensor(buffer, GR_FLOAT32, {elements}) {}
};

class StreamLab {
 public:
  /// GR_UNSUPPORTED when the backend claims no float32 Add, which the chains are made of.
  static Result<std::unique_ptr<StreamLab>> make(const Bench& bench, int64_t elements = 1 << 18);
  /// Waits for all streams first: whatever a failed case left queued still uses the vectors.
  ~StreamLab();

  const Rig& rig() const { return *rig_; }
  /// Streams that the device offers, 8 at most; of three and more not the one that the rig reads
  /// back on, which would wait for what it must not.
  size_t stream_count() const { return streams_.size(); }
  gr_stream_t* stream(size_t k) const { return streams_[k % streams_.size()]; }
  /// A new event; lives as long as the lab.
  Result<gr_event_t*> event();

  /// A new vector of this number; lives as long as the lab.
  Result<CountVector*> vector(double number);
  /// Writes the number into all elements and waits.
  Status set(CountVector* vector, double number);
  /// "" when all elements are `number`, else what is there. Waits for nothing but its own copy.
  Result<std::string> look(const CountVector& vector, double number) const;

  // Queued on a stream.
  Status add(const CountVector& a, const CountVector& b, CountVector* to, gr_stream_t* stream);
  Status copy(const CountVector& from, CountVector* to, gr_stream_t* stream);
  Status copy(const DLTensor& from, const DLTensor& to, gr_stream_t* stream);
  Status record(gr_event_t* event, gr_stream_t* stream);
  Status wait(gr_stream_t* stream, gr_event_t* event);
  Status event_synchronize(gr_event_t* event);
  Status synchronize(gr_stream_t* stream) { return conform::synchronize(*rig_, stream); }

  /// Adds 1 to `vector` chain_steps() times, by way of a second vector. Even: it ends in `vector`.
  Status chain(CountVector* vector, gr_stream_t* stream);
  int64_t chain_steps() const { return chain_steps_; }
  const CountVector& one() const { return *one_; }
  int64_t elements() const { return elements_; }

 private:
  StreamLab(const Rig* rig, int64_t elements) : rig_(rig), elements_(elements) {}
  struct Workspace {
    DeviceBuffer buffer;
    DeviceTensor tensor;
    explicit Workspace(DeviceBuffer made)
        : buffer(std::move(made)), tensor(buffer, GR_UINT8, {buffer.bytes()}) {}
  };
  Status prepare();
  Status calibrate();
  Result<Kernel*> kernel_for(gr_stream_t* stream);

  const Rig* rig_;
  int64_t elements_;
  int64_t chain_steps_ = 16;
  Graph graph_;
  std::unique_ptr<BoundGraph> bound_;
  std::map<gr_stream_t*, Kernel> kernels_;  // one a stream, as in a plan
  std::map<gr_stream_t*, CountVector*> partners_;
  std::map<gr_stream_t*, std::unique_ptr<Workspace>> workspaces_;
  std::vector<gr_stream_t*> streams_;  // the device's
  std::deque<StreamEvent> events_;
  std::deque<std::unique_ptr<CountVector>> vectors_;
  CountVector* one_ = nullptr;
};

}  // namespace gradrack::conform
