// SPDX-License-Identifier: Apache-2.0
// Claims: see claim.hpp.
#include "core/plan/claim.hpp"

#include <cstring>

#include "core/plan/node_views.hpp"

namespace gradrack {

Result<std::vector<Claim>> ask_claims(const Device& device, const BoundGraph& bound,
                                      const std::vector<size_t>& nodes) {
  std::vector<Claim> out;
  if (nodes.empty()) return out;
  NodeViews views(bound);
  for (const size_t node : nodes) views.add(node);
  gr_claim_t blank = {};
  blank.struct_size = sizeof blank;
  blank.group = -1;
  std::vector<gr_claim_t> answers(nodes.size(), blank);
  const gr_backend_t* const backend = device.backend();
  gr_error_t err = {};
  auto lock = device.plan_calls();
  const int32_t code =
      backend->claim(backend->self, views.views().data(), sizeof(gr_node_view_t),
                     static_cast<uint32_t>(nodes.size()), answers.data(), sizeof(gr_claim_t), &err);
  lock.unlock();
  if (code != GR_OK) {
    return status_from(code, err).with_context("backend " + device.name() + ": claim");
  }
  for (const gr_claim_t& answer : answers) {
    const std::string reason(answer.reason, strnlen(answer.reason, sizeof answer.reason));
    const bool yes = answer.verdict == GR_CLAIM_YES;
    const bool converts = yes && (answer.flags & GR_CLAIM_CONVERTED) != 0;
    const std::string text = reason.empty() ? "no reason given" : reason;
    out.push_back({yes, answer.group, answer.cost_ns, text, converts ? text : std::string()});
  }
  return out;
}

}  // namespace gradrack
