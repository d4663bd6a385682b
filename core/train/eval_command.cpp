// SPDX-License-Identifier: Apache-2.0
// `gradrack eval`: loss of saved weights on the validation split.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "core/train/commands.hpp"
#include "core/train/evaluate.hpp"
#include "core/train/weights.hpp"

namespace gradrack {

Status run_eval(Session& session, const EvalRequest& request) {
  const StopSignals stops;
  GR_ASSIGN(const std::unique_ptr<Programs> programs, Programs::make(session));
  GR_TRY(programs->plan_evaluations());
  GR_TRY(programs->allocate());
  const std::string& output = session.config.run.output;
  GR_TRY(load_weights({request.checkpoint.empty() ? output : request.checkpoint, request.mapping},
                      session, *programs->setup().model->choice, &programs->store()));
  GR_ASSIGN(const Evaluation result, evaluate(*programs));
  std::fputs(fmt::format("loss {:.6f}  perplexity {:.4f}  targets {:.0f}  batches {}{}\n",
                         result.loss, std::exp(result.loss), result.targets, result.batches,
                         result.partial ? "  (partial)" : "")
                 .c_str(),
             stdout);
  const std::vector<std::string>& names = programs->rules().objectives();
  for (size_t k = 0; k < names.size() && names.size() > 1; ++k) {
    const ObjectiveMean& each = result.objectives[k];
    std::fputs(
        fmt::format("  {} {:.6f}  targets {:.0f}\n", names[k], each.mean(), each.targets).c_str(),
        stdout);
  }
  return stopped_early("evaluation");
}

}  // namespace gradrack
