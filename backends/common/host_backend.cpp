// SPDX-License-Identifier: Apache-2.0
// The C face of a backend in host memory: noexcept thunks over KernelTable, Kernel and Stream.
//
// A claim always answers group -1: groups of several nodes come from patterns (group.hpp) alone.
// Invariant: every thunk catches all.
#include "backends/common/host_backend.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/common/capture.hpp"
#include "backends/common/group.hpp"
#include "backends/common/handles.hpp"
#include "backends/common/memory.hpp"
#include "backends/common/recording.hpp"
#include "backends/common/timing.hpp"

namespace gradrack::host {
namespace {

struct Backend {
  Backend(KernelTable all, HostBackendConfig how)
      : table(std::move(all)), config(std::move(how)), fusion(table) {}
  KernelTable table;
  HostBackendConfig config;
  FusionFace fusion;
};

struct PreparedKernel {
  std::unique_ptr<Kernel> kernel;
  Stream::Maps maps;
};

Backend* backend_of(void* self) { return static_cast<Backend*>(self); }

void destroy(void* self) noexcept { delete backend_of(self); }

int32_t device_info(void* self, gr_device_info_t* out, gr_error_t*) noexcept {
  gr_device_info_t info = {};
  info.struct_size = std::min<uint32_t>(out->struct_size, sizeof info);
  info.device_type = kDLCPU;
  info.memory = GR_MEMORY_HOST;
  info.alignment = kAlignment;
  info.max_streams = backend_of(self)->config.max_streams;
  info.description = backend_of(self)->config.description.c_str();
  std::memcpy(out, &info, info.struct_size);
  return GR_OK;
}

int32_t allocate(void*, int64_t bytes, void** out, gr_error_t* err) noexcept {
  *out = allocate_block(bytes);
  if (*out != nullptr) return GR_OK;
  const std::string text = "cannot allocate " + std::to_string(bytes) + " bytes of host memory";
  return gr_fail(err, GR_OUT_OF_MEMORY, "allocate", text.c_str());
}

void release(void*, void* memory) noexcept { release_block(memory); }

int32_t copy(void*, const DLTensor* destination, const DLTensor* source, gr_stream_t* stream,
             gr_error_t* err) noexcept {
  return guarded("copy", err, [&] {
    int64_t bytes = gr_dtype_bytes(gr_dtype_of(source->dtype));
    for (int32_t k = 0; k < source->ndim; ++k) bytes *= source->shape[k];
    stream_of(stream)->copy(destination->data, source->data, bytes);
    return GR_OK;
  });
}

int32_t stream_create(void* self, gr_stream_t** out, gr_error_t* err) noexcept {
  return guarded("stream_create", err, [&] {
    const HostBackendConfig& config = backend_of(self)->config;
    auto seat = config.threaded && config.seat ? config.seat() : nullptr;
    auto stream = std::make_shared<Stream>(config.threaded, std::move(seat));
    *out = reinterpret_cast<gr_stream_t*>(new std::shared_ptr<Stream>(std::move(stream)));
    return GR_OK;
  });
}

void stream_destroy(void*, gr_stream_t* stream) noexcept {
  if (stream == nullptr) return;
  if (stream_of(stream)->recording() != nullptr) {
    gr_error_t err;
    (void)capture_extension()->end(nullptr, stream, nullptr, &err);
  }
  stream_of(stream)->synchronize(stream_of(stream)->position(), nullptr);
  delete &stream_of(stream);
}

int32_t still_recorded(const char* call, gr_error_t* err) {
  return gr_fail(err, GR_FAILED_PRECONDITION, call, "what it waits for is being recorded");
}

int32_t stream_synchronize(void*, gr_stream_t* stream, gr_error_t* err) noexcept {
  Stream& s = *stream_of(stream);
  if (s.recording() != nullptr) return still_recorded("stream_synchronize", err);
  return guarded("stream_synchronize", err, [&] { return s.synchronize(s.position(), err); });
}

int32_t event_create(void*, gr_event_t** out, gr_error_t* err) noexcept {
  return guarded("event_create", err, [&] {
    *out = reinterpret_cast<gr_event_t*>(new Event);
    return GR_OK;
  });
}

void event_destroy(void*, gr_event_t* event) noexcept { delete event_of(event); }

int32_t event_record(void*, gr_event_t* event, gr_stream_t* stream, gr_error_t*) noexcept {
  Event& e = *event_of(event);
  const std::shared_ptr<Stream>& s = stream_of(stream);
  if (s->recording() != nullptr) {
    e.recording = s->recording();
    e.lane = s->lane();
    e.item = s->recording()->position(s->lane());
    return GR_OK;
  }
  e.stream = s;
  e.position = s->position();
  return GR_OK;
}

/// A wait of a stream that is being recorded, for an event of the same recording.
int32_t record_wait(const Stream& stream, const Event& event, gr_error_t* err) {
  if (event.recording.lock() != stream.recording()) {
    return gr_fail(err, GR_FAILED_PRECONDITION, "stream_wait",
                   "the stream is being recorded, and the event was not recorded with it");
  }
  stream.recording()->add_wait(stream.lane(), event.lane, event.item);
  return GR_OK;
}

int32_t stream_wait(void*, gr_stream_t* stream, gr_event_t* event, gr_error_t* err) noexcept {
  const Event& e = *event_of(event);
  const std::shared_ptr<Stream>& s = stream_of(stream);
  return guarded("stream_wait", err, [&] {
    if (s->recording() != nullptr) return record_wait(*s, e, err);
    if (e.stream == nullptr) return int32_t{GR_OK};
    s->wait(e.stream, e.position);
    return int32_t{GR_OK};
  });
}

int32_t event_synchronize(void*, gr_event_t* event, gr_error_t* err) noexcept {
  const Event& e = *event_of(event);
  const auto recording = e.recording.lock();
  if (recording != nullptr && !recording->sealed()) return still_recorded("event_synchronize", err);
  if (e.stream == nullptr) return GR_OK;
  return guarded("event_synchronize", err, [&] { return e.stream->synchronize(e.position, err); });
}

int32_t claim(void* self, const gr_node_view_t* nodes, uint32_t node_stride, uint32_t count,
              gr_claim_t* claims, uint32_t claim_stride, gr_error_t* err) noexcept {
  return guarded("claim", err, [&] {
    const char* node_at = reinterpret_cast<const char*>(nodes);
    char* claim_at = reinterpret_cast<char*>(claims);
    for (uint32_t k = 0; k < count; ++k, node_at += node_stride, claim_at += claim_stride) {
      const NodeSpec node(*reinterpret_cast<const gr_node_view_t*>(node_at));
      auto& answer = *reinterpret_cast<gr_claim_t*>(claim_at);
      std::string reason;
      const KernelEntry* const entry = backend_of(self)->table.match(node, &reason);
      if (entry != nullptr) reason = entry->converts;
      answer.verdict = entry != nullptr ? GR_CLAIM_YES : GR_CLAIM_NO;
      answer.group = -1;
      answer.flags = entry != nullptr && !reason.empty() ? GR_CLAIM_CONVERTED : 0;
      answer.cost_ns = 0;
      (void)snprintf(answer.reason, sizeof answer.reason, "%s", reason.c_str());
    }
    return GR_OK;
  });
}

/// For each node port the place of its value at the group's border; -1 when left out.
int32_t map_ports(const std::vector<TensorSpec>& ports, const gr_value_type_t* border,
                  uint32_t count, const char* side, std::vector<int32_t>* map, gr_error_t* err) {
  for (const TensorSpec& port : ports) {
    const auto* end = border + count;
    const auto* at = std::find_if(border, end, [&](const auto& v) { return v.id == port.id; });
    if (port.present() && at == end) {
      const std::string text = std::string(side) + " value " + std::to_string(port.id) +
                               " of the node is not at the border of its group";
      return gr_fail(err, GR_INVALID_ARGUMENT, "prepare", text.c_str());
    }
    map->push_back(port.present() ? static_cast<int32_t>(at - border) : -1);
  }
  return GR_OK;
}

/// Tells what the kernel needs; in_place is translated from ports to the border.
void fill_info(const PreparedKernel& prepared, gr_kernel_info_t* info) {
  const uint32_t size = info->struct_size;
  std::memset(info, 0, sizeof *info);
  info->struct_size = size;
  info->workspace_bytes = prepared.kernel->workspace_bytes();
  info->cost_ns = prepared.kernel->cost_ns();
  if (prepared.kernel->cannot_fail()) info->flags |= GR_KERNEL_CANNOT_FAIL;
  for (int32_t& input : info->in_place) input = -1;
  for (size_t k = 0; k < prepared.maps.outputs.size(); ++k) {
    const int32_t at = prepared.maps.outputs[k];
    const int port = prepared.kernel->in_place(static_cast<int>(k));
    if (at < 0 || at >= GR_MAX_IN_PLACE || port < 0) continue;
    info->in_place[at] = prepared.maps.inputs[static_cast<size_t>(port)];
  }
}

/// Makes the kernel of a node alone. Its border shows what is there, its ports all.
int32_t prepare_node(const KernelTable& table, const gr_group_t& group, PreparedKernel* prepared,
                     gr_error_t* err) {
  const NodeSpec node(group.nodes[0]);
  std::string reason;
  const KernelEntry* entry = table.match(node, &reason);
  if (entry == nullptr) return gr_fail(err, GR_UNSUPPORTED, node.op.c_str(), reason.c_str());
  Stream::Maps& maps = prepared->maps;
  int32_t status =
      map_ports(node.inputs, group.inputs, group.input_count, "input", &maps.inputs, err);
  if (status == GR_OK) {
    status =
        map_ports(node.outputs, group.outputs, group.output_count, "output", &maps.outputs, err);
  }
  if (status == GR_OK) prepared->kernel = entry->make(node);
  return status;
}

/// Makes the kernel of a pattern's match. Its ports are its border.
int32_t prepare_match(const KernelTable& table, const gr_group_t& group, PreparedKernel* prepared,
                      gr_error_t* err) {
  const GroupSpec spec(group);
  std::string reason;
  const GroupEntry* entry = match_group(table, group.pattern - 1, spec, &reason);
  if (entry == nullptr) return gr_fail(err, GR_UNSUPPORTED, "pattern", reason.c_str());
  prepared->maps.inputs.resize(spec.inputs.size());
  prepared->maps.outputs.resize(spec.outputs.size());
  std::iota(prepared->maps.inputs.begin(), prepared->maps.inputs.end(), 0);
  std::iota(prepared->maps.outputs.begin(), prepared->maps.outputs.end(), 0);
  prepared->kernel = entry->make(spec);
  return GR_OK;
}

int32_t prepare(void* self, const gr_group_t* group, gr_kernel_t** out, gr_kernel_info_t* info,
                gr_error_t* err) noexcept {
  return guarded("prepare", err, [&]() -> int32_t {
    if (group->pattern == 0 && group->node_count != 1) {
      return gr_fail(err, GR_INVALID_ARGUMENT, "prepare",
                     "a group here is one node, or the match of a pattern");
    }
    const KernelTable& table = backend_of(self)->table;
    auto prepared = std::make_unique<PreparedKernel>();
    const int32_t status = group->pattern == 0 ? prepare_node(table, *group, prepared.get(), err)
                                               : prepare_match(table, *group, prepared.get(), err);
    if (status != GR_OK) return status;
    if (prepared->maps.inputs.size() + prepared->maps.outputs.size() > Stream::kMaxPointers) {
      return gr_fail(err, GR_UNSUPPORTED, "prepare", "more than 4096 inputs and outputs");
    }
    fill_info(*prepared, info);
    *out = reinterpret_cast<gr_kernel_t*>(prepared.release());
    return GR_OK;
  });
}

void kernel_destroy(void*, gr_kernel_t* kernel) noexcept {
  delete reinterpret_cast<PreparedKernel*>(kernel);
}

int32_t launch(void*, gr_kernel_t* kernel, const DLTensor* const* inputs, DLTensor* const* outputs,
               const DLTensor* workspace, gr_stream_t* stream, gr_error_t* err) noexcept {
  const auto& prepared = *reinterpret_cast<const PreparedKernel*>(kernel);
  return guarded("launch", err, [&] {
    stream_of(stream)->run(prepared.kernel.get(), prepared.maps, inputs, outputs,
                           workspace != nullptr ? workspace->data : nullptr);
    return GR_OK;
  });
}

const void* get_extension(void* self, const char* id) noexcept {
  if (std::strcmp(id, GR_EXT_FUSION) == 0) return backend_of(self)->fusion.extension();
  if (std::strcmp(id, GR_EXT_CAPTURE) == 0) return capture_extension();
  return std::strcmp(id, GR_EXT_TIMING) == 0 ? timing_extension() : nullptr;
}

}  // namespace

int32_t make_host_backend(KernelTable table, HostBackendConfig config, gr_backend_t* out,
                          gr_error_t* err) noexcept {
  return guarded("create", err, [&] {
    gr_backend_t face = {};
    face.struct_size = std::min<uint32_t>(out->struct_size, sizeof face);
    face.flags = GR_BACKEND_CONCURRENT;
    face.self = new Backend(std::move(table), std::move(config));
    face.destroy = destroy;
    face.device_info = device_info;
    face.allocate = allocate;
    face.release = release;
    face.copy = copy;
    face.stream_create = stream_create;
    face.stream_destroy = stream_destroy;
    face.stream_synchronize = stream_synchronize;
    face.event_create = event_create;
    face.event_destroy = event_destroy;
    face.event_record = event_record;
    face.stream_wait = stream_wait;
    face.event_synchronize = event_synchronize;
    face.claim = claim;
    face.prepare = prepare;
    face.kernel_destroy = kernel_destroy;
    face.launch = launch;
    face.get_extension = get_extension;
    std::memcpy(out, &face, face.struct_size);
    return GR_OK;
  });
}

}  // namespace gradrack::host
