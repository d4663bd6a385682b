// SPDX-License-Identifier: Apache-2.0
// RunRules: what the run file says of objectives and freezing, against the model at hand.
//
// Between config and the plans of a run. Invariant: for each step it says, as pure functions of the
// step's number (from 1), which objectives may be active and which parameters are trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/run_config.hpp"
#include "core/graph/graph.hpp"
#include "core/optim/groups.hpp"
#include "core/optim/objectives.hpp"

namespace gradrack {

/// Bit k stands for objective k of the model, in declared order.
using ObjectiveSet = uint64_t;

class RunRules {
 public:
  /// Errors name place and key and the nearest objective, stage or parameter: a rule about what the
  /// model does not have; a freeze that leaves nothing to train; more than 64 objectives.
  static Result<RunRules> make(const RunSection& run, const Graph& model,
                               const std::vector<ParameterFacts>& parameters);

  // Objectives.
  const std::vector<std::string>& objectives() const { return objectives_; }
  /// By objective.
  const std::vector<double>& weights() const { return weights_; }
  /// Whether weights are in the graph at all: one objective without a weight needs none.
  bool weighted() const { return weighted_; }
  ObjectiveSet all() const;
  /// Those whose turn it is in that step.
  ObjectiveSet active(int64_t step) const;
  /// Steps after which active() begins anew; at most `most`.
  int64_t period(int64_t most) const;
  /// "box, point".
  std::string text(ObjectiveSet set) const;
  /// GR_INVALID_ARGUMENT: a name that is no objective's, with the nearest that is.
  Result<ObjectiveSet> set_of(const std::vector<std::string>& names) const;

  // Freezing: the trained parameters change at few steps; each stretch has a number.
  size_t stretch(int64_t step) const;
  /// First step of a stretch.
  int64_t begin(size_t stretch) const { return begins_[stretch]; }
  size_t stretches() const { return begins_.size(); }
  /// Names in declared order.
  const std::vector<std::string>& trained(size_t stretch) const { return trained_[stretch]; }
  /// "all", or "all but a, b".
  const std::string& trained_text(size_t stretch) const { return texts_[stretch]; }

 private:
  Status read_objectives(const RunSection& run, const Graph& model);
  Status read_freeze(const RunSection& run, const std::vector<ParameterFacts>& parameters);

  std::vector<std::string> objectives_;
  std::vector<double> weights_;
  std::vector<int64_t> every_;
  bool weighted_ = false;
  std::vector<int64_t> begins_;
  std::vector<std::vector<std::string>> trained_;
  std::vector<std::string> texts_;
};

}  // namespace gradrack
