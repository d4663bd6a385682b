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
  install_stop_signals();
  GR_ASSIGN(const Setup setup, make_setup(session));
  GR_ASSIGN(Feed feed, make_feed(session, setup));
  const RunSection& run = session.config.run;
  Programs programs;
  GR_ASSIGN(const std::vector<int64_t> sizes,
            evaluation_rows(feed, run.batch_size, run.eval_batches));
  for (const int64_t rows : sizes) GR_TRY(programs.plan_evaluation(session, setup, feed, rows));
  GR_TRY(programs.allocate(setup, feed, static_cast<uint64_t>(run.seed)));
  GR_TRY(load_weights(request.checkpoint.empty() ? run.output : request.checkpoint,
                      &programs.store()));
  GR_ASSIGN(const Evaluation result, evaluate(programs, feed, run.batch_size, run.eval_batches));
  std::fputs(fmt::format("loss {:.6f}  perplexity {:.4f}  targets {:.0f}  batches {}{}\n",
                         result.loss, std::exp(result.loss), result.targets, result.batches,
                         result.partial ? "  (partial)" : "")
                 .c_str(),
             stdout);
  return stopped_early("evaluation");
}

}  // namespace gradrack
