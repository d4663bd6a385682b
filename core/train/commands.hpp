// SPDX-License-Identifier: Apache-2.0
// The commands that run or plan a model; core/cli parses their arguments and maps errors to exit
// codes.
//
// Each takes a Session, writes its results to stdout (events and progress go to stderr) and returns
// a Status. GR_NONFINITE: training stopped on a non-finite loss. GR_CANCELLED: stopped by a signal,
// whose number stop_signal() gives. [main]
#pragma once

#include <string>

#include "core/train/session.hpp"

namespace gradrack {

/// Trains as the config says and writes metrics and weights into run.output.
Status run_train(Session& session);

/// Says, without training: plugins chosen, parameters by stage and group, what runs where, memory.
struct ExplainRequest {
  bool order = false;  ///< print each task too
};
Status run_explain(Session& session, const ExplainRequest& request);

/// Evaluates weights on the validation split.
struct EvalRequest {
  std::string checkpoint;  ///< folder or safetensors file; empty: run.output
};
Status run_eval(Session& session, const EvalRequest& request);

/// Writes text: the prompt, then what the model adds.
struct SampleRequest {
  std::string checkpoint;  ///< folder or safetensors file; empty: run.output
  std::string prompt;
  int64_t tokens = 200;
  double temperature = 1.0;  ///< > 0; 0: the likeliest token always
  int64_t top_k = 0;         ///< 0: all
  uint64_t seed = 1;
};
Status run_sample(Session& session, const SampleRequest& request);

/// SIGINT or SIGTERM once one arrived after install_stop_signals(), else 0. [any]
int stop_signal();
/// From now on the first SIGINT or SIGTERM asks for a stop at the end of the step; a second one
/// ends the process at once. [main]
void install_stop_signals();

}  // namespace gradrack
