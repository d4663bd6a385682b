// SPDX-License-Identifier: Apache-2.0
// Optimizers over 100 updates against torch.optim and against the cited formulas, in double.
//
// optimizers.safetensors says per case which plugin and options it is of. Differences are held
// below 1e-9 of the largest element; torch.optim.Muon iterates in bfloat16, so that case is a check
// of rules (momentum, scale, decay), not of digits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/golden/model_run.hpp"
#include "tests/golden/optimizer_run.hpp"

namespace gradrack {
namespace {

/// Another file of the same cases with other shapes may be named.
std::string golden_path() {
  const char* const other = std::getenv("GRADRACK_OPTIMIZER_GOLDEN");
  return other != nullptr ? other : GRADRACK_SOURCE_DIR "/tests/golden/optimizers.safetensors";
}

double tolerance_of(const std::string& name) { return name == "torch.muon" ? 2e-2 : 1e-9; }

void expect_near(const std::vector<double>& got, const double* want, double tolerance,
                 const std::string& what) {
  double largest = 0;
  for (size_t k = 0; k < got.size(); ++k) largest = std::max(largest, std::fabs(want[k]));
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_NEAR(got[k], want[k], tolerance * largest) << what << "[" << k << "]";
  }
}

void replay(const SafetensorsFile& golden, const std::string& name, const nlohmann::json& known,
            const std::vector<size_t>& kept) {
  testing::OptimizerCase c;
  c.optimizer = known.at("plugin");
  for (const auto& [key, value] : known.at("options").items()) c.options[key] = value;
  const SafetensorsEntry* start = golden.find(name + ".init");
  ASSERT_NE(start, nullptr) << name;
  c.dims = start->shape;
  testing::OptimizerRun run(c);
  ASSERT_TRUE(run.status().ok()) << name << ": " << run.status().message();
  const std::vector<double> initial = testing::read_doubles(golden, name + ".init");
  const std::vector<double> gradients = testing::read_doubles(golden, name + ".grad");
  const std::vector<double> want = testing::read_doubles(golden, name + ".param");
  run.set(initial);
  size_t seen = 0;
  for (size_t k = 1; k <= kept.back(); ++k) {
    const auto from = gradients.begin() + static_cast<int64_t>((k - 1) * initial.size());
    const std::vector<double> g(from, from + static_cast<int64_t>(initial.size()));
    const std::vector<double> got = run.step(g, known.at("lr"));
    if (k != kept[seen]) continue;
    expect_near(got, want.data() + seen * initial.size(), tolerance_of(name),
                name + " after update " + std::to_string(k));
    ++seen;
  }
  EXPECT_EQ(seen, kept.size()) << name;
}

TEST(OptimizerGolden, HundredUpdatesAgree) {
  const auto golden = SafetensorsFile::open(golden_path());
  ASSERT_TRUE(golden.ok()) << golden.status().message();
  const auto cases = nlohmann::json::parse(golden->metadata().at("cases"));
  const std::vector<size_t> kept = nlohmann::json::parse(golden->metadata().at("kept"));
  EXPECT_EQ(cases.size(), 10u);
  for (const auto& [name, known] : cases.items()) replay(*golden, name, known, kept);
}

}  // namespace
}  // namespace gradrack
