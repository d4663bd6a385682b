// SPDX-License-Identifier: Apache-2.0
// Samples of a pattern: small graphs of its nodes, on inputs that their operators take.
//
// A search: the first statement on the inputs that the table of operators has for it, each later
// one on what is there and on inputs of shapes made from that. Invariant: what is drawn depends on
// the seed alone. Whether the backend takes a sample is the caller's question.
#pragma once

#include <functional>

#include "core/plan/backend_patterns.hpp"
#include "sdk/conformance/op_case.hpp"

namespace gradrack::conform {

struct PatternSample {
  Graph graph;                    // outputs: what no node reads
  std::vector<size_t> nodes;      // in the order of the pattern's statements
  std::vector<InputSpec> inputs;  // of the sources "x0", "x1", ...

  /// "Add(x0, x1); Neg(%2)" with types.
  std::string text() const;
};

/// Makes every result of its nodes an output of the graph; false where one cannot be.
bool show_all(PatternSample* sample);

/// Finds samples that `takes` says yes to, at most `most`, within a bounded search.
std::vector<PatternSample> pattern_samples(const PatternText& pattern, uint64_t seed, size_t most,
                                           const std::function<bool(const PatternSample&)>& takes);

}  // namespace gradrack::conform
