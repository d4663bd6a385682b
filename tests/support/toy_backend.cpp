// SPDX-License-Identifier: Apache-2.0
// Kernels of the toy operators on the frame of host-memory backends: see toy_ops.hpp.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/emulated_device.hpp"
#include "tests/support/toy_ops.hpp"

namespace gradrack::toy {

namespace {

using host::Kernel;
using host::KernelEntry;
using host::NodeSpec;

const float* in_data(const DLTensor* tensor) { return static_cast<const float*>(tensor->data); }
float* out_data(DLTensor* tensor) { return static_cast<float*>(tensor->data); }

std::atomic<int64_t> runs_to_failure = 0;  // NOLINT: set by fail_kernel

/// A loop over the elements of the first output, as one function of all tensors.
class LoopKernel final : public Kernel {
 public:
  using Body = void (*)(const DLTensor* const* in, DLTensor* const* out, void* workspace,
                        int64_t count);
  LoopKernel(Body body, int64_t count, int in_place, int64_t workspace, bool sure)
      : body_(body), count_(count), in_place_(in_place), workspace_(workspace), sure_(sure) {}

  int64_t workspace_bytes() const override { return workspace_; }
  int in_place(int output) const override { return output == 0 ? in_place_ : -1; }
  bool cannot_fail() const override { return sure_; }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    const bool fails = !sure_ && runs_to_failure.load() > 0 && runs_to_failure.fetch_sub(1) == 1;
    if (body_ == nullptr || fails) return gr_fail(err, GR_OUT_OF_RANGE, "", "a toy failure");
    body_(in, out, workspace, count_);
    return GR_OK;
  }

 private:
  Body body_;
  int64_t count_;
  int in_place_;
  int64_t workspace_;
  bool sure_;
};

void run_add(const DLTensor* const* in, DLTensor* const* out, void*, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    out_data(out[0])[i] = in_data(in[0])[i] + in_data(in[1])[i];
  }
}

void run_mul(const DLTensor* const* in, DLTensor* const* out, void*, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    out_data(out[0])[i] = in_data(in[0])[i] * in_data(in[1])[i];
  }
}

void run_move(const DLTensor* const* in, DLTensor* const* out, void*, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    out_data(out[0])[i] = in_data(in[0])[i] - in_data(in[1])[i];
  }
}

void run_neg(const DLTensor* const* in, DLTensor* const* out, void*, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out_data(out[0])[i] = -in_data(in[0])[i];
}

void run_twice(const DLTensor* const* in, DLTensor* const* out, void* workspace, int64_t count) {
  auto* const scratch = static_cast<float*>(workspace);
  for (int64_t i = 0; i < count; ++i) scratch[i] = in_data(in[0])[i];
  for (int64_t i = 0; i < count; ++i) out_data(out[0])[i] = in_data(in[0])[i] + scratch[i];
}

void run_halves(const DLTensor* const* in, DLTensor* const* out, void*, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    out_data(out[0])[i] = in_data(in[0])[i] / 2;
    out_data(out[1])[i] = in_data(in[0])[i] / 4;
  }
}

void run_sum(const DLTensor* const* in, DLTensor* const* out, void*, int64_t) {
  int64_t count = 1;
  for (int32_t k = 0; k < in[0]->ndim; ++k) count *= in[0]->shape[k];
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(in_data(in[0])[i]);
  out_data(out[0])[0] = static_cast<float>(sum);
}

void run_product(const DLTensor* const* in, DLTensor* const* out, void*, int64_t) {
  const int64_t rows = in[0]->shape[0], inner = in[0]->shape[1], columns = in[1]->shape[1];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        sum += double{in_data(in[0])[i * inner + k]} * double{in_data(in[1])[k * columns + j]};
      }
      out_data(out[0])[i * columns + j] = static_cast<float>(sum);
    }
  }
}

KernelEntry make_entry(const std::string& op, LoopKernel::Body body, int in_place,
                       int64_t scratch_per_element, bool sure) {
  return {op, [](const NodeSpec&) { return std::string(); },
          [=](const NodeSpec& node) {
            const int64_t count = node.outputs[0].count;
            return std::make_unique<LoopKernel>(body, count, in_place, count * scratch_per_element,
                                                sure);
          }};
}

}  // namespace

void fail_kernel(int64_t run) { runs_to_failure = run; }

Backend::Backend(BackendOptions options) {
  host::KernelTable table;
  const auto offer = [&](const char* op, LoopKernel::Body body, int in_place = -1,
                         int64_t scratch = 0) {
    if (options.refused.count(op) > 0) return;
    table.add(make_entry(op, body, in_place, scratch, options.sure.count(op) > 0));
  };
  offer("Add", run_add, 0);
  offer("Mul", run_mul, 0);
  offer("Move", run_move, 0);
  offer("Neg", run_neg, 0);
  offer("Twice", run_twice, -1, 4);
  offer("Halves", run_halves);
  offer("Sum", run_sum);
  offer("Product", run_product);
  offer("Fail", nullptr);
  for (host::GroupEntry& group : options.groups) table.add_group(std::move(group));
  host::HostBackendConfig config;
  config.description = "toy";
  config.threaded = options.threaded;
  config.max_streams = options.max_streams;
  table_.struct_size = sizeof table_;
  gr_error_t err = {};
  EXPECT_EQ(
      emulated::make_backend(std::move(table), std::move(config), options.memory, &table_, &err),
      GR_OK);
  if (!options.concurrent) table_.flags &= ~uint32_t{GR_BACKEND_CONCURRENT};
  const gr_backend_t* const seen = options.wrap ? options.wrap(&table_) : &table_;
  auto device = Device::make(options.name, seen);
  EXPECT_TRUE(device.ok()) << device.status().message();
  device_ = std::move(*device);
}

Backend::~Backend() {
  device_.reset();
  table_.destroy(table_.self);
}

}  // namespace gradrack::toy
