/* SPDX-License-Identifier: Apache-2.0
   A library that lies beside a plugin and may be missing there. */
#include <stdint.h>

int32_t gradrack_test_neighbour(void);
__attribute__((visibility("default"))) int32_t gradrack_test_neighbour(void) { return 0; }
