// SPDX-License-Identifier: Apache-2.0
// The list of orders: see named_orders.hpp.
#include "core/simulate/orders/named_orders.hpp"

#include <numeric>

#include "core/base/text.hpp"

namespace gradrack {
namespace {

Result<OrderAnswer> program_order_of(const SimTable& table, const OptionValues&) {
  OrderAnswer answer;
  answer.order.resize(table.size());
  std::iota(answer.order.begin(), answer.order.end(), 0u);
  answer.stream.assign(table.size(), 0);
  return answer;
}

}  // namespace

const std::vector<NamedOrder>& named_orders() {
  static const OptionTable k_options = {
      GR_OPT_INT("k", "-1", -1, 1 << 20, "layers whose dW come late; -1: the best of all k"),
      GR_OPT_BOOL("hold_last", "false", "with k = -1: try to send the last layers last too")};
  static const std::vector<NamedOrder> orders = {
      {"program", "the order of the table", {}, program_order_of},
      {"gpipe", "pipeline: all forwards, then all gradients", {}, gpipe_order},
      {"1f1b", "pipeline: one forward, one backward", {}, one_f_one_b_order},
      {"zb_h1", "pipeline: dW late, memory of 1f1b", {}, zb_h1_order},
      {"zb_h2", "pipeline: dW late, about twice the memory", {}, zb_h2_order},
      {"capped", "pipeline: the best found within the memory limits", {}, capped_pipeline_order},
      {"fast_forward", "any devices: dX before forwards before dW", {}, fast_forward_order},
      {"reverse_first_k", "data parallel: dW of the first k layers late, in forward order",
       k_options, reverse_first_k_order}};
  return orders;
}

Result<const NamedOrder*> find_order(const std::string& name) {
  std::vector<std::string> names;
  for (const NamedOrder& order : named_orders()) {
    if (name == order.name) return &order;
    names.emplace_back(order.name);
  }
  return not_found("order '" + name + "' is not there" + did_you_mean(name, names) +
                   "; there are: " + join(names))
      .in_area(Area::kConfig);
}

}  // namespace gradrack
