// SPDX-License-Identifier: Apache-2.0
// Undo: see undo.hpp.
#include "core/exec/undo.hpp"

#include <atomic>

namespace gradrack {

namespace {

/// The n-th of a sequence in which nothing repeats (SplitMix64; Steele, Lea, Flood 2014).
int64_t next_number() {
  static std::atomic<uint64_t> count = 0;
  uint64_t z = (count.fetch_add(1) + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return static_cast<int64_t>(z ^ (z >> 31));
}

}  // namespace

Undo::Undo(const Plan& plan, std::vector<DLTensor>& tensors, const std::vector<Step>& steps) {
  const PlanUndo& undo = plan.undo;
  if (undo.copies.empty()) return;
  for (const UndoCopy& c : undo.copies) {
    copies_.push_back({&tensors[size_t(c.from)], &tensors[size_t(c.to)]});
  }
  number_ = static_cast<int64_t*>(tensors[size_t(undo.marker.from)].data);
  marker_ = &tensors[size_t(undo.marker.to)];
  for (const Step& step : steps) {
    if (step.task != undo.copies.front().task) continue;
    device_ = step.device;
    stream_ = step.stream;
  }
}

void Undo::number_run() {
  if (number_ != nullptr) *number_ = next_number();
}

Status Undo::restore() {
  if (copies_.empty()) return {};
  int64_t marked = 0;
  int64_t bytes = sizeof marked;
  const DLTensor here = byte_row({&marked, 0}, {kDLCPU, 0}, &bytes);
  GR_TRY(copy(here, *marker_));
  if (marked != *number_) return {};
  for (const Copy& c : copies_) GR_TRY(copy(*c.stored, *c.copy));
  return {};
}

Status Undo::copy(const DLTensor& to, const DLTensor& from) {
  const gr_backend_t* const backend = device_->backend();
  gr_error_t err = {};
  int32_t code = backend->copy(backend->self, &to, &from, stream_, &err);
  if (code == GR_OK) code = backend->stream_synchronize(backend->self, stream_, &err);
  return status_from(code, err);
}

}  // namespace gradrack
