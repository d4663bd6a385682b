// SPDX-License-Identifier: Apache-2.0
// Operators and their gradients against PyTorch's, in double on the reference backend.
//
// Every case of ops.safetensors runs twice: with the backend's own kernels, and with all that has a
// decomposition decomposed. Invariant: both ways agree with PyTorch to 1e-11 of the largest
// element.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/state/safetensors.hpp"
#include "tests/grad/op_run.hpp"

namespace gradrack::test {
namespace {

using Json = nlohmann::json;

constexpr double kTolerance = 1e-11;

const SafetensorsFile& goldens() {
  static const SafetensorsFile* const file = [] {
    auto opened = SafetensorsFile::open(GRADRACK_SOURCE_DIR "/tests/golden/ops.safetensors");
    if (!opened.ok()) std::fprintf(stderr, "%s\n", opened.status().message().c_str());
    GR_CHECK(opened.ok());
    return new SafetensorsFile(std::move(*opened));
  }();
  return *file;
}

std::vector<std::string> case_names() {
  return Json::parse(goldens().metadata().at("cases")).get<std::vector<std::string>>();
}

std::optional<HostTensor> tensor(const std::string& name) {
  const SafetensorsEntry* entry = goldens().find(name);
  if (entry == nullptr) return std::nullopt;
  HostTensor out(entry->dtype, entry->shape);
  const auto bytes = goldens().bytes(*entry);
  if (!bytes.empty()) std::memcpy(out.bytes.data(), bytes.data(), bytes.size());
  return out;
}

/// "CASE.in." + the port's name; the goldens call the one input of an activation X and its output
/// Y.
std::string tensor_name(const std::string& prefix, const std::string& port, size_t index,
                        const char* fallback) {
  if (index > 0 || goldens().find(prefix + port) != nullptr) return prefix + port;
  return prefix + fallback;
}

/// JSON attributes in the types that the operator declares.
Attrs read_attrs(const OpDef& op, const Json& json) {
  Attrs attrs;
  for (const AttrDef& def : op.attrs) {
    if (!json.contains(def.name)) continue;
    const Json& value = json.at(def.name);
    switch (def.type) {
      case GR_ATTR_INT:
        attrs.set(def.name, value.get<int64_t>());
        break;
      case GR_ATTR_FLOAT:
        attrs.set(def.name, value.get<double>());
        break;
      case GR_ATTR_STRING:
        attrs.set(def.name, value.get<std::string>());
        break;
      case GR_ATTR_INTS:
        attrs.set(def.name, value.get<std::vector<int64_t>>());
        break;
      default:
        attrs.set(def.name, value.get<std::vector<double>>());
        break;
    }
  }
  return attrs;
}

struct GoldenCall {
  OpCall call;
  std::vector<std::string> grad_names;
  std::vector<std::string> output_names;
};

GoldenCall read_call(const std::string& name) {
  const Json json = Json::parse(goldens().metadata().at(name));
  const OpDef* op = OpRegistry::builtin().find("", json.at("op").get<std::string>());
  GR_CHECK(op != nullptr);
  GoldenCall out;
  out.call.op = op->name;
  out.call.attrs = read_attrs(*op, json);
  out.call.gy = tensor(name + ".gy");
  for (size_t k = 0; k < op->inputs.size(); ++k) {
    const std::string& port = op->inputs[k].name;
    out.call.inputs.push_back(tensor(tensor_name(name + ".in.", port, k, "X")));
    const std::string grad = tensor_name(name + ".grad.", port, k, "X");
    if (goldens().find(grad) == nullptr) continue;
    out.call.wrt.push_back(k);
    out.grad_names.push_back(grad);
  }
  out.call.outputs = 0;
  for (size_t k = 0; k < op->outputs.size(); ++k) {
    const std::string output = tensor_name(name + ".out.", op->outputs[k].name, k, "Y");
    if (goldens().find(output) == nullptr) break;
    out.output_names.push_back(output);
    ++out.call.outputs;
  }
  return out;
}

class OpGolden : public testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { reference().set_avoid({}); }

  void compare() const {
    const GoldenCall golden = read_call(GetParam());
    ASSERT_GE(golden.call.outputs, 1u);
    ASSERT_FALSE(golden.call.wrt.empty());
    const auto answer = run_op(reference(), golden.call);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    for (size_t k = 0; k < golden.output_names.size(); ++k) {
      const std::string& full = golden.output_names[k];
      EXPECT_LE(relative_error(answer->outputs[k], *tensor(full)), kTolerance) << full;
    }
    for (size_t k = 0; k < golden.grad_names.size(); ++k) {
      const std::string& full = golden.grad_names[k];
      EXPECT_LE(relative_error(answer->grads[k], *tensor(full)), kTolerance) << full;
    }
  }
};

TEST_P(OpGolden, KernelsEqualPyTorch) { compare(); }

TEST_P(OpGolden, DecompositionsEqualPyTorch) {
  reference().set_avoid([](const OpDef&) { return true; });
  compare();
}

INSTANTIATE_TEST_SUITE_P(Ops, OpGolden, testing::ValuesIn(case_names()), [](const auto& each) {
  std::string name = each.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

TEST(OpGoldenFile, HoldsAllCases) { EXPECT_GE(case_names().size(), 48u); }

}  // namespace
}  // namespace gradrack::test
