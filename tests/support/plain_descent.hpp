// SPDX-License-Identifier: Apache-2.0
// Plain gradient descent without state, straight on the C table: p becomes p - gradient, whatever
// the rate. For tests that work out a step by hand.
#pragma once

#include "gradrack/optimizer.h"

namespace gradrack::testing {

inline gr_optimizer_t plain_descent() {
  gr_optimizer_t table = {};
  table.struct_size = sizeof table;
  table.declare_state = [](void*, const gr_parameter_info_t*, gr_state_t*, uint32_t* count,
                           gr_error_t*) -> int32_t {
    *count = 0;
    return GR_OK;
  };
  table.build_update = [](void*, const gr_builder_t* b, gr_update_t* u,
                          gr_error_t* err) -> int32_t {
    const gr_value_t inputs[] = {u->parameter, u->gradient};
    gr_node_t node = {};
    node.struct_size = sizeof node;
    node.op = "Sub";
    node.inputs = inputs;
    node.input_count = 2;
    node.output_count = 1;
    return b->api->node(b->graph, &node, &u->new_parameter, err);
  };
  return table;
}

}  // namespace gradrack::testing
