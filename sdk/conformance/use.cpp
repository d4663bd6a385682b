// SPDX-License-Identifier: Apache-2.0
// A little use of an instance of each kind: see use.hpp.
#include "sdk/conformance/use.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "core/data/feed.hpp"
#include "core/schedule/schedule.hpp"
#include "sdk/conformance/host_batch.hpp"
#include "sdk/conformance/metrics_run.hpp"
#include "sdk/conformance/samples.hpp"

namespace gradrack::conform {

void Digest::add(const void* bytes, size_t count) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  for (size_t k = 0; k < count; ++k) hash_ = (hash_ ^ at[k]) * UINT64_C(0x100000001b3);
}

std::string Digest::text() const { return fmt::format("{:016x}", hash_); }

template <>
Result<std::string> use_instance(Context& context, const gr_model_t& table, Use* use) {
  Digest digest;
  for (const bool training : {true, false}) {
    GR_ASSIGN(const Graph graph, build_model_graph(context, table, training, use));
    digest.add(dump(graph));
  }
  return digest.text();
}

template <>
Result<std::string> use_instance(Context&, const gr_optimizer_t& table, Use* use) {
  Digest digest;
  for (const SampleParameter& parameter : sample_parameters()) {
    const auto graph = build_update_graph(table, parameter, use);
    // "Not for a parameter like this" is an answer.
    if (graph.status().code() == GR_UNSUPPORTED) {
      digest.add(graph.status().message());
      continue;
    }
    GR_TRY(graph.status().with_context("for the parameter '" + parameter.name + "'"));
    digest.add(dump(*graph));
  }
  return digest.text();
}

template <>
Result<std::string> use_instance(Context& context, const gr_data_t& table, Use* use) {
  Digest digest;
  GR_ASSIGN(HostBatch batch, HostBatch::make(table, use));
  digest.add(std::string(batch.info().summary != nullptr ? batch.info().summary : ""));
  for (const int32_t split : {GR_SPLIT_TRAIN, GR_SPLIT_VALIDATION}) {
    GR_TRY(batch.fetch(split, context.seed(), 0, 2));
    batch.add_to(&digest);
  }
  return digest.text();
}

template <>
Result<std::string> use_instance(Context&, const gr_lr_schedule_t& table, Use* use) {
  Digest digest;
  for (int64_t update = 0; update < 20; ++update) {
    gr_lr_request_t request = {};
    request.struct_size = sizeof request;
    request.update = update;
    request.max_updates = 16;
    request.base_lr = 0.25;
    double lr = 0;
    GR_TRY(call_plugin("value", use, [&](gr_error_t* err) {
      return table.value(table.self, &request, &lr, err);
    }));
    digest.add(lr);
  }
  return digest.text();
}

template <>
Result<std::string> use_instance(Context&, const gr_precision_t& table, Use* use) {
  Digest digest;
  gr_dtype_t dtype = 0;
  GR_TRY(call_plugin("storage_dtype", use, [&](gr_error_t* err) {
    return table.storage_dtype(table.self, &dtype, err);
  }));
  digest.add(dtype);
  for (const char* op : {"MatMul", "Softmax", "Add"}) {
    const gr_precision_node_t node = {sizeof node, GR_KIND_FORWARD, "", op, "block.0"};
    GR_TRY(call_plugin("node_dtype", use, [&](gr_error_t* err) {
      return table.node_dtype(table.self, &node, &dtype, err);
    }));
    digest.add(dtype);
  }
  return digest.text();
}

