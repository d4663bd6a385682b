// SPDX-License-Identifier: Apache-2.0
// Collects the families of the reference backend into one table.
#include "backends/reference/kernels.hpp"

namespace gradrack::reference {

void add_all_kernels(host::KernelTable& table) {
  add_unary_kernels(table);
}

}  // namespace gradrack::reference
