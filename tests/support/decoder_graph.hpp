// SPDX-License-Identifier: Apache-2.0
// A small decoder with symbolic batch and time, its gradients, and plans of it: what tests and
// measurements of re-binding run.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/common/host_backend.hpp"
#include "core/autodiff/autodiff.hpp"
#include "core/exec/executor.hpp"
#include "core/graph/emitter.hpp"

namespace gradrack::toy {

struct DecoderOptions {
  int64_t layers = 2;
  int64_t dim = 8;
  int64_t heads = 2;
  int64_t vocab = 16;
  bool training = true;  // with gradients of all weights as outputs
};

class DecoderBuilder {
 public:
  explicit DecoderBuilder(DecoderOptions options) : options_(options), e_(graph_) {}

  Graph run() {
    Value tokens;
    tokens.source = Source::kInput;
    tokens.name = "tokens";
    tokens.type = {GR_INT64, {Dim::symbol("batch"), Dim::symbol("time")}};
    const ValueId input = *graph_.add_source(std::move(tokens));
    const ValueId table = weight("embed", {options_.vocab, options_.dim});
    ValueId x = e_.op("Gather", {table, input});
    for (int64_t k = 0; k < options_.layers; ++k) x = block("blocks." + std::to_string(k), x);
    const ValueId loss = e_.reduce_sum(e_.mul(x, x), {0, 1, 2}, false);
    EXPECT_TRUE(e_.status().ok()) << e_.status().message();
    EXPECT_TRUE(graph_.add_objective("loss", loss, e_.constant(GR_FLOAT32, 1)).ok());
    EXPECT_TRUE(graph_.add_output("last", x).ok());
    if (options_.training) differentiate_all();
    return std::move(graph_);
  }

 private:
  ValueId weight(const std::string& name, Shape shape) {
    Value value;
    value.source = Source::kParameter;
    value.name = name;
    value.type = {GR_FLOAT32, std::move(shape)};
    value.init = {GR_INIT_NORMAL, 0, 0, 0.3};
    weights_.push_back(name);
    return *graph_.add_source(std::move(value));
  }

  ValueId block(const std::string& name, ValueId x) {
    EXPECT_TRUE(graph_.push_stage(name).ok());
    const int64_t dim = options_.dim, heads = options_.heads;
    const auto split = [&](const char* part) {
      const ValueId y = e_.matmul(x, weight(name + part, {dim, dim}));
      return e_.transpose(e_.reshape(y, {0, 0, heads, dim / heads}), {0, 2, 1, 3});
    };
    const ValueId q = split(".q"), k = split(".k"), v = split(".v");
    const ValueId seen = e_.op("Attention", {q, k, v}, {{"is_causal", int64_t{1}}});
    x = e_.add(x, e_.reshape(e_.transpose(seen, {0, 2, 1, 3}), {0, 0, dim}));
    const ValueId up = e_.op("Swish", {e_.matmul(x, weight(name + ".up", {dim, 2 * dim}))});
    x = e_.add(x, e_.matmul(up, weight(name + ".down", {2 * dim, dim})));
    EXPECT_TRUE(graph_.pop_stage().ok());
    return x;
  }

  void differentiate_all() {
    std::vector<ValueId> wrt;
    for (const std::string& name : weights_) wrt.push_back(graph_.find_source(name));
    auto gradients = differentiate(graph_, wrt);
    ASSERT_TRUE(gradients.ok()) << gradients.status().message();
    for (size_t k = 0; k < weights_.size(); ++k) {
      ASSERT_TRUE(graph_.add_output("grad." + weights_[k], gradients->of[k]).ok());
    }
  }

  DecoderOptions options_;
  Graph graph_;
  Emitter e_;
  std::vector<std::string> weights_;
};

inline Graph decoder_graph(DecoderOptions options = {}) { return DecoderBuilder(options).run(); }

/// A host backend over a table of kernels, with its C table.
class HostBackend {
 public:
  explicit HostBackend(host::KernelTable table) {
    table_.struct_size = sizeof table_;
    gr_error_t err = {};
    host::HostBackendConfig config;
    config.description = "for tests";
    config.max_streams = 2;
    EXPECT_EQ(host::make_host_backend(std::move(table), std::move(config), &table_, &err), GR_OK);
  }
  ~HostBackend() { table_.destroy(table_.self); }
  HostBackend(const HostBackend&) = delete;
  HostBackend& operator=(const HostBackend&) = delete;
  gr_backend_t* table() { return &table_; }

 private:
  gr_backend_t table_ = {};
};

/// The bytes of every output after one step on tokens that follow from their place alone.
inline std::vector<std::byte> run_decoder(std::shared_ptr<const Plan> plan, const Graph& graph,
                                          Device* device) {
  std::vector<std::byte> bytes;
  Store store(device);
  EXPECT_TRUE(store.declare_sources(graph, 7).ok());
  EXPECT_TRUE(store.allocate().ok());
  auto executor = Executor::make(plan, &store);
  EXPECT_TRUE(executor.ok()) << executor.status().message();
  if (!executor.ok()) return bytes;
  DLTensor* const tokens = (*executor)->tensor(*(*executor)->input("tokens"));
  for (int64_t k = 0; k < tokens->shape[0] * tokens->shape[1]; ++k) {
    static_cast<int64_t*>(tokens->data)[k] = (k * k + 3 * k) % 16;
  }
  const Status status = (*executor)->run();
  EXPECT_TRUE(status.ok()) << status.message();
  for (const PlanPort& port : plan->outputs) {
    const DLTensor* const out = (*executor)->tensor(*(*executor)->output(port.name));
    int64_t count = 4;
    for (int32_t k = 0; k < out->ndim; ++k) count *= out->shape[k];
    const auto* const from = static_cast<const std::byte*>(out->data);
    bytes.insert(bytes.end(), from, from + count);
  }
  return bytes;
}

}  // namespace gradrack::toy