template <>
Result<std::string> use_instance(Context& context, const gr_scheduler_t& table, Use* use) {
  Digest digest;
  uint32_t streams = 0;
  GR_TRY(call_plugin("streams", use,
                     [&](gr_error_t* err) { return table.streams(table.self, &streams, err); }));
  std::mt19937_64 random = context.random("use");
  const TaskTable tasks = random_tasks(random, 40);
  const TaskRequest request(tasks, 3, 0);
  std::vector<uint32_t> order(40), stream(40);
  GR_TRY(call_plugin("schedule", use, [&](gr_error_t* err) {
    return table.schedule(table.self, request.get(), order.data(), stream.data(), err);
  }));
  digest.add(streams);
  digest.add(order.data(), order.size() * sizeof order[0]);
  digest.add(stream.data(), stream.size() * sizeof stream[0]);
  return digest.text();
}

// A short run in a folder of its own, from beginning to end.
template <>
Result<std::string> use_instance(Context&, const gr_metrics_t& table, Use* use) {
  const ScratchFolder folder;
  MetricsRun run(table, use);
  GR_TRY(run.open(folder.path(), 0));
  for (const int64_t step : {1, 10, 20}) GR_TRY(run.record(step));
  GR_TRY(run.event(20, "evaluation", "step 20: validation loss 2.5"));
  GR_TRY(run.flush());
  GR_TRY(run.close());
  return std::string("written");
}

namespace {

/// A row of bytes on a device, or in host memory, as the copy function sees it.
struct Row {
  int64_t shape, stride = 1;
  DLTensor tensor = {};
  Row(void* data, DLDevice device, int64_t bytes) : shape(bytes) {
    tensor = {data, device, 1, gr_dl_dtype(GR_UINT8), &shape, &stride, 0};
  }
};

}  // namespace

// Memory, a stream, an event, and bytes there and back.
template <>
Result<std::string> use_instance(Context&, const gr_backend_t& table, Use* use) {
  Digest digest;
  std::unique_ptr<Device> device;
  GR_TRY(call_plugin("device_info", use, [&](gr_error_t* err) {
    gr_device_info_t info = {};
    info.struct_size = sizeof info;
    return table.device_info(table.self, &info, err);
  }));
  GR_ASSIGN(device, Device::make("tested", &table));
  void* memory = nullptr;
  GR_TRY(call_plugin("allocate", use, [&](gr_error_t* err) {
    return table.allocate(table.self, 256, &memory, err);
  }));
  const Memory owner(device.get(), memory, 0);
  gr_stream_t* stream = nullptr;
  GR_TRY(call_plugin("stream_create", use, [&](gr_error_t* err) {
    return table.stream_create(table.self, &stream, err);
  }));
  const Stream stream_owner(device.get(), stream);
  gr_event_t* event = nullptr;
  GR_TRY(call_plugin("event_create", use,
                     [&](gr_error_t* err) { return table.event_create(table.self, &event, err); }));
  const StreamEvent event_owner(device.get(), event);
  std::vector<unsigned char> there(256), back(256);
  for (size_t k = 0; k < there.size(); ++k) there[k] = static_cast<unsigned char>(k * 7);
  const DLDevice host = {kDLCPU, 0};
  const Row from(there.data(), host, 256), on(memory, device->dl_device(), 256),
      to(back.data(), host, 256);
  const auto copy = [&](const Row& destination, const Row& source) {
    return call_plugin("copy", use, [&](gr_error_t* err) {
      return table.copy(table.self, &destination.tensor, &source.tensor, stream, err);
    });
  };
  Status status = copy(on, from);
  if (status.ok()) status = copy(to, on);
  // Whatever happened, nothing may be queued when the memory goes.
  const Status recorded = call_plugin("event_record", use, [&](gr_error_t* err) {
    return table.event_record(table.self, event, stream, err);
  });
  const Status waited = call_plugin("stream_synchronize", use, [&](gr_error_t* err) {
    return table.stream_synchronize(table.self, stream, err);
  });
  GR_TRY(status);
  GR_TRY(recorded);
  GR_TRY(waited);
  if (there != back)
    return internal_error("bytes that were copied there and back are not the same");
  digest.add(back.data(), back.size());
  return digest.text();
}

}  // namespace gradrack::conform
