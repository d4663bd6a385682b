// SPDX-License-Identifier: Apache-2.0
// make_schedule: a scheduler is asked, and program order taken where its answer is no use. See
// schedule.hpp.
#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/predict.hpp"
#include "core/schedule/schedule.hpp"

namespace gradrack {

namespace {

bool worth_it(int64_t ns, int64_t sequential_ns) {
  return static_cast<double>(ns) < (1 - kLeastGain) * static_cast<double>(sequential_ns);
}

std::string ms_text(int64_t ns) { return fmt::format("{:.3f} ms", static_cast<double>(ns) / 1e6); }

class Asking {
 public:
  explicit Asking(const ScheduleRequest& request)
      : request_(request), table_(*request.table), scheduler_(*request.scheduler) {}

  Result<Schedule> run() {
    gr_error_t err = {};
    const int32_t code = scheduler_.streams(scheduler_.self, &asked_, &err);
    if (code == GR_UNSUPPORTED) return in_program_order(status_from(code, err).message());
    if (code != GR_OK) return status_from(code, err).with_context(who());
    const std::string hopeless = request_.auto_off ? why_not_ask() : "";
    if (!hopeless.empty()) return in_program_order(hopeless);
    return weigh();
  }

 private:
  std::string who() const { return "scheduler " + request_.scheduler_name; }

  Schedule in_program_order(const std::string& reason) const {
    Schedule out = program_order(table_);
    out.fallback_reason = who() + ": " + reason;
    return out;
  }

  /// Why no answer could be faster than program order; "" when one might be. A scheduler that never
  /// asks for more than one stream is asked: it may want program order, as `sequential` does.
  std::string why_not_ask() const {
    if (asked_ <= 1) {
      if (request_.streams_option.empty()) return "";
      return fmt::format("it asks for one stream: set its option '{}' to 2 or more",
                         request_.streams_option);
    }
    if (request_.max_streams <= 1) {
      return request_.one_stream.empty() ? "the devices have one stream" : request_.one_stream;
    }
    const int64_t chain = longest_chain_ns(table_), all = predict_sequential(table_);
    if (worth_it(chain, all)) return "";
    return fmt::format(
        "fewer than two independent stages: the longest chain of tasks that need one another takes "
        "{} of {}, so next to nothing can run beside it",
        ms_text(chain), ms_text(all));
  }

  Result<Schedule> weigh() const {
    const uint32_t streams =
        std::clamp<uint32_t>(asked_, 1, std::max<uint32_t>(1, request_.max_streams));
    std::vector<uint32_t> order(table_.tasks.size()), stream(table_.tasks.size());
    const TaskRequest ask(table_, streams, request_.memory_limit);
    gr_error_t err = {};
    const int32_t code =
        scheduler_.schedule(scheduler_.self, ask.get(), order.data(), stream.data(), &err);
    const Status answer = status_from(code, err);
    if (code == GR_UNSUPPORTED) return in_program_order(answer.message());
    if (code != GR_OK) return answer.with_context(who());
    Result<Schedule> made = schedule_from(table_, order, stream, streams);
    if (!made.ok()) return in_program_order(made.status().message());
    made->scheduler = request_.scheduler_name;
    const std::string useless = request_.auto_off ? why_not_take(*made) : "";
    return useless.empty() ? std::move(*made) : in_program_order(useless);
  }

  std::string why_not_take(const Schedule& made) const {
    if (asked_ <= 1) {
      if (is_program_order(made)) return "";
      return "it asks for one stream, where no order is faster than another";
    }
    const int64_t ns = predict(table_, made).makespan_ns, all = predict_sequential(table_);
    if (worth_it(ns, all)) return "";
    return fmt::format("no gain predicted: its order takes {}, program order on one stream {}",
                       ms_text(ns), ms_text(all));
  }

  const ScheduleRequest& request_;
  const TaskTable& table_;
  const gr_scheduler_t& scheduler_;
  uint32_t asked_ = 1;
};

}  // namespace

Result<Schedule> make_schedule(const ScheduleRequest& request) {
  Schedule made;
  if (request.scheduler == nullptr) {
    made = program_order(*request.table);
  } else {
    GR_ASSIGN(made, Asking(request).run());
  }
  set_prediction(*request.table, &made);
  return made;
}

}  // namespace gradrack
