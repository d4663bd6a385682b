/* SPDX-License-Identifier: Apache-2.0
   A library that another one needs and that the loader will not find. */
#include <stdint.h>

int32_t gradrack_test_needed(void);
__attribute__((visibility("default"))) int32_t gradrack_test_needed(void) { return 0; }
