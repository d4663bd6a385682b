// SPDX-License-Identifier: Apache-2.0
// The makers of rows and inputs, and the list of all rows: see grad_case.hpp.
#include "tests/grad/grad_case.hpp"

#include <cmath>

#include "tests/grad/cases.hpp"

namespace gradrack::test {

namespace {

/// Numbers in [low, high] in a fixed shuffled order, evenly spread and none within half a step of
/// 0.
std::vector<double> spread(int64_t count, double low, double high) {
  std::vector<double> out;
  const double step = (high - low) / static_cast<double>(count > 0 ? count : 1);
  int64_t stride = count / 2 + 1;
  const auto common = [](int64_t a, int64_t b) {
    while (b != 0) {
      const int64_t rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  };
  while (count > 1 && common(stride, count) != 1) ++stride;
  for (int64_t k = 0; k < count; ++k) {
    double x = low + (static_cast<double>(k * stride % count) + 0.5) * step;
    if (std::fabs(x) < 0.02) x = x < 0 ? -0.02 : 0.02;
    out.push_back(x);
  }
  return out;
}

CaseInput spread_input(std::vector<int64_t> dims, double low, double high, bool differentiable) {
  CaseInput input;
  input.content = HostTensor(GR_FLOAT64, dims);
  const int64_t count = input.content.count();
  input.content = HostTensor::reals(GR_FLOAT64, std::move(dims), spread(count, low, high));
  input.differentiable = differentiable;
  return input;
}

GradCase make_case(std::string domain, std::string op, std::string note,
                   std::vector<CaseInput> inputs, Attrs attrs) {
  GradCase row;
  row.name = (domain.empty() ? "" : domain + "_") + op + "_" + note;
  row.domain = std::move(domain);
  row.op = std::move(op);
  row.inputs = std::move(inputs);
  row.attrs = std::move(attrs);
  return row;
}

}  // namespace

GradCase onnx_case(std::string op, std::string note, std::vector<CaseInput> inputs, Attrs attrs) {
  return make_case("", std::move(op), std::move(note), std::move(inputs), std::move(attrs));
}

GradCase own_case(std::string op, std::string note, std::vector<CaseInput> inputs, Attrs attrs) {
  return make_case("gradrack", std::move(op), std::move(note), std::move(inputs), std::move(attrs));
}

CaseInput wrt(std::vector<int64_t> dims, double low, double high) {
  return spread_input(std::move(dims), low, high, true);
}

CaseInput fixed(std::vector<int64_t> dims, double low, double high) {
  return spread_input(std::move(dims), low, high, false);
}

CaseInput wrt_of(std::vector<int64_t> dims, std::vector<double> numbers) {
  CaseInput input = fixed_of(std::move(dims), std::move(numbers));
  input.differentiable = true;
  return input;
}

CaseInput fixed_of(std::vector<int64_t> dims, std::vector<double> numbers) {
  CaseInput input;
  input.content = HostTensor::reals(GR_FLOAT64, std::move(dims), numbers);
  return input;
}

CaseInput indices(std::vector<int64_t> dims, std::vector<int64_t> numbers) {
  CaseInput input;
  input.content = HostTensor::ints(GR_INT64, std::move(dims), numbers);
  return input;
}

CaseInput bools(std::vector<int64_t> dims, std::vector<int64_t> numbers) {
  CaseInput input;
  input.content = HostTensor::ints(GR_BOOL, std::move(dims), numbers);
  return input;
}

CaseInput known(std::vector<int64_t> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  CaseInput input = indices({count}, std::move(numbers));
  input.constant = true;
  return input;
}

CaseInput number(double value) {
  CaseInput input = fixed_of({}, {value});
  input.constant = true;
  return input;
}

CaseInput missing() {
  CaseInput input;
  input.missing = true;
  return input;
}

const std::vector<GradCase>& all_cases() {
  static const std::vector<GradCase> rows = [] {
    std::vector<GradCase> all;
    for (auto* family :
         {unary_cases, binary_cases, matmul_cases, shape_cases, slice_cases, index_cases,
          reduce_cases, more_elementwise_cases, more_index_cases, more_nn_cases, nn_cases}) {
      for (GradCase& row : family()) all.push_back(std::move(row));
    }
    return all;
  }();
  return rows;
}

}  // namespace gradrack::test
