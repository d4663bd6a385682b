/* SPDX-License-Identifier: Apache-2.0
   Stands for an OpenMP runtime: only the file's name is like one. */
#include <stdint.h>

int32_t gradrack_test_runtime(void);
__attribute__((visibility("default"))) int32_t gradrack_test_runtime(void) { return 1; }
