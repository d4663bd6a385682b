// SPDX-License-Identifier: Apache-2.0
// Planning, batches, steps, state: see backend_training.hpp.
#include "sdk/conformance/backend_training.hpp"

#include <cstring>
#include <numeric>
#include <random>

#include "sdk/conformance/host_array.hpp"

namespace gradrack::conform {
namespace {

/// Program order, streams at random.
int32_t spread(void* self, const gr_schedule_request_t* request, uint32_t* order, uint32_t* stream,
               gr_error_t*) {
  std::mt19937 random(*static_cast<uint32_t*>(self));
  std::iota(order, order + request->task_count, 0u);
  for (uint32_t t = 0; t < request->task_count; ++t) stream[t] = random() % request->streams;
  return GR_OK;
}

int32_t wanted_streams(void* self, uint32_t* out, gr_error_t*) {
  *out = *static_cast<uint32_t*>(self);
  return GR_OK;
}

}  // namespace

Result<std::unique_ptr<TinyRun>> TinyRun::make(const std::vector<Device*>& chain, uint64_t seed,
                                               uint32_t streams) {
  std::unique_ptr<TinyRun> run(new TinyRun(seed));
  GR_ASSIGN(run->graph_, tiny_step_graph(run->shape_));
  gr_scheduler_t scheduler = {};
  scheduler.struct_size = sizeof scheduler;
  scheduler.self = &streams;
  scheduler.streams = wanted_streams;
  scheduler.schedule = spread;
  PlanRequest request;
  request.graph = &run->graph_;
  request.devices = chain;
  request.fallback = Fallback::kAllow;
  request.scheduler_name = "conformance";
  request.scheduler = streams > 1 ? &scheduler : nullptr;
  GR_ASSIGN(const std::shared_ptr<const Plan> plan, make_plan(request));
  run->store_ = std::make_unique<Store>(chain.front());
  GR_TRY(run->store_->declare_sources(run->graph_, seed));
  GR_TRY(run->store_->allocate());
  GR_ASSIGN(run->executor_, Executor::make(plan, run->store_.get()));
  return run;
}

Status TinyRun::write_numbers(const char* name, const std::vector<double>& numbers) {
  GR_ASSIGN(const TensorHandle handle, executor_->input(name));
  DLTensor& tensor = *executor_->tensor(handle);
  const HostArray content(gr_dtype_of(tensor.dtype), {static_cast<int64_t>(numbers.size())},
                          numbers);
  std::memcpy(tensor.data, content.bytes.data(), content.bytes.size());
  return {};
}

/// Tokens that follow a rule, so that there is something to learn; images that show their class.
Status TinyRun::write_batch(int64_t number) {
  std::mt19937_64 random(seed_ * 1000003 + static_cast<uint64_t>(number));
  std::vector<double> tokens, labels, images, classes;
  for (int64_t b = 0; b < shape_.batch; ++b) {
    auto token = static_cast<int64_t>(random() % static_cast<uint64_t>(shape_.vocabulary));
    for (int64_t t = 0; t < shape_.time; ++t) {
      tokens.push_back(static_cast<double>(token));
      token = (3 * token + 1) % shape_.vocabulary;
      labels.push_back(static_cast<double>(token));
    }
    const auto which = static_cast<int64_t>(random() % static_cast<uint64_t>(shape_.classes));
    classes.push_back(static_cast<double>(which));
    for (int64_t p = 0; p < shape_.image * shape_.image; ++p) {
      const double noise = static_cast<double>(random() % 1000) / 1000.0 - 0.5;
      images.push_back(noise + (p / shape_.image == which ? 1.0 : 0.0));
    }
  }
  GR_TRY(write_numbers("tokens", tokens));
  GR_TRY(write_numbers("labels", labels));
  GR_TRY(write_numbers("images", images));
  return write_numbers("classes", classes);
}

Result<StepNumbers> TinyRun::step(int64_t number) {
  GR_TRY(write_batch(number));
  GR_ASSIGN(const TensorHandle rate, executor_->scalar("lr"));
  GR_ASSIGN(const TensorHandle counter, executor_->scalar("step"));
  GR_ASSIGN(const TensorHandle rng, executor_->scalar("rng"));
  GR_TRY(executor_->set_scalar(rate, 3e-3));
  GR_TRY(executor_->set_scalar(counter, static_cast<double>(number)));
  const int64_t draw[] = {static_cast<int64_t>(seed_), number, 0};
  GR_TRY(executor_->set_scalar(rng, std::span<const int64_t>(draw)));
  GR_TRY(executor_->run());
  GR_ASSIGN(const TensorHandle loss, executor_->output("loss"));
  GR_ASSIGN(const TensorHandle norm, executor_->output("grad_norm"));
  StepNumbers out;
  GR_ASSIGN(out.loss, executor_->read_scalar(loss));
  GR_ASSIGN(out.grad_norm, executor_->read_scalar(norm));
  return out;
}

Result<std::vector<StepNumbers>> TinyRun::steps(int64_t first, int64_t last) {
  std::vector<StepNumbers> out;
  for (int64_t number = first; number <= last; ++number) {
    GR_ASSIGN(const StepNumbers numbers, step(number));
    out.push_back(numbers);
  }
  return out;
}

Result<TinyState> TinyRun::state() const {
  TinyState out;
  for (const StoredTensor& tensor : store_->tensors()) {
    std::vector<std::byte>& content = out[tensor.name];
    content.resize(static_cast<size_t>(tensor.bytes));
    GR_TRY(store_->read(tensor.name, content));
  }
  return out;
}

Status TinyRun::restore(const TinyState& state) {
  for (const auto& [name, content] : state) GR_TRY(store_->write(name, content));
  return {};
}

}  // namespace gradrack::conform
