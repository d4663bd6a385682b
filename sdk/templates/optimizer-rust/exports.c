/* SPDX-License-Identifier: Apache-2.0 */
/* Names the symbol that the library exports, so that the linker takes it out of the Rust archive.
 * It and the version script of gradrack_add_plugin make it the only one; nothing else is C here.
 */
#include "gradrack/plugin.h"

extern const gr_plugin_header_t gradrack_plugin_v1;
__attribute__((used)) static const gr_plugin_header_t* const kept = &gradrack_plugin_v1;
