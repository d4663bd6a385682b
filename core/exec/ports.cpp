// SPDX-License-Identifier: Apache-2.0
// The executor's named ports: what the host writes before a run and reads after it.
#include <fmt/format.h>

#include "core/base/text.hpp"
#include "core/device/convert.hpp"
#include "core/exec/executor.hpp"

namespace gradrack {

namespace {

template <typename Ports>
Status no_port(const char* kind, std::string_view name, const Ports& ports) {
  std::vector<std::string> names;
  for (const auto& port : ports) names.push_back(port.name);
  return not_found(fmt::format("this plan has no {} '{}'{}; it has: {}", kind, name,
                               did_you_mean(name, names), names.empty() ? "none" : join(names)));
}

Result<TensorHandle> find_port(const char* kind, std::string_view name,
                               const std::vector<PlanPort>& ports) {
  for (const PlanPort& port : ports) {
    if (port.name == name) return TensorHandle{port.tensor};
  }
  return no_port(kind, name, ports);
}

int64_t element_count(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t k = 0; k < tensor.ndim; ++k) count *= tensor.shape[k];
  return count;
}

}  // namespace

Result<TensorHandle> Executor::input(std::string_view name) const {
  return find_port("input", name, plan_->inputs);
}

Result<TensorHandle> Executor::scalar(std::string_view name) const {
  return find_port("scalar", name, plan_->scalars);
}

Result<TensorHandle> Executor::output(std::string_view name) const {
  return find_port("output", name, plan_->outputs);
}

Result<TensorHandle> Executor::objective_sum(std::string_view name) const {
  for (const PlanObjective& o : plan_->objectives) {
    if (o.name == name) return TensorHandle{o.sum};
  }
  return no_port("objective", name, plan_->objectives);
}

Result<TensorHandle> Executor::objective_count(std::string_view name) const {
  for (const PlanObjective& o : plan_->objectives) {
    if (o.name == name) return TensorHandle{o.count};
  }
  return no_port("objective", name, plan_->objectives);
}

Status Executor::set_scalar(TensorHandle handle, double number) {
  DLTensor& to = *tensor(handle);
  if (element_count(to) != 1) {
    return invalid_argument(
        fmt::format("a scalar is set, but it has {} elements", element_count(to)));
  }
  return write_numbers(gr_dtype_of(to.dtype), std::span<const double>(&number, 1), to.data);
}

Status Executor::set_scalar(TensorHandle handle, std::span<const int64_t> numbers) {
  DLTensor& to = *tensor(handle);
  if (element_count(to) != static_cast<int64_t>(numbers.size())) {
    return invalid_argument(fmt::format("{} numbers are set, but it has {} elements",
                                        numbers.size(), element_count(to)));
  }
  return write_numbers(gr_dtype_of(to.dtype), numbers, to.data);
}

Result<double> Executor::read_scalar(TensorHandle handle) const {
  const DLTensor& from = tensors_[static_cast<size_t>(handle.tensor)];
  if (element_count(from) < 1) return invalid_argument("an empty result has no first element");
  return read_number(gr_dtype_of(from.dtype), from.data);
}

}  // namespace gradrack
