// SPDX-License-Identifier: Apache-2.0
// See toy_run.hpp.
#include "tests/support/toy_run.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace gradrack::toy {

namespace {

int64_t element_count(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t k = 0; k < tensor.ndim; ++k) count *= tensor.shape[k];
  return count;
}

uint64_t fold(uint64_t hash, const std::vector<float>& numbers) {
  for (const float number : numbers) {
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    hash = (hash ^ bits) * UINT64_C(0x100000001b3);
  }
  return hash;
}

}  // namespace

std::shared_ptr<const Plan> planned(const Graph& graph, Backend& backend, PlanRequest request) {
  request.graph = &graph;
  request.devices.insert(request.devices.begin(), backend.device());
  auto made = make_plan(request);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

ToyRun::ToyRun(const Graph& graph, Backend& backend, PlanRequest request, ExecutorOptions options)
    : ToyRun(graph, backend, planned(graph, backend, std::move(request)), std::move(options)) {}

ToyRun::ToyRun(const Graph& graph, Backend& backend, std::shared_ptr<const Plan> made,
               ExecutorOptions options)
    : plan(std::move(made)) {
  store = std::make_unique<Store>(backend.device());
  const Status declared = store->declare_sources(graph, 1);
  EXPECT_TRUE(declared.ok()) << declared.message();
  const Status allocated = store->allocate();
  EXPECT_TRUE(allocated.ok()) << allocated.message();
  auto exec = Executor::make(plan, store.get(), std::move(options));
  EXPECT_TRUE(exec.ok()) << exec.status().message();
  executor = std::move(*exec);
}

void ToyRun::set_input(const std::string& name, const std::vector<float>& numbers) {
  auto handle = executor->input(name);
  ASSERT_TRUE(handle.ok()) << handle.status().message();
  DLTensor* const tensor = executor->tensor(*handle);
  ASSERT_EQ(element_count(*tensor), static_cast<int64_t>(numbers.size()));
  std::memcpy(tensor->data, numbers.data(), numbers.size() * sizeof(float));
}

std::vector<float> ToyRun::output(const std::string& name) {
  auto handle = executor->output(name);
  EXPECT_TRUE(handle.ok()) << handle.status().message();
  const DLTensor* const tensor = executor->tensor(*handle);
  const auto* const data = static_cast<const float*>(tensor->data);
  return std::vector<float>(data, data + element_count(*tensor));
}

void ToyRun::set_stored(const std::string& name, const std::vector<float>& numbers) {
  const Status status = store->write(name, std::as_bytes(std::span(numbers)));
  ASSERT_TRUE(status.ok()) << status.message();
}

std::vector<float> ToyRun::stored(const std::string& name) {
  const StoredTensor* const tensor = store->find(name);
  EXPECT_NE(tensor, nullptr) << name;
  std::vector<float> numbers(static_cast<size_t>(tensor->bytes) / sizeof(float));
  const Status status = store->read(name, std::as_writable_bytes(std::span(numbers)));
  EXPECT_TRUE(status.ok()) << status.message();
  return numbers;
}

void ToyRun::step() {
  const Status status = executor->run();
  ASSERT_TRUE(status.ok()) << status.message();
}

uint64_t ToyRun::hash() {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (const PlanPort& port : plan->outputs) hash = fold(hash, output(port.name));
  for (const StoredTensor& tensor : store->tensors()) hash = fold(hash, stored(tensor.name));
  return hash;
}

uint64_t ToyRun::hash_after_steps() {
  for (int step = 0; step < 3; ++step) {
    std::vector<float> x(16);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * float(i) * float(step + 1);
    set_input("x", x);
    this->step();
  }
  return hash();
}

Graph wide_graph() {
  Builder b;
  const ValueId x = b.input("x", {4, 4});
  std::vector<ValueId> ends;
  for (int k = 0; k < 6; ++k) {
    const std::string name = "w" + std::to_string(k);
    const ValueId w = b.parameter(name, {4, 4}, 0.25 * (k + 1));
    const auto halves = b.multi("Halves", {b.op("Product", {x, w})}, 2);
    const ValueId y = b.op("Add", {b.op("Twice", {halves[0]}), b.op("Poly", {halves[1]})});
    b.write(w, b.op("Move", {w, b.op("Neg", {y})}));
    ends.push_back(k == 0 ? y : b.op("Add", {ends.back(), y}));
  }
  const ValueId a = b.parameter("a", {4, 4}, 1), c = b.parameter("c", {4, 4}, 2);
  b.write(a, c);
  b.write(c, a);
  b.output("last", ends.back());
  b.output("loss", b.op("Sum", {ends.back()}));
  return std::move(b.graph);
}

void expect_sound(const Plan& plan) {
  const Status proof = check_happens_before(plan.table, plan.schedule, plan.accesses);
  EXPECT_TRUE(proof.ok()) << proof.message();
}

}  // namespace gradrack::toy
