// SPDX-License-Identifier: Apache-2.0
// Level 0: the file itself and what it exports.
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/context.hpp"

namespace gradrack::conform {
namespace {

Outcome loads(Context& context) { return outcome_of(context.subject().status()); }

}  // namespace

void add_file_cases(const Target&, std::vector<Case>* cases) {
  cases->push_back({"L0.loads", 0, "the system loads it and it has an entry header", loads});
}

}  // namespace gradrack::conform
