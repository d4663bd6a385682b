/* SPDX-License-Identifier: Apache-2.0 */
/* Writes, as Rust, where the structs that gradrack.rs repeats end in the installed headers.
 *
 * Runs while building: layout > layout.rs. The end is that of the last member that gradrack.rs
 * knows, so members that a later SDK adds behind it change nothing. Add a row with each struct.
 */
#include <stddef.h>
#include <stdio.h>

#include "gradrack/optimizer.h"

#define ROW(rust, type, last) \
  printf("pub const %s: usize = %zu;\n", #rust, offsetof(type, last) + sizeof(((type*)0)->last))

int main(void) {
  ROW(GR_ERROR, gr_error_t, message);
  ROW(GR_HOST, gr_host_t, get_extension);
  ROW(GR_OPTION, gr_option_t, help);
  ROW(GR_OPTION_VALUE, gr_option_value_t, count);
  ROW(GR_OPTIONS, gr_options_t, count);
  ROW(GR_FACTORY, gr_factory_t, create);
  ROW(GR_PLUGIN, gr_plugin_t, get_extension);
  ROW(GR_PLUGIN_HEADER, gr_plugin_header_t, entry);
  ROW(GR_ATTR, gr_attr_t, count);
  ROW(GR_INIT, gr_init_t, b);
  ROW(GR_NODE, gr_node_t, output_count);
  ROW(DL_TENSOR, DLTensor, byte_offset);
  ROW(GR_GRAPH_API, gr_graph_api_t, type_of);
  ROW(GR_BUILDER, gr_builder_t, graph);
  ROW(GR_PARAMETER_INFO, gr_parameter_info_t, role);
  ROW(GR_STATE, gr_state_t, init);
  ROW(GR_UPDATE, gr_update_t, new_states);
  ROW(GR_OPTIMIZER, gr_optimizer_t, get_extension);
  return 0;
}
