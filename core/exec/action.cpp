// SPDX-License-Identifier: Apache-2.0
// Actions: see action.hpp.
#include "core/exec/action.hpp"

namespace gradrack {

int32_t launch(const Step& step, gr_error_t* err) {
  const gr_backend_t* const backend = step.device->backend();
  if (step.kernel == nullptr) {
    return backend->copy(backend->self, step.outputs[0], step.inputs[0], step.stream, err);
  }
  return backend->launch(backend->self, step.kernel, step.inputs, step.outputs, step.workspace,
                         step.stream, err);
}

int32_t perform(const Action& action, gr_error_t* err) {
  const gr_backend_t* const backend = action.backend;
  switch (action.kind) {
    case Action::kWait:
      return backend->stream_wait(backend->self, action.stream, action.event, err);
    case Action::kHostWait:
      return backend->event_synchronize(backend->self, action.event, err);
    case Action::kLaunch:
      return launch(*action.step, err);
    case Action::kRecord:
      return backend->event_record(backend->self, action.event, action.stream, err);
    case Action::kReplay:
      return action.capture->replay(action.capture->self, action.recording, action.streams.data(),
                                    static_cast<uint32_t>(action.streams.size()), err);
    case Action::kMark:
      return action.timing->mark(action.timing->self, action.mark, action.stream, err);
  }
  return GR_INTERNAL;
}

namespace {

/// An action of the step's own stream and backend.
Action stream_action(Action::Kind kind, const Step& step) {
  Action action;
  action.kind = kind;
  action.backend = step.device->backend();
  action.stream = step.stream;
  return action;
}

}  // namespace

Action wait_action(std::span<const Step> steps, const Step& step, const StepWait& wait) {
  const Device* const other = steps[wait.on].device;
  Action action = stream_action(other == step.device ? Action::kWait : Action::kHostWait, step);
  action.backend = other->backend();
  action.event = wait.event;
  return action;
}

Action record_action(const Step& step) {
  Action action = stream_action(Action::kRecord, step);
  action.event = step.record;
  return action;
}

Action launch_action(const Step& step) {
  Action action = stream_action(Action::kLaunch, step);
  action.step = &step;
  return action;
}

std::vector<Action> plain_actions(std::span<const Step> steps) {
  std::vector<Action> actions;
  for (const Step& step : steps) {
    for (const StepWait& wait : step.waits) actions.push_back(wait_action(steps, step, wait));
    actions.push_back(launch_action(step));
    if (step.record != nullptr) actions.push_back(record_action(step));
  }
  return actions;
}

}  // namespace gradrack
