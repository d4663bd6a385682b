// SPDX-License-Identifier: Apache-2.0
// What the matrix products of a training step cost: Product against oneDNN's matmul, for the shapes
// and layouts of three language models.
//
//   products [--threads N] [--config tiny|small|gpt2ish] [--dtype fp32|bf16] [--rounds N]
//
// For each product of forward (X W), input gradient (dY W^T) and weight gradient (X^T dY) the best
// of some runs, one line each, then the sums over a step. Both run in one process, turn by turn, so
// that another load on the machine meets both.
#include <omp.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <string>

#include "backends/cpu/product.hpp"

namespace gradrack::cpu {
namespace {

struct Model {
  const char* name;
  int64_t rows, width, hidden, vocabulary, layers;
};
constexpr Model kModels[] = {{"tiny", 2048, 256, 688, 512, 4},
                             {"small", 4096, 384, 1024, 512, 6},
                             {"gpt2ish", 1024, 512, 1368, 50304, 6}};

struct Case {
  const char* what;
  int64_t m, k, n;
  bool trans_a, trans_b;
  int64_t count;
};

std::vector<Case> cases(const Model& model) {
  std::vector<Case> all;
  const auto linear = [&](int64_t in, int64_t out, int64_t count) {
    all.push_back({"forward", model.rows, in, out, false, false, count});
    all.push_back({"dX", model.rows, out, in, false, true, count});
    all.push_back({"dW", in, model.rows, out, true, false, count});
  };
  linear(model.width, model.width, 4 * model.layers);
  linear(model.width, model.hidden, 2 * model.layers);
  linear(model.hidden, model.width, model.layers);
  all.push_back({"head", model.rows, model.width, model.vocabulary, false, true, 1});
  all.push_back({"head dX", model.rows, model.vocabulary, model.width, false, false, 1});
  all.push_back({"head dW", model.vocabulary, model.rows, model.width, true, false, 1});
  return all;
}

/// Seconds on the calling thread's own clock, which others on the machine do not move; with helpers
/// (`threads` > 1) on the wall's.
double now(int threads) {
  timespec t{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Best times of both, in turn.
std::pair<double, double> race(int threads, int rounds, const std::function<void()>& a,
                               const std::function<void()>& b) {
  double best_a = 1e9, best_b = 1e9;
  a();
  b();
  for (int k = 0; k < rounds; ++k) {
    double t = now(threads);
    a();
    best_a = std::min(best_a, now(threads) - t);
    t = now(threads);
    b();
    best_b = std::min(best_b, now(threads) - t);
  }
  return {best_a, best_b};
}

class Buffer {
 public:
  Buffer(int64_t count, bool narrow) : bytes_(static_cast<size_t>(count) * (narrow ? 2 : 4) + 64) {
    std::minstd_rand random(1);
    for (int64_t k = 0; k < count; ++k) {
      const float x = static_cast<float>(random() % 1000) / 1000.0f - 0.5f;
      uint32_t bits = 0;
      std::memcpy(&bits, &x, sizeof bits);
      if (narrow) {
        static_cast<uint16_t*>(data())[k] = static_cast<uint16_t>(bits >> 16);
      } else {
        static_cast<float*>(data())[k] = x;
      }
    }
  }
  void* data() {
    return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(bytes_.data()) + 63) / 64 * 64);
  }

 private:
  std::vector<char> bytes_;
};

std::function<void()> onednn(const Case& c, bool narrow, void* a, void* b, void* y) {
  using dnnl::memory;
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  const auto type = narrow ? memory::data_type::bf16 : memory::data_type::f32;
  const memory::desc da({c.m, c.k}, type, c.trans_a ? memory::dims{1, c.m} : memory::dims{c.k, 1});
  const memory::desc db({c.k, c.n}, type, c.trans_b ? memory::dims{1, c.k} : memory::dims{c.n, 1});
  const memory::desc dy({c.m, c.n}, type, memory::dims{c.n, 1});
  const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(da, db, dy), engine);
  const dnnl::matmul primitive(desc);
  const memory ma(da, engine, a), mb(db, engine, b), my(dy, engine, y);
  return [=] {
    dnnl::matmul(primitive).execute(
        stream, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, my}});
    stream.wait();
  };
}

void measure(const Model& model, bool narrow, int threads, int rounds) {
  Pool pool(threads);
  omp_set_num_threads(threads);
  double ours = 0, theirs = 0, flops = 0;
  for (const Case& c : cases(model)) {
    Buffer a(c.m * c.k, narrow), b(c.k * c.n, narrow), y(c.m * c.n, narrow);
    ProductShape shape;
    shape.narrow = narrow;
    shape.rows = c.m;
    const FactorLayout fa{narrow, c.trans_a ? 1 : c.k, c.trans_a ? c.m : 1};
    const FactorLayout fb{narrow, c.trans_b ? 1 : c.n, c.trans_b ? c.k : 1};
    shape.terms.push_back({c.k, fa, {fb}});
    shape.parts.push_back({c.n, narrow, c.n});
    const Product product(shape, threads);
    Buffer workspace(product.workspace_bytes() / 4 + 1, false);
    const void *pa = a.data(), *pb = b.data();
    void* py = y.data();
    const auto run = [&] { product.run(pool, {&pa, &pb, &py, nullptr}, workspace.data()); };
    const auto [own, peer] =
        race(threads, rounds, run, onednn(c, narrow, a.data(), b.data(), y.data()));
    const double work = 2e-9 * static_cast<double>(c.m * c.k * c.n);
    std::printf(
        "%-8s %s %-8s %6ld x %6ld x %6ld  own %8.3f ms %7.1f GF/s  onednn %8.3f ms %7.1f GF/s\n",
        model.name, narrow ? "bf16" : "fp32", c.what, static_cast<long>(c.m),
        static_cast<long>(c.k), static_cast<long>(c.n), own * 1e3, work / own, peer * 1e3,
        work / peer);
    ours += own * static_cast<double>(c.count);
    theirs += peer * static_cast<double>(c.count);
    flops += work * static_cast<double>(c.count);
  }
  std::printf("%-8s %s %d threads, a step: own %.1f ms (%.0f GF/s), onednn %.1f ms (%.0f GF/s)\n\n",
              model.name, narrow ? "bf16" : "fp32", threads, ours * 1e3, flops / ours, theirs * 1e3,
              flops / theirs);
}

int run(int count, char** arguments) {
  int threads = 2, rounds = 20;
  std::string config, dtype;
  for (int k = 1; k + 1 < count; k += 2) {
    const std::string name = arguments[k];
    if (name == "--threads") threads = std::atoi(arguments[k + 1]);
    if (name == "--rounds") rounds = std::atoi(arguments[k + 1]);
    if (name == "--config") config = arguments[k + 1];
    if (name == "--dtype") dtype = arguments[k + 1];
  }
  for (const Model& model : kModels) {
    if (!config.empty() && config != model.name) continue;
    if (dtype != "bf16") measure(model, false, threads, rounds);
    if (dtype != "fp32") measure(model, true, threads, rounds);
  }
  return 0;
}

}  // namespace
}  // namespace gradrack::cpu

int main(int count, char** arguments) { return gradrack::cpu::run(count, arguments); }
