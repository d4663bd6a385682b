// SPDX-License-Identifier: Apache-2.0
// Rows for softmax, norms, convolution, pools, attention, losses, dropout.
#include "tests/grad/cases.hpp"

namespace gradrack::test {

std::vector<GradCase> nn_cases() { return {}; }

}  // namespace gradrack::test
