// SPDX-License-Identifier: Apache-2.0
// Times Attention, gradrack.AttentionGrad and RotaryEmbedding of the cpu backend alone, on the
// shapes of language models with packed heads and a causal mask.
//
//   attention [threads [repeats [batch]]]    batch: instead of the shapes' own
//
// One line a shape and dtype: least and median milliseconds of a call, and the least that its
// threads were on a processor, summed. attention_twin.py prints PyTorch's for the same shapes. Not
// a test: figures of a busy machine hold nothing to a limit.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/kernels.hpp"
#include "gradrack/bfloat16.hpp"

namespace {

using namespace gradrack;

struct Shape {
  const char* name;
  int64_t batch, length, heads, size;
};

struct Tensor {
  Tensor(gr_dtype_t type, std::vector<int64_t> shape) : dtype(type), dims(std::move(shape)) {
    strides = host::row_major_strides(dims);
    const int64_t count = host::product(dims);
    bytes.resize(static_cast<size_t>(count * gr_dtype_bytes(type)) + 64);
    void* start = bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (int64_t k = 0; k < count; ++k) {
      const float x = normal(random);
      if (type == GR_FLOAT32) static_cast<float*>(start)[k] = x;
      if (type == GR_BFLOAT16) static_cast<uint16_t*>(start)[k] = sdk::to_bfloat16(x);
    }
    tensor.data = start;
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(dims.size());
    tensor.dtype = gr_dl_dtype(type);
    tensor.shape = dims.data();
    tensor.strides = strides.data();
  }
  gr_value_type_t type(gr_value_t id) const {
    return {id, dtype, static_cast<uint32_t>(dims.size()), 0, dims.data(), nullptr};
  }

  gr_dtype_t dtype;
  std::vector<int64_t> dims, strides;
  std::vector<char> bytes;
  DLTensor tensor = {};
};

struct Call {
  const char* domain;
  const char* op;
  std::vector<gr_attr_t> attrs;
  std::vector<Tensor> in, out;
};

gr_attr_t integer(const char* name, int64_t value) {
  gr_attr_t a = {};
  a.name = name;
  a.type = GR_ATTR_INT;
  a.i = value;
  return a;
}

std::vector<Tensor> several(size_t count, gr_dtype_t dtype, const std::vector<int64_t>& dims) {
  std::vector<Tensor> out;
  for (size_t k = 0; k < count; ++k) out.emplace_back(dtype, dims);
  return out;
}

std::vector<Call> calls(const Shape& s, gr_dtype_t dtype) {
  const std::vector<int64_t> x{s.batch, s.length, s.heads * s.size},
      angles{1, s.length, s.size / 2};
  const std::vector<gr_attr_t> heads{integer("is_causal", 1), integer("q_num_heads", s.heads),
                                     integer("kv_num_heads", s.heads)};
  std::vector<Call> out;
  out.push_back({"", "Attention", heads, several(3, dtype, x), several(1, dtype, x)});
  out.push_back({"gradrack", "AttentionGrad", heads, several(4, dtype, x), several(3, dtype, x)});
  out.push_back({"",
                 "RotaryEmbedding",
                 {integer("num_heads", s.heads)},
                 several(1, dtype, x),
                 several(1, dtype, x)});
  for (int k = 0; k < 2; ++k) out.back().in.emplace_back(dtype, angles);
  return out;
}

std::unique_ptr<host::Kernel> make(const host::KernelTable& table, const Call& call) {
  std::vector<gr_value_type_t> in, out;
  gr_value_t id = 0;
  for (const Tensor& t : call.in) in.push_back(t.type(id++));
  for (const Tensor& t : call.out) out.push_back(t.type(id++));
  gr_node_view_t view = {};
  view.struct_size = sizeof view;
  view.domain = call.domain;
  view.op = call.op;
  view.inputs = in.data();
  view.outputs = out.data();
  view.attrs = call.attrs.data();
  view.input_count = static_cast<uint32_t>(in.size());
  view.output_count = static_cast<uint32_t>(out.size());
  view.attr_count = static_cast<uint32_t>(call.attrs.size());
  const host::NodeSpec node(view);
  std::string reason;
  const host::KernelEntry* entry = table.match(node, &reason);
  if (entry == nullptr) {
    (void)std::fprintf(stderr, "%s is not claimed: %s\n", call.op, reason.c_str());
    std::exit(1);
  }
  return entry->make(node);
}

struct Times {
  std::vector<double> wall, on_processor;  // milliseconds, sorted
};

double processor_ms() {
  timespec now = {};
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/// The first two repeats are not counted.
Times measure(const host::Kernel& kernel, Call* call, int repeats) {
  std::vector<const DLTensor*> in;
  std::vector<DLTensor*> out;
  for (Tensor& t : call->in) in.push_back(&t.tensor);
  for (Tensor& t : call->out) out.push_back(&t.tensor);
  Tensor workspace(GR_UINT8, {kernel.workspace_bytes() + 1});
  Times times;
  for (int k = -2; k < repeats; ++k) {
    gr_error_t err = {};
    const double before = processor_ms();
    const auto begin = std::chrono::steady_clock::now();
    const int32_t code = kernel.run(in.data(), out.data(), workspace.tensor.data, &err);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    if (code != GR_OK) {
      (void)std::fprintf(stderr, "%s failed: %s\n", call->op, err.message);
      std::exit(1);
    }
    if (k < 0) continue;
    times.wall.push_back(took.count());
    times.on_processor.push_back(processor_ms() - before);
  }
  for (auto* ms : {&times.wall, &times.on_processor}) std::sort(ms->begin(), ms->end());
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2,
            repeats = argc > 2 ? std::atoi(argv[2]) : 9;
  const int64_t batch = argc > 3 ? std::atoi(argv[3]) : 0;
  if (threads < 1 || repeats < 1 || batch < 0) {
    (void)std::fprintf(stderr, "usage: attention [threads [repeats [batch]]], each at least 1\n");
    return 2;
  }
  const cpu::Context context(threads);
  host::KernelTable table;
  cpu::add_all_kernels(table, context);
  std::printf("%d threads, %s; milliseconds a call, least and median of %d, least on processors\n",
              threads, context.loops.name, repeats);
  for (Shape s : std::vector<Shape>{{"tiny", 16, 128, 8, 32},
                                    {"small", 16, 256, 6, 64},
                                    {"gpt2ish", 4, 256, 8, 64},
                                    {"long512", 4, 512, 8, 64},
                                    {"long2048", 1, 2048, 8, 64}}) {
    if (batch > 0) s.batch = batch;
    for (const gr_dtype_t dtype : {GR_FLOAT32, GR_BFLOAT16}) {
      for (Call& call : calls(s, dtype)) {
        const auto kernel = make(table, call);
        const Times ms = measure(*kernel, &call, repeats);
        std::printf("%-9s %-8s %-16s %8.2f %8.2f %8.2f\n", s.name,
                    dtype == GR_FLOAT32 ? "float32" : "bfloat16", call.op, ms.wall.front(),
                    ms.wall[ms.wall.size() / 2], ms.on_processor.front());
      }
    }
  }
  return 0;
}
