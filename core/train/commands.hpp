// SPDX-License-Identifier: Apache-2.0
// The commands that run or plan a model; core/cli parses their arguments and maps errors to exit
// codes.
//
// Each takes a Session, writes its results to stdout (events and progress go to stderr) and returns
// a Status. GR_NONFINITE: training stopped on a non-finite loss. GR_CANCELLED: stopped by a signal,
// whose number stop_signal() gives. [main]
#pragma once

#include <string>

#include "core/base/stop_signal.hpp"
#include "core/train/session.hpp"

namespace gradrack {

/// Trains as the config says and writes metrics and weights into run.output.
struct TrainRequest {
  bool strict_plans = false;  ///< a plan made after the warm-up is an error
  bool fresh_plans = false;   ///< every microbatch makes its plan anew
};
Status run_train(Session& session, const TrainRequest& request);

/// Says, without training: plugins chosen, parameters by stage and group, what runs where, memory.
struct ExplainRequest {
  bool order = false;  ///< print each task too
  bool plans = false;  ///< print each plan's key, and what the cache did
  bool graph = false;  ///< print each plan's lowered graph
};
Status run_explain(Session& session, const ExplainRequest& request);

/// Evaluates weights on the validation split.
struct EvalRequest {
  std::string checkpoint;  ///< folder or safetensors file; empty: run.output
  std::string mapping;     ///< of its names, as in run.init_from; empty: they are the model's
};
Status run_eval(Session& session, const EvalRequest& request);

/// Writes text: the prompt, then what the model adds.
struct SampleRequest {
  std::string checkpoint;  ///< folder or safetensors file; empty: run.output
  std::string mapping;     ///< as of EvalRequest
  std::string prompt;
  int64_t tokens = 200;
  double temperature = 1.0;  ///< > 0; 0: the likeliest token always
  int64_t top_k = 0;         ///< 0: all
  uint64_t seed = 1;
};
Status run_sample(Session& session, const SampleRequest& request);

/// Shows the first batches as text and shapes; needs the data plugin alone.
struct InspectDataRequest {
  int64_t batches = 1;
  int64_t rows = 4;         ///< shown of each, at most
  int64_t first = 0;        ///< index of the first batch
  bool validation = false;  ///< of the validation split
};
Status run_inspect_data(Session& session, const InspectDataRequest& request);

/// Times steps of a run, whole and by operator, against the machine's peaks. Writes nothing of the
/// run's.
struct BenchRequest {
  int64_t steps = 20;  ///< timed whole; >= 1
  int64_t warmup = 3;  ///< before them
  int64_t timed = 5;   ///< behind them, task by task
  bool json = false;   ///< one JSON object in place of text
};
Status run_bench(Session& session, const BenchRequest& request);

/// GR_CANCELLED "WHAT was stopped by signal N" once a stop signal arrived, else OK. [any]
inline Status stopped_early(const std::string& what) {
  if (stop_signal() == 0) return {};
  return {GR_CANCELLED, what + " was stopped by signal " + std::to_string(stop_signal())};
}

}  // namespace gradrack
