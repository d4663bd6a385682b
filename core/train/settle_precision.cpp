// SPDX-License-Identifier: Apache-2.0
// Settling a precision: see settle_precision.hpp.
#include "core/train/settle_precision.hpp"

#include <algorithm>
#include <cstring>

#include "core/graph/emitter.hpp"
#include "core/plan/claim.hpp"
#include "core/precision/extensions.hpp"

namespace gradrack {

namespace {

// The product both ways that a backend may know it: as the primitive, and as ONNX has it.
Result<Graph> sample_products(gr_dtype_t dtype) {
  constexpr int64_t kSide = 64;
  Graph graph;
  ValueId factors[2] = {};
  for (size_t k = 0; k < 2; ++k) {
    Value value;
    value.source = Source::kInput;
    value.name = k == 0 ? "a" : "b";
    value.type = {dtype, {kSide, kSide}};
    GR_ASSIGN(factors[k], graph.add_source(std::move(value)));
  }
  Emitter e(graph);
  const ValueId fused = e.own("FusedMatMul", {factors[0], factors[1]});
  const ValueId plain = e.op("MatMul", {factors[0], factors[1]});
  GR_TRY(e.status());
  GR_TRY(graph.add_output("fused", fused));
  GR_TRY(graph.add_output("plain", plain));
  return graph;
}

int32_t how(const Claim& claim) {
  if (!claim.yes) return GR_SUPPORT_NO;
  return claim.converted.empty() ? GR_SUPPORT_NATIVE : GR_SUPPORT_CONVERTED;
}

// How a device runs matrix products with operands of one dtype.
struct ProductSupport {
  int32_t how = GR_SUPPORT_NO;  // GR_SUPPORT_*
  std::string reason;           // the backend's words; "": of a native one
};

// Asks by a claim on a small product.
Result<ProductSupport> product_support(const Device& device, gr_dtype_t dtype) {
  GR_ASSIGN(const Graph graph, sample_products(dtype));
  GR_ASSIGN(const BoundGraph bound, bind_graph(graph, {}));
  GR_ASSIGN(const std::vector<Claim> claims, ask_claims(device, bound, {0, 1}));
  const Claim& best = how(claims[1]) > how(claims[0]) ? claims[1] : claims[0];
  return ProductSupport{how(best), best.yes ? best.converted : best.reason};
}

// gr_dtype_support.products; `context` is the device.
int32_t products(void* context, gr_dtype_t dtype, int32_t* out, char* reason, uint32_t reason_bytes,
                 gr_error_t* err) {
  const Result<ProductSupport> support =
      product_support(*static_cast<const Device*>(context), dtype);
  if (!support.ok()) {
    return gr_fail(err, support.status().code(), "products", support.status().message().c_str());
  }
  *out = support->how;
  const size_t size = std::min<size_t>(support->reason.size(), reason_bytes - 1);
  std::memcpy(reason, support->reason.data(), size);
  reason[size] = '\0';
  return GR_OK;
}

}  // namespace

Result<std::string> settle_precision(const gr_precision_t& policy, const Device& device) {
  const gr_precision_choice_t* const choice = precision_choice_of(policy);
  if (choice == nullptr) return std::string();
  const gr_dtype_support_t support = {sizeof support, 0, const_cast<Device*>(&device), products};
  char reason[512] = {};
  gr_error_t err = {};
  GR_TRY(status_from(choice->choose(choice->self, &support, reason, sizeof reason, &err), err)
             .with_context("precision plugin"));
  return std::string(reason, strnlen(reason, sizeof reason));
}

}  // namespace gradrack
