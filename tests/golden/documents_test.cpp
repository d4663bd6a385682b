// SPDX-License-Identifier: Apache-2.0
// Packed documents against the same documents in rows of their own: gpt with `documents: true`.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "tests/golden/model_cases.hpp"

namespace gradrack {
namespace {

using testing::ModelCase;
using testing::Tensors;
using Row = std::vector<int64_t>;

constexpr int64_t kTokens = 16, kVocab = 37, kIgnored = -100;
constexpr const char* kGolden = "gpt_rms_rope_swiglu_gqa_tied_f64";

/// One row of a batch, filled document by document.
struct Packed {
  Row tokens, targets, positions, documents;

  void add(const Row& document) {
    const int64_t number = documents.empty() ? 0 : documents.back() + 1;
    for (size_t k = 0; k < document.size(); ++k) {
      tokens.push_back(document[k]);
      targets.push_back(k + 1 < document.size() ? document[k + 1] : kIgnored);
      positions.push_back(static_cast<int64_t>(k));
      documents.push_back(number);
    }
  }
  void pad() {
    for (Row* row : {&tokens, &targets, &positions, &documents}) {
      row->resize(kTokens, row == &targets ? kIgnored : 0);
    }
  }
};

/// Runs the golden's weights on other rows.
Tensors run(const std::vector<Packed>& rows, const char* positions) {
  const SafetensorsFile golden = testing::open_golden(
      std::string(positions) == "rope" ? kGolden : "gpt_layer_learned_gelu_f64");
  const std::string path =
      ::testing::TempDir() + "gradrack_documents_" + std::to_string(getpid()) + ".safetensors";
  std::vector<std::vector<double>> weights;
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& entry : golden.entries()) {
    if (!entry.name.starts_with("param.")) continue;
    weights.push_back(testing::read_doubles(golden, entry.name));
    tensors.push_back({entry.name, GR_FLOAT64, {entry.shape.begin(), entry.shape.end()}, nullptr});
  }
  for (size_t k = 0; k < weights.size(); ++k) tensors[k].data = weights[k].data();
  Row inputs[4];
  for (const Packed& row : rows) {
    const Row* parts[] = {&row.tokens, &row.targets, &row.positions, &row.documents};
    for (size_t k = 0; k < 4; ++k) {
      inputs[k].insert(inputs[k].end(), parts[k]->begin(), parts[k]->end());
    }
  }
  const char* const names[] = {"tokens", "targets", "positions", "documents"};
  for (size_t k = 0; k < 4; ++k) {
    tensors.push_back({std::string("input.") + names[k],
                       GR_INT64,
                       {static_cast<int64_t>(rows.size()), kTokens},
                       inputs[k].data()});
  }
  EXPECT_TRUE(write_safetensors(path, tensors).ok());
  ModelCase c = testing::gpt_case(golden, "reference");
  c.precision = "fp64";
  c.options["documents"] = "true";
  auto file = SafetensorsFile::open(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  std::filesystem::remove(path);
  return testing::run_model(c, *file);
}

Row document(int64_t first, size_t count) {
  Row tokens(count);
  for (size_t k = 0; k < count; ++k) {
    tokens[k] = (first + static_cast<int64_t>(k * k)) % kVocab;
  }
  return tokens;
}

Packed packed(const std::vector<Row>& documents) {
  Packed row;
  for (const Row& document : documents) row.add(document);
  row.pad();
  return row;
}

class Documents : public ::testing::TestWithParam<const char*> {};

TEST_P(Documents, TOK05_WhatOneSaysDoesNotReachTheNext) {
  const Tensors a = run({packed({document(1, 9), document(20, 7)})}, GetParam());
  const Tensors b = run({packed({document(5, 9), document(20, 7)})}, GetParam());
  const std::vector<double>&one = a.at("output.logits"), &other = b.at("output.logits");
  ASSERT_EQ(one.size(), static_cast<size_t>(kTokens * kVocab));
  const auto border = static_cast<std::ptrdiff_t>(9 * kVocab);
  EXPECT_FALSE(std::equal(one.begin(), one.begin() + border, other.begin()));
  EXPECT_TRUE(std::equal(one.begin() + border, one.end(), other.begin() + border));
}

TEST_P(Documents, TOK05_GradientsAreThoseOfSeparateRows) {
  const Row first = document(1, 9), second = document(20, 7);
  const Tensors together = run({packed({first, second})}, GetParam());
  const Tensors apart = run({packed({first}), packed({second})}, GetParam());
  EXPECT_NEAR(together.at("output.loss")[0], apart.at("output.loss")[0], 1e-12);
  size_t compared = 0;
  for (const auto& [name, wanted] : apart) {
    if (!name.starts_with("grad.")) continue;
    const std::vector<double>& got = together.at(name);
    double largest = 0;
    for (const double value : wanted) largest = std::max(largest, std::fabs(value));
    for (size_t k = 0; k < wanted.size(); ++k) {
      ASSERT_NEAR(got[k], wanted[k], 1e-9 * largest) << name << "[" << k << "]";
    }
    ++compared;
  }
  EXPECT_GE(compared, 10u);
}

INSTANTIATE_TEST_SUITE_P(Positions, Documents, ::testing::Values("rope", "learned"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace gradrack
