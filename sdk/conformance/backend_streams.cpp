// SPDX-License-Identifier: Apache-2.0
// Streams, events, counting vectors: see backend_streams.hpp.
#include "sdk/conformance/backend_streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/plan/node_views.hpp"

namespace gradrack::conform {
namespace {

constexpr size_t kMostStreams = 8;
constexpr int64_t kMostSteps = 1024;
constexpr double kChainSeconds = 0.025;

Status called(int32_t code, const gr_error_t& err, const char* call) {
  return status_from(code, err).with_context(call);
}

Result<Graph> add_graph(int64_t elements) {
  return case_graph({"Add", {f({elements}), f({elements})}, {}});
}

}  // namespace

Result<std::unique_ptr<StreamLab>> StreamLab::make(const Bench& bench, int64_t elements) {
  std::unique_ptr<StreamLab> lab(new StreamLab(bench.tested, elements));
  GR_TRY(lab->prepare());
  return lab;
}

StreamLab::~StreamLab() {
  for (gr_stream_t* const stream : streams_) (void)synchronize(stream);
  (void)rig_->synchronize();
}

Status StreamLab::prepare() {
  GR_ASSIGN(graph_, add_graph(elements_));
  GR_ASSIGN(BoundGraph bound, bind_graph(graph_, {}));
  bound_ = std::make_unique<BoundGraph>(std::move(bound));
  GR_ASSIGN(const std::vector<Claim> claims, ask_claims(*rig_->device(), *bound_, {0}));
  if (!claims[0].yes) {
    return unsupported("no float32 Add to fill streams with: " + claims[0].reason);
  }
  // The rig reads back on the last stream: what is tried keeps off it, where two others are left.
  const size_t offered = rig_->device()->info().max_streams;
  const size_t count = std::min(kMostStreams, offered > 2 ? offered - 1 : offered);
  for (size_t k = 0; k < count; ++k) {
    GR_ASSIGN(gr_stream_t* const stream, rig_->device()->stream(static_cast<uint32_t>(k)));
    streams_.push_back(stream);
  }
  GR_ASSIGN(one_, vector(1.0));
  return calibrate();
}

/// As many steps as take kChainSeconds.
Status StreamLab::calibrate() {
  GR_ASSIGN(CountVector* const counter, vector(0.0));
  GR_TRY(chain(counter, stream(0)));  // warms up
  GR_TRY(synchronize(stream(0)));
  while (chain_steps_ < kMostSteps) {
    const auto begin = std::chrono::steady_clock::now();
    GR_TRY(chain(counter, stream(0)));
    GR_TRY(synchronize(stream(0)));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (took.count() >= kChainSeconds) break;
    chain_steps_ *= 2;
  }
  return {};
}

Result<Kernel*> StreamLab::kernel_for(gr_stream_t* stream) {
  const auto at = kernels_.find(stream);
  if (at != kernels_.end()) return &at->second;
  NodeViews views(*bound_);
  views.add(0);
  const gr_node_view_t& node = views.views()[0];
  gr_group_t group = {};
  group.struct_size = sizeof group;
  group.node_stride = sizeof node;
  group.nodes = &node;
  group.node_count = 1;
  group.inputs = node.inputs;
  group.input_count = node.input_count;
  group.outputs = node.outputs;
  group.output_count = node.output_count;
  gr_kernel_info_t info = {};
  info.struct_size = sizeof info;
  gr_kernel_t* kernel = nullptr;
  gr_error_t err = {};
  const gr_backend_t* b = rig_->table();
  GR_TRY(called(b->prepare(b->self, &group, &kernel, &info, &err), err, "prepare"));
  if (info.workspace_bytes > 0) {
    GR_ASSIGN(DeviceBuffer buffer, DeviceBuffer::make(*rig_, info.workspace_bytes));
    GR_TRY(buffer.put(nullptr, 0xff, 0x5a));
    workspaces_[stream] = std::make_unique<Workspace>(std::move(buffer));
  }
  return &kernels_.emplace(stream, Kernel(rig_->device(), kernel)).first->second;
}

Result<gr_event_t*> StreamLab::event() {
  GR_ASSIGN(StreamEvent made, rig_->device()->make_event());
  events_.push_back(std::move(made));
  return events_.back().get();
}

Result<CountVector*> StreamLab::vector(double number) {
  GR_ASSIGN(DeviceBuffer buffer, DeviceBuffer::make(*rig_, elements_ * 4));
  vectors_.push_back(std::make_unique<CountVector>(std::move(buffer), elements_));
  GR_TRY(set(vectors_.back().get(), number));
  return vectors_.back().get();
}

Status StreamLab::set(CountVector* vector, double number) {
  const HostArray content(GR_FLOAT32, {elements_},
                          std::vector<double>(static_cast<size_t>(elements_), number));
  return vector->buffer.put(content.bytes.data(), 0, 0x5a);
}

Result<std::string> StreamLab::look(const CountVector& vector, double number) const {
  GR_ASSIGN(const std::vector<std::byte> image, vector.buffer.get());
  HostArray content(GR_FLOAT32, {elements_});
  const std::byte* body = vector.buffer.body(image);
  content.bytes.assign(body, body + content.bytes.size());
  for (int64_t k = 0; k < elements_; ++k) {
    if (content.number(k) == number) continue;
    return fmt::format("element {} is {}, and {} would be right", k, content.number(k), number);
  }
  return std::string();
}

Status StreamLab::add(const CountVector& a, const CountVector& b, CountVector* to,
                      gr_stream_t* stream) {
  GR_ASSIGN(Kernel* const kernel, kernel_for(stream));
  const DLTensor* const inputs[] = {a.tensor.get(), b.tensor.get()};
  DLTensor* const outputs[] = {to->tensor.get()};
  const auto workspace = workspaces_.find(stream);
  const DLTensor* const scratch =
      workspace == workspaces_.end() ? nullptr : workspace->second->tensor.get();
  gr_error_t err = {};
  const gr_backend_t* t = rig_->table();
  return called(t->launch(t->self, kernel->get(), inputs, outputs, scratch, stream, &err), err,
                "launch");
}

Status StreamLab::copy(const DLTensor& from, const DLTensor& to, gr_stream_t* stream) {
  gr_error_t err = {};
  const gr_backend_t* b = rig_->table();
  return called(b->copy(b->self, &to, &from, stream, &err), err, "copy");
}

Status StreamLab::copy(const CountVector& from, CountVector* to, gr_stream_t* stream) {
  return copy(*from.tensor.get(), *to->tensor.get(), stream);
}

Status StreamLab::record(gr_event_t* event, gr_stream_t* stream) {
  gr_error_t err = {};
  const gr_backend_t* b = rig_->table();
  return called(b->event_record(b->self, event, stream, &err), err, "event_record");
}

Status StreamLab::wait(gr_stream_t* stream, gr_event_t* event) {
  gr_error_t err = {};
  const gr_backend_t* b = rig_->table();
  return called(b->stream_wait(b->self, stream, event, &err), err, "stream_wait");
}

Status StreamLab::event_synchronize(gr_event_t* event) {
  gr_error_t err = {};
  const gr_backend_t* b = rig_->table();
  return called(b->event_synchronize(b->self, event, &err), err, "event_synchronize");
}

Status StreamLab::chain(CountVector* counter, gr_stream_t* stream) {
  CountVector*& partner = partners_[stream];
  if (partner == nullptr) {
    GR_ASSIGN(partner, vector(0.0));
  }
  for (int64_t k = 0; k < chain_steps_; k += 2) {
    GR_TRY(add(*counter, *one_, partner, stream));
    GR_TRY(add(*partner, *one_, counter, stream));
  }
  return {};
}

}  // namespace gradrack::conform
