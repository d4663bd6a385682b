// SPDX-License-Identifier: Apache-2.0
// The update of AdamW against the machine's memory.
//
//     update [ELEMENTS [THREADS]]
//
// In turns: a copy of one array to another; a pass over the update's own arrays that adds one to
// the three others, which reads and writes what the update does and computes nothing else; and the
// update of so many parameters with the gradient's factor in the same pass (group `adamw` of the
// cpu backend). Each by all threads, best of all turns, because another program on a processor
// takes its share of the memory. Bytes are those that must be read and written: 2 x 4 an element of
// the copy, 4 x 4 and 3 x 4 of the other two. (A copy reads what it is about to write, too, where
// its stores do not pass the caches, so it alone would be too low a measure.) Exits 1 when the
// update reaches less than 80 % of the faster of the two; see update_side_by_side for PyTorch in
// the same turns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backends/common/group.hpp"
#include "backends/common/memory.hpp"
#include "backends/cpu/kernels.hpp"

namespace gradrack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTurns = 12;
constexpr double kLeastShare = 0.8;

/// A dense float32 array, or one number of float64 or bool.
struct Array {
  Array(gr_value_t id, gr_dtype_t dtype, int64_t count)
      : id_(id),
        dims_{count},
        strides_{1},
        bytes_(static_cast<size_t>(count * gr_dtype_bytes(dtype))),
        memory_(host::allocate_block(static_cast<int64_t>(bytes_))) {
    if (memory_ == nullptr) std::exit(2);
    std::memset(memory_, 0, bytes_);
    tensor = {memory_, {kDLCPU, 0}, 1, gr_dl_dtype(dtype), dims_, strides_, 0};
    type = {id_, dtype, count == 1 ? 0u : 1u, 0, dims_, nullptr};
  }
  ~Array() { host::release_block(memory_); }
  Array(const Array&) = delete;
  template <class T>
  Array& fill(T value) {
    auto* data = static_cast<T*>(memory_);
    std::fill(data, data + bytes_ / sizeof(T), value);
    return *this;
  }

 private:
  gr_value_t id_;
  int64_t dims_[1], strides_[1];
  size_t bytes_;
  void* memory_;

 public:
  DLTensor tensor;
  gr_value_type_t type;
};

gr_node_view_t node(const char* domain, const char* op, const std::vector<gr_value_type_t>& in,
                    const std::vector<gr_value_type_t>& out) {
  gr_node_view_t view = {};
  view.struct_size = sizeof view;
  view.domain = domain;
  view.op = op;
  view.inputs = in.data();
  view.outputs = out.data();
  view.input_count = static_cast<uint32_t>(in.size());
  view.output_count = static_cast<uint32_t>(out.size());
  return view;
}

float* floats(const Array& array) { return static_cast<float*>(array.tensor.data); }

// The update's traffic without its arithmetic.
void add_to_three(const float* __restrict g, float* __restrict p, float* __restrict m,
                  float* __restrict v, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    p[k] += g[k];
    m[k] += g[k];
    v[k] += g[k];
  }
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int run(int64_t count, int threads) {
  const cpu::Context context(threads);
  host::KernelTable table;
  cpu::add_update_groups(table, context);
  Array p(0, GR_FLOAT32, count), g(1, GR_FLOAT32, count), m(2, GR_FLOAT32, count);
  Array v(3, GR_FLOAT32, count), lr(4, GR_FLOAT64, 1), step(5, GR_FLOAT64, 1);
  Array factor(6, GR_FLOAT32, 1);
  p.fill(0.5f), g.fill(0.01f), v.fill(1e-4f), lr.fill(1e-3), step.fill(3.0), factor.fill(0.9f);
  gr_value_type_t scaled = p.type, p1 = p.type, m1 = p.type, v1 = p.type;
  scaled.id = 7, p1.id = 8, m1.id = 9, v1.id = 10;
  const std::vector<gr_value_type_t> mul_in = {g.type, factor.type}, mul_out = {scaled};
  const std::vector<gr_value_type_t> in = {p.type, scaled, m.type, v.type, lr.type, step.type};
  const std::vector<gr_value_type_t> out = {p1, m1, v1};
  host::GroupSpec group;
  group.nodes.emplace_back(node("", "Mul", mul_in, mul_out));
  group.nodes.emplace_back(node("gradrack", "AdamW", in, out));
  for (const Array* a : {&p, &g, &m, &v, &lr, &step, &factor}) group.inputs.emplace_back(a->type);
  for (const gr_value_type_t& type : out) group.outputs.emplace_back(type);
  const host::GroupEntry& entry = *table.groups().back();
  const std::string reason = entry.claim(group);
  if (!reason.empty()) return std::fprintf(stderr, "%s\n", reason.c_str()), 2;
  const auto kernel = entry.make(group);
  const DLTensor* ins[] = {&p.tensor,  &g.tensor,    &m.tensor,     &v.tensor,
                           &lr.tensor, &step.tensor, &factor.tensor};
  DLTensor* outs[] = {&p.tensor, &m.tensor, &v.tensor};

  double copy = 1e9, pass = 1e9, update = 1e9;
  for (int turn = 0; turn < kTurns; ++turn) {
    auto start = Clock::now();
    context.pool.parallel(count, 1 << 16, [&](int64_t begin, int64_t end) {
      std::memcpy(floats(g) + begin, floats(v) + begin,
                  static_cast<size_t>(end - begin) * sizeof(float));
    });
    copy = std::min(copy, seconds_since(start));
    start = Clock::now();
    context.pool.parallel(count, 1 << 16, [&](int64_t begin, int64_t end) {
      add_to_three(floats(g) + begin, floats(p) + begin, floats(m) + begin, floats(v) + begin,
                   end - begin);
    });
    pass = std::min(pass, seconds_since(start));
    start = Clock::now();
    gr_error_t err = {};
    if (kernel->run(ins, outs, nullptr, &err) != GR_OK) return 2;
    update = std::min(update, seconds_since(start));
  }
  const double n = static_cast<double>(count), giga = 1e-9;
  const double copied = 8 * n / copy * giga, passed = 28 * n / pass * giga;
  const double updated = 28 * n / update * giga, most = std::max(copied, passed);
  std::printf(
      "%.0f parameters, %d threads: copy %.2f GB/s, same traffic %.2f GB/s, "
      "AdamW %.2f ms, %.2f GB/s, %.0f %%\n",
      n, threads, copied, passed, update * 1e3, updated, 100 * updated / most);
  return updated >= kLeastShare * most ? 0 : 1;
}

}  // namespace
}  // namespace gradrack

int main(int argc, char** argv) {
  const int64_t count = argc > 1 ? std::atoll(argv[1]) : 50'000'000;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  if (count <= 1 || threads < 1) return std::fprintf(stderr, "update [ELEMENTS [THREADS]]\n"), 2;
  return gradrack::run(count, threads);
}
