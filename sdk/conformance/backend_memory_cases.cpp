// SPDX-License-Identifier: Apache-2.0
// L3: memory and claims as such: alignment, copies, strides of the query's arrays, unknown
// operators.
#include <fmt/format.h>

#include <cstring>
#include <random>

#include "core/plan/node_views.hpp"
#include "sdk/conformance/backend_bench.hpp"

namespace gradrack::conform {
namespace {

Outcome alignment(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  const gr_backend_t* b = bench.tested->table();
  if (bench.tested->handles()) return not_applicable("memory has no addresses");
  const auto wanted = static_cast<uint64_t>(bench.tested->device()->alignment());
  for (const int64_t bytes : {1, 63, 64, 4097, 1 << 20}) {
    void* memory = nullptr;
    gr_error_t err = {};
    CONFORM_TRY(status_from(b->allocate(b->self, bytes, &memory, &err), err));
    const auto address = reinterpret_cast<uint64_t>(memory);
    b->release(b->self, memory);
    if (address == 0) return fail("allocate gives NULL and says GR_OK");
    if (address % wanted != 0) {
      return fail(
          fmt::format("{} bytes at {:#x}, not a multiple of the alignment {} that "
                      "device_info announces",
                      bytes, address, wanted));
    }
  }
  return pass();
}

Outcome too_much_memory(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  const gr_backend_t* b = bench.tested->table();
  void* memory = nullptr;
  gr_error_t err = {};
  const int32_t code = b->allocate(b->self, int64_t{1} << 60, &memory, &err);
  if (code == GR_OK) return fail("allocate gives an exbibyte");
  if (code != GR_OUT_OF_MEMORY) {
    return fail(fmt::format("an exbibyte is answered by code {}, not GR_OUT_OF_MEMORY", code));
  }
  return pass();
}

/// Host to device, device to device, device to host, in sizes around what devices like.
Outcome copies(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  const Rig& rig = *bench.tested;
  std::mt19937_64 random = context.random("L3.memory.copy");
  for (const int64_t count : {0, 1, 3, 64, 1000, 70001}) {
    HostArray sent(GR_UINT8, {count}), back(GR_UINT8, {count});
    for (std::byte& b : sent.bytes) b = static_cast<std::byte>(random());
    CONFORM_ASSIGN(DeviceBuffer first, DeviceBuffer::make(rig, count));
    CONFORM_ASSIGN(DeviceBuffer second, DeviceBuffer::make(rig, count));
    CONFORM_TRY(first.put(nullptr, 0, 0x5a));
    CONFORM_TRY(second.put(nullptr, 0, 0x5a));
    const DeviceTensor a(first, GR_UINT8, {count}), c(second, GR_UINT8, {count});
    const HostTensor from(&sent), to(&back);
    const DLTensor* const steps[][2] = {
        {a.get(), from.get()}, {c.get(), a.get()}, {to.get(), c.get()}};
    for (const auto& [destination, source] : steps) {
      gr_error_t err = {};
      const gr_backend_t* b = rig.table();
      CONFORM_TRY(status_from(b->copy(b->self, destination, source, rig.stream(), &err), err));
    }
    CONFORM_TRY(rig.synchronize());
    if (sent.bytes != back.bytes) {
      return fail(
          fmt::format("{} bytes to the device, across it and back are not the same", count));
    }
    for (const DeviceBuffer* buffer : {&first, &second}) {
      CONFORM_ASSIGN(const std::vector<std::byte> image, buffer->get());
      const std::string fault = buffer->guard_fault(image, 0x5a);
      if (!fault.empty()) return fail(fmt::format("a copy of {} bytes {}", count, fault));
    }
  }
  return pass();
}

/// Adds the case's node to a graph of many, its sources under names of their own.
Status add_case(const OpCase& c, Graph* graph) {
  GR_ASSIGN(const Graph single, case_graph(c));
  const Node& node = single.nodes().back();
  std::vector<ValueId> inputs;
  for (const ValueId id : node.inputs) {
    if (id == GR_NO_VALUE) {
      inputs.push_back(id);
      continue;
    }
    Value value = single.value(id);
    if (value.source == Source::kConstant) {
      GR_ASSIGN(const ValueId made, graph->add_constant(value.type, ConstantData(*value.constant)));
      inputs.push_back(made);
      continue;
    }
    value.name = c.op + " " + value.name;
    GR_ASSIGN(const ValueId made, graph->add_source(std::move(value)));
    inputs.push_back(made);
  }
  GR_ASSIGN(const auto outputs, graph->add_node(*node.op, inputs, node.attrs, node.outputs.size()));
  return graph->add_output(c.op, outputs[0]);
}

/// One node of every operator that has a small case, for batch queries.
Result<Graph> many_nodes() {
  Graph graph;
  for (const std::string& op : operators_with_cells()) {
    const std::vector<OpCase> cases = gradient_cases(op, GR_FLOAT32);
    if (!cases.empty()) GR_TRY(add_case(cases[0], &graph));
  }
  return graph;
}

/// The answers to one query whose arrays have `padding` more bytes an entry than this SDK's
/// structs.
Result<std::vector<int32_t>> verdicts(const Rig& rig, const std::vector<gr_node_view_t>& nodes,
                                      size_t padding) {
  const size_t node_stride = sizeof(gr_node_view_t) + padding;
  const size_t claim_stride = sizeof(gr_claim_t) + padding;
  std::vector<char> node_bytes(node_stride * nodes.size(), 0x7f);
  std::vector<char> claim_bytes(claim_stride * nodes.size(), 0x7f);
  gr_claim_t blank = {};
  blank.struct_size = sizeof blank;
  blank.group = -1;
  for (size_t k = 0; k < nodes.size(); ++k) {
    std::memcpy(&node_bytes[k * node_stride], &nodes[k], sizeof nodes[k]);
    std::memcpy(&claim_bytes[k * claim_stride], &blank, sizeof blank);
  }
  gr_error_t err = {};
  const gr_backend_t* b = rig.table();
  GR_TRY(
      status_from(b->claim(b->self, reinterpret_cast<const gr_node_view_t*>(node_bytes.data()),
                           static_cast<uint32_t>(node_stride), static_cast<uint32_t>(nodes.size()),
                           reinterpret_cast<gr_claim_t*>(claim_bytes.data()),
                           static_cast<uint32_t>(claim_stride), &err),
                  err));
  std::vector<int32_t> out;
  for (size_t k = 0; k < nodes.size(); ++k) {
    gr_claim_t claim;
    std::memcpy(&claim, &claim_bytes[k * claim_stride], sizeof claim);
    out.push_back(claim.verdict);
    for (size_t i = 0; i < padding; ++i) {
      if (claim_bytes[k * claim_stride + sizeof claim + i] == 0x7f) continue;
      return internal_error("claim writes past the struct that the host gave");
    }
  }
  return out;
}

Outcome claim_strides(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  CONFORM_ASSIGN(const Graph graph, many_nodes());
  CONFORM_ASSIGN(const BoundGraph bound, bind_graph(graph, {}));
  NodeViews views(bound);
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    if (bound.needs_kernel(k)) views.add(k);
  }
  CONFORM_ASSIGN(const std::vector<int32_t> whole, verdicts(*bench.tested, views.views(), 0));
  CONFORM_ASSIGN(const std::vector<int32_t> padded, verdicts(*bench.tested, views.views(), 24));
  for (size_t k = 0; k < whole.size(); ++k) {
    CONFORM_ASSIGN(const std::vector<int32_t> single,
                   verdicts(*bench.tested, {views.views()[k]}, 0));
    const std::string op = views.views()[k].op;
    if (single[0] != whole[k]) return fail(op + " is answered otherwise alone than in a batch");
    if (padded[k] != whole[k]) {
      return fail(op +
                  " is answered otherwise when the arrays' strides are larger than the structs");
    }
  }
  return pass();
}

Outcome unknown_operator(Context& context) {
  CONFORM_ASSIGN(const Bench bench, bench_of(context));
  gr_node_view_t node = {};
  node.struct_size = sizeof node;
  node.domain = "com.example";
  node.op = "Frobnicate";
  gr_claim_t claim = {};
  claim.struct_size = sizeof claim;
  gr_error_t err = {};
  const gr_backend_t* b = bench.tested->table();
  CONFORM_TRY(
      status_from(b->claim(b->self, &node, sizeof node, 1, &claim, sizeof claim, &err), err));
  if (claim.verdict != GR_CLAIM_NO) return fail("com.example.Frobnicate is claimed");
  if (claim.reason[0] == '\0') return fail("com.example.Frobnicate is refused without a reason");
  return pass();
}

}  // namespace

void add_memory_cases(std::vector<Case>* cases) {
  const auto add = [&](const char* id, const char* title, Outcome (*body)(Context&)) {
    cases->push_back({std::string("L3.") + id, 3, title, body, "L3.device"});
  };
  add("memory.alignment", "memory is aligned as device_info announces", alignment);
  add("memory.too_much", "too large an allocation is GR_OUT_OF_MEMORY", too_much_memory);
  add("memory.copy", "bytes come back as they went", copies);
  add("claim.strides", "a batch of claims is answered as each alone, whatever its strides",
      claim_strides);
  add("claim.unknown", "an unknown operator is refused with a reason", unknown_operator);
}

}  // namespace gradrack::conform
