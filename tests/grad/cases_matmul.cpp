// SPDX-License-Identifier: Apache-2.0
// Rows for matrix products.
#include "tests/grad/cases.hpp"

namespace gradrack::test {

namespace {

Attrs product(bool trans_a, bool trans_b, double alpha) {
  return {{"transA", int64_t{trans_a}}, {"transB", int64_t{trans_b}}, {"alpha", alpha}};
}

void add_fused(std::vector<GradCase>* rows) {
  rows->push_back(own_case("FusedMatMul", "nn", {wrt({3, 4}), wrt({4, 5})}));
  rows->push_back(own_case("FusedMatMul", "tn", {wrt({4, 3}), wrt({4, 5})}, product(1, 0, 0.5)));
  rows->push_back(own_case("FusedMatMul", "nt", {wrt({3, 4}), wrt({5, 4})}, product(0, 1, -2)));
  rows->push_back(own_case("FusedMatMul", "tt", {wrt({4, 3}), wrt({5, 4})}, product(1, 1, 1)));
  rows->push_back(own_case("FusedMatMul", "batch", {wrt({2, 3, 4}), wrt({2, 4, 5})}));
  rows->push_back(
      own_case("FusedMatMul", "batch_tt", {wrt({2, 4, 3}), wrt({2, 5, 4})}, product(1, 1, 0.3)));
  rows->push_back(own_case("FusedMatMul", "broadcast", {wrt({2, 1, 3, 4}), wrt({3, 4, 2})}));
  rows->push_back(own_case("FusedMatMul", "one", {wrt({1, 1}), wrt({1, 1})}));
  rows->push_back(own_case("FusedMatMul", "no_inner", {wrt({2, 0}), wrt({0, 3})}));
  rows->push_back(own_case("FusedMatMul", "no_rows", {wrt({0, 2}), wrt({2, 3})}));
}

}  // namespace

std::vector<GradCase> matmul_cases() {
  std::vector<GradCase> rows;
  add_fused(&rows);
  rows.push_back(onnx_case("MatMul", "matrices", {wrt({3, 4}), wrt({4, 5})}));
  rows.push_back(onnx_case("MatMul", "folded", {wrt({2, 3, 4}), wrt({4, 5})}));
  rows.push_back(onnx_case("MatMul", "folded_empty", {wrt({0, 3, 4}), wrt({4, 5})}));
  rows.push_back(onnx_case("MatMul", "folded_no_inner", {wrt({2, 3, 0}), wrt({0, 5})}));
  rows.push_back(onnx_case("MatMul", "batch", {wrt({2, 3, 3, 4}), wrt({2, 3, 4, 2})}));
  rows.push_back(onnx_case("MatMul", "broadcast_a", {wrt({3, 4}), wrt({2, 4, 5})}));
  rows.push_back(onnx_case("MatMul", "broadcast_both", {wrt({2, 1, 3, 4}), wrt({5, 4, 2})}));
  rows.push_back(onnx_case("MatMul", "vector_left", {wrt({4}), wrt({4, 5})}));
  rows.push_back(onnx_case("MatMul", "vector_left_batch", {wrt({4}), wrt({2, 4, 5})}));
  rows.push_back(onnx_case("MatMul", "vector_right", {wrt({3, 4}), wrt({4})}));
  rows.push_back(onnx_case("MatMul", "vector_right_batch", {wrt({2, 3, 4}), wrt({4})}));
  rows.push_back(onnx_case("MatMul", "vectors", {wrt({4}), wrt({4})}));
  rows.push_back(onnx_case("Gemm", "plain", {wrt({3, 4}), wrt({4, 5})}));
  rows.push_back(onnx_case("Gemm", "bias", {wrt({3, 4}), wrt({4, 5}), wrt({5})}));
  rows.push_back(onnx_case("Gemm", "column_bias", {wrt({3, 4}), wrt({4, 5}), wrt({3, 1})}));
  rows.push_back(onnx_case("Gemm", "scalar_bias", {wrt({3, 4}), wrt({4, 5}), wrt({}, 1, 2)}));
  Attrs attrs = product(true, true, 0.5);
  attrs.set("beta", 2.0);
  rows.push_back(onnx_case("Gemm", "all", {wrt({4, 3}), wrt({5, 4}), wrt({3, 5})}, attrs));
  rows.push_back(onnx_case("Gemm", "empty", {wrt({0, 4}), wrt({4, 5}), wrt({5})}));
  return rows;
}

}  // namespace gradrack::test
