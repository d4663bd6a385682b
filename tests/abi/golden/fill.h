/* SPDX-License-Identifier: Apache-2.0 */
/* What the golden plugins share: handing a table to a host that is older or newer than the SDK.
 *
 * These plugins are built once with the SDK of a released minor and kept as binaries: every later
 * host loads and uses them. Their sources are built again with today's headers, and with headers
 * one minor ahead. They use the C headers and the C library and nothing else.
 */
#ifndef GOLDEN_FILL_H_
#define GOLDEN_FILL_H_

#include <stdint.h>
#include <string.h>

/* Copies as much of `table` (of `bytes`) as the host has room for; `struct_size` says how much. */
static inline void fill(void* instance, const void* table, uint32_t bytes) {
  uint32_t room, size;
  memcpy(&room, instance, sizeof room);
  size = room < bytes ? room : bytes;
  memcpy(instance, table, size);
  memcpy(instance, &size, sizeof size);
}

#endif
