// SPDX-License-Identifier: Apache-2.0
// Recording: see recording.hpp.
#include "backends/common/recording.hpp"

#include <cstring>

namespace gradrack::host {

Recording::Recording(std::vector<std::shared_ptr<Stream>> streams)
    : streams_(std::move(streams)), threaded_(streams_.front()->threaded()) {
  for (size_t k = 0; k < streams_.size(); ++k) lanes_.push_back(std::make_unique<Lane>());
}

void Recording::add_run(uint32_t lane, const Kernel* kernel, const Stream::Maps& maps,
                        const DLTensor* const* inputs, DLTensor* const* outputs, void* workspace) {
  Lane& to = *lanes_[lane];
  auto pointers = std::make_unique<DLTensor*[]>(maps.inputs.size() + maps.outputs.size());
  DLTensor** at = pointers.get();
  for (const int32_t k : maps.inputs) *at++ = k < 0 ? nullptr : const_cast<DLTensor*>(inputs[k]);
  for (const int32_t k : maps.outputs) *at++ = k < 0 ? nullptr : outputs[k];
  Item item;
  item.kernel = kernel;
  item.pointers = pointers.get();
  item.outputs = pointers.get() + maps.inputs.size();
  item.destination = workspace;
  to.pointers.push_back(std::move(pointers));
  to.items.push_back(item);
  order_.push_back(lane);
}

void Recording::add_copy(uint32_t lane, void* destination, const void* source, int64_t bytes) {
  Item item;
  item.destination = destination;
  item.source = source;
  item.bytes = bytes;
  lanes_[lane]->items.push_back(item);
  order_.push_back(lane);
}

void Recording::add_wait(uint32_t lane, uint32_t other, uint64_t position) {
  if (lane == other) return;  // a lane is in order
  Item item;
  item.wait_for = static_cast<int32_t>(other);
  item.position = position;
  lanes_[lane]->items.push_back(item);
  order_.push_back(lane);
  if (position > 0) lanes_[other]->items[position - 1].awaited = true;
}

void Recording::seal() {
  sealed_ = true;
  streams_.clear();
}

void Recording::replay(std::span<Stream* const> streams) {
  const uint64_t turn = turns_++;
  if (!threaded_) {
    run_inline(streams, turn);
    return;
  }
  for (uint32_t k = 0; k < lanes(); ++k) streams[k]->replay(this, k, turn);
}

/// One lane is a straight loop; several go in the order of the calls, in which no wait blocks.
void Recording::run_inline(std::span<Stream* const> streams, uint64_t turn) {
  for (uint32_t k = 0; k < lanes(); ++k) start(*lanes_[k], turn, *streams[k], streams[k]->enter());
  if (lanes() == 1) {
    for (size_t left = lanes_[0]->items.size(); left > 0; --left) step(*lanes_[0]);
  } else {
    for (const uint32_t lane : order_) step(*lanes_[lane]);
  }
  for (uint32_t k = 0; k < lanes(); ++k) {
    finish(*lanes_[k]);
    streams[k]->leave(lanes_[k]->entry);
  }
}

void Recording::run_lane(uint32_t lane, uint64_t turn, Stream& stream, uint64_t entry) {
  Lane& l = *lanes_[lane];
  start(l, turn, stream, entry);
  for (size_t left = l.items.size(); left > 0; --left) step(l);
  finish(l);
}

void Recording::start(Lane& lane, uint64_t turn, Stream& stream, uint64_t entry) {
  lane.stream = &stream;
  lane.entry = entry;
  lane.turn = turn;
  lane.next = 0;
  lane.skip = stream.skips(entry, &lane.err);
  if (lane.skip) fail(lane, -1);
  lane.done.advance(static_cast<uint64_t>(lane.at(turn, 0)));
}

void Recording::step(Lane& lane) {
  const Item& item = lane.items[lane.next];
  if (item.wait_for >= 0) {
    wait(lane, item);
  } else if (!lane.skip && item.kernel == nullptr) {
    if (item.bytes > 0) std::memcpy(item.destination, item.source, size_t(item.bytes));
  } else if (!lane.skip && run_guarded(*item.kernel, item.pointers, item.outputs, item.destination,
                                       &lane.err) != GR_OK) {
    lane.stream->fail(lane.entry, lane.err);
    fail(lane, static_cast<int64_t>(lane.next));
  }
  ++lane.next;
  if (item.awaited) lane.done.advance(static_cast<uint64_t>(lane.at(lane.turn, lane.next)));
}

void Recording::wait(Lane& lane, const Item& item) {
  Lane& other = *lanes_[static_cast<size_t>(item.wait_for)];
  const int64_t target = other.at(lane.turn, item.position);
  other.done.wait(static_cast<uint64_t>(target));
  if (lane.skip || other.failed_until.load(std::memory_order_acquire) < target) return;
  {
    const std::lock_guard<std::mutex> lock(other.error_mutex);
    if (target <= other.failed_from) return;
    lane.err = other.error;
  }
  lane.stream->fail(lane.entry, lane.err);
  fail(lane, static_cast<int64_t>(lane.next));
}

void Recording::fail(Lane& lane, int64_t item) {
  lane.skip = true;
  const int64_t from = lane.at(lane.turn, 0) + item;
  const std::lock_guard<std::mutex> lock(lane.error_mutex);
  // A stretch that goes on from the turn before stays one, for those who still wait in that turn.
  if (lane.failed_until.load(std::memory_order_relaxed) != from) lane.failed_from = from;
  lane.error = lane.err;
  lane.failed_until.store(lane.at(lane.turn, lane.items.size()), std::memory_order_release);
}

void Recording::finish(Lane& lane) {
  lane.done.advance(static_cast<uint64_t>(lane.at(lane.turn, lane.items.size())));
  lane.err.code = GR_OK;
}

}  // namespace gradrack::host
