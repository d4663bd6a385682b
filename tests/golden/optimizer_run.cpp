// SPDX-License-Identifier: Apache-2.0
// One parameter under one optimizer: see optimizer_run.hpp.
#include "tests/golden/optimizer_run.hpp"

#include <cstring>
#include <map>

#include "core/graph/emitter.hpp"
#include "core/optim/update.hpp"
#include "core/plan/plan.hpp"

namespace gradrack::testing {

namespace {

/// The library that holds an optimizer.
std::string library_of(const std::string& name) {
  return "gradrack_optimizer_" + (name == "muon_plus" ? "muon" : name);
}

const gr_factory_t* factory_of(const std::string& name) {
  return load_factory(library_of(name), "optimizer", name.c_str());
}

Result<ValueId> add_source(Graph& graph, Source kind, const char* name, Type type, gr_init_t init) {
  Value value;
  value.source = kind;
  value.name = name;
  value.type = std::move(type);
  value.init = init;
  return graph.add_source(std::move(value));
}

std::vector<std::byte> to_bytes(const std::vector<double>& numbers, gr_dtype_t dtype) {
  std::vector<std::byte> bytes(numbers.size() * static_cast<size_t>(gr_dtype_bytes(dtype)));
  const std::vector<float> narrow(numbers.begin(), numbers.end());
  const void* from = dtype == GR_FLOAT64 ? static_cast<const void*>(numbers.data()) : narrow.data();
  std::memcpy(bytes.data(), from, bytes.size());
  return bytes;
}

std::vector<double> to_doubles(const std::vector<std::byte>& bytes, gr_dtype_t dtype) {
  std::vector<double> numbers(bytes.size() / static_cast<size_t>(gr_dtype_bytes(dtype)));
  if (dtype == GR_FLOAT64) {
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  std::vector<float> narrow(numbers.size());
  std::memcpy(narrow.data(), bytes.data(), bytes.size());
  return {narrow.begin(), narrow.end()};
}

}  // namespace

OptimizerRun::OptimizerRun(const OptimizerCase& c)
    : optimizer_(std::make_unique<Instance<gr_optimizer_t>>(factory_of(c.optimizer), c.options)),
      backend_(std::make_unique<Instance<gr_backend_t>>(
          load_factory("reference", "backend", "reference"), OptionTexts{})),
      dtype_(c.dtype) {
  EXPECT_EQ(optimizer_->status(), GR_OK) << optimizer_->message();
  for (const auto& [name, options] : c.wrappers) {
    wrappers_.push_back(std::make_unique<Instance<gr_optimizer_t>>(factory_of(name), options));
    EXPECT_EQ(wrappers_.back()->status(), GR_OK) << wrappers_.back()->message();
  }
  status_ = make(c);
}

Status OptimizerRun::make(const OptimizerCase& c) {
  Graph graph;
  const Type type{c.dtype, Shape(c.dims.begin(), c.dims.end())}, scalar{GR_FLOAT64, {}};
  GR_TRY(add_source(graph, Source::kParameter, "w", type, c.init).status());
  GR_ASSIGN(const ValueId g, add_source(graph, Source::kInput, "g", type, {}));
  GR_TRY(add_source(graph, Source::kScalar, "lr.0", scalar, {}).status());
  GR_TRY(add_source(graph, Source::kScalar, kStepNumber, scalar, {}).status());
  Emitter e(graph);
  const ValueId ok = e.op("Greater", {e.constant(GR_FLOAT64, 1), e.constant(GR_FLOAT64, 0)});
  GR_TRY(e.status());
  StepGraphRequest request;
  request.parameters = {{"w"}};
  GroupUpdate group{optimizer_->operator->(), c.optimizer, "lr.0", {"w"}, {}, c.ema_decay};
  for (const auto& wrapper : wrappers_) group.wrappers.push_back(wrapper->operator->());
  request.groups = {group};
  GR_TRY(add_optimizer_updates(request, graph, {g}, {GR_NO_VALUE}, ok));

  GR_ASSIGN(device_, Device::make("reference", backend_->operator->()));
  PlanRequest plan;
  plan.graph = &graph;
  plan.devices = {device_.get()};
  GR_ASSIGN(const std::shared_ptr<const Plan> made, make_plan(plan));
  store_ = std::make_unique<Store>(device_.get());
  GR_TRY(store_->declare_sources(graph, 1));
  GR_TRY(store_->allocate());
  GR_ASSIGN(executor_, Executor::make(made, store_.get()));
  return {};
}

void OptimizerRun::set(const std::vector<double>& parameter) {
  ASSERT_TRUE(status_.ok()) << status_.message();
  for (const StoredTensor& tensor : store_->tensors()) {
    if (tensor.init_name != "w") continue;
    const Status status = store_->write(tensor.name, to_bytes(parameter, dtype_));
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

std::vector<double> OptimizerRun::step(const std::vector<double>& gradient, double lr) {
  const auto run = [&]() -> Status {
    GR_TRY(status_);
    GR_ASSIGN(const TensorHandle g, executor_->input("g"));
    const std::vector<std::byte> bytes = to_bytes(gradient, dtype_);
    std::memcpy(executor_->tensor(g)->data, bytes.data(), bytes.size());
    // A formula may leave a scalar unread.
    const auto set = [&](const char* name, double value) -> Status {
      const Result<TensorHandle> handle = executor_->scalar(name);
      return handle.ok() ? executor_->set_scalar(*handle, value) : Status();
    };
    GR_TRY(set("lr.0", lr));
    GR_TRY(set(kStepNumber, static_cast<double>(++steps_)));
    return executor_->run();
  };
  const Status status = run();
  EXPECT_TRUE(status.ok()) << status.message();
  return read("w");
}

std::vector<double> OptimizerRun::read(const std::string& name) const {
  const StoredTensor* tensor = store_ == nullptr ? nullptr : store_->find(name);
  EXPECT_NE(tensor, nullptr) << name;
  if (tensor == nullptr) return {};
  std::vector<std::byte> bytes(static_cast<size_t>(tensor->bytes));
  EXPECT_TRUE(store_->read(name, bytes).ok());
  return to_doubles(bytes, tensor->dtype);
}

}  // namespace gradrack::testing
