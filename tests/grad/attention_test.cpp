// SPDX-License-Identifier: Apache-2.0
// Attention with named dims, with queries that see nothing, and what it refuses while building.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/grad/op_run.hpp"

namespace gradrack::test {
namespace {

HostTensor wave(std::vector<int64_t> dims, double phase) {
  HostTensor out(GR_FLOAT64, std::move(dims));
  for (int64_t k = 0; k < out.count(); ++k) {
    out.set_number(k, std::sin(phase + 1.3 * static_cast<double>(k)));
  }
  return out;
}

OpCall grouped() {
  OpCall call;
  call.op = "Attention";
  call.inputs = {wave({2, 4, 3, 2}, 0), wave({2, 2, 3, 2}, 1), wave({2, 2, 3, 5}, 2)};
  call.attrs = {{"is_causal", int64_t{1}}};
  call.gy = wave({2, 4, 3, 5}, 3);
  call.wrt = {0, 1, 2};
  return call;
}

/// The call with names for batch and time.
OpCall named(OpCall call, size_t time_axis) {
  for (const size_t k : {0, 1, 2}) {
    call.names[{k, 0}] = "batch";
    call.names[{k, time_axis}] = "time";
  }
  return call;
}

void expect_equal(const OpCall& a, const OpCall& b) {
  const auto x = run_op(reference(), a), y = run_op(reference(), b);
  ASSERT_TRUE(x.ok()) << x.status().message();
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(relative_error(x->outputs[0], y->outputs[0]), 0);
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(relative_error(x->grads[k], y->grads[k]), 0) << k;
}

TEST(Attention, NamedBatchAndTimeGiveTheSameBits) { expect_equal(grouped(), named(grouped(), 2)); }

TEST(Attention, NamedBatchAndTimeGiveTheSameBitsWhenPacked) {
  OpCall call = grouped();
  call.inputs = {wave({2, 3, 8}, 0), wave({2, 3, 4}, 1), wave({2, 3, 10}, 2)};
  call.attrs = {
      {"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}, {"is_causal", int64_t{1}}};
  call.gy = wave({2, 3, 20}, 3);
  expect_equal(call, named(call, 1));
}

TEST(Attention, QueryThatSeesNothingGivesZeros) {
  for (const bool decomposed : {false, true}) {
    if (decomposed) reference().set_avoid([](const OpDef&) { return true; });
    OpCall call = grouped();
    std::vector<int64_t> seen(9, 1);
    for (size_t k = 3; k < 6; ++k) seen[k] = 0;  // query 1
    call.inputs.push_back(HostTensor::ints(GR_BOOL, {3, 3}, seen));
    const auto answer = run_op(reference(), call);
    reference().set_avoid({});
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    for (int64_t head = 0; head < 8; ++head) {
      for (int64_t d = 0; d < 5; ++d) {
        EXPECT_EQ(answer->outputs[0].number((head * 3 + 1) * 5 + d), 0);
      }
      for (int64_t d = 0; d < 2; ++d) {
        EXPECT_EQ(answer->grads[0].number((head * 3 + 1) * 2 + d), 0);
      }
    }
    for (const HostTensor& grad : answer->grads) {
      for (const double g : grad.numbers()) ASSERT_TRUE(std::isfinite(g));
    }
  }
}

TEST(Attention, SoftcapLeavesMaskedKeysMasked) {
  OpCall call = grouped();
  call.attrs.set("softcap", 2.0);
  auto before = run_op(reference(), call);
  call.inputs[2]->set_number(1 * 5, 1e6);  // key 1, which query 0 does not see
  auto after = run_op(reference(), call);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(before->outputs[0].number(0), after->outputs[0].number(0));
}

/// The message with which building the call is refused; checks the code too.
std::string refusal(const OpCall& call, int32_t code) {
  const auto answer = run_op(reference(), call);
  EXPECT_FALSE(answer.ok());
  if (answer.ok()) return "";
  EXPECT_EQ(answer.status().code(), code);
  return answer.status().message();
}

TEST(Attention, RefusesCachesOfKeys) {
  OpCall call = grouped();
  call.inputs.push_back(std::nullopt);
  call.inputs.push_back(wave({2, 2, 1, 2}, 0));
  EXPECT_NE(refusal(call, GR_UNSUPPORTED).find("past_key"), std::string::npos);
}

TEST(Attention, RefusesHeadsThatDoNotDivide) {
  OpCall call = grouped();
  call.inputs[0] = wave({2, 3, 3, 2}, 0);
  EXPECT_NE(refusal(call, GR_INVALID_ARGUMENT).find("key/value heads must divide"),
            std::string::npos);
}

TEST(Attention, RefusesMaskOfAnotherShape) {
  OpCall call = grouped();
  call.inputs.push_back(HostTensor(GR_BOOL, {2, 3}));
  EXPECT_NE(refusal(call, GR_INVALID_ARGUMENT).find("attn_mask must broadcast to"),
            std::string::npos);
}

}  // namespace
}  // namespace gradrack::test
