// SPDX-License-Identifier: Apache-2.0
// Recorder: see recorder.hpp.
#include "core/exec/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace gradrack {

Recording::~Recording() {
  if (handle_ == nullptr) return;
  const auto lock = device_->plan_calls();
  capture_->destroy(capture_->self, handle_);
}

namespace {

const gr_capture_t* capture_of(const Device& device) {
  const gr_backend_t* const backend = device.backend();
  if (backend->get_extension == nullptr) return nullptr;
  const void* const found = backend->get_extension(backend->self, GR_EXT_CAPTURE);
  return static_cast<const gr_capture_t*>(found);
}

/// Steps of a section that become one recording.
struct Group {
  const Device* device = nullptr;
  std::vector<uint32_t> steps;
  std::vector<uint32_t> lanes;
};

class Recorder {
 public:
  Recorder(const Plan& plan, std::span<const Step> steps, RecordedSteps* out)
      : plan_(plan), steps_(steps), out_(*out), refused_(steps.size(), false) {
    for (const Step& step : steps_) {
      if (capture_.count(step.device) > 0) continue;
      capture_[step.device] = capture_of(*step.device);
      if (capture_[step.device] == nullptr) {
        note(*step.device, "it does not offer " GR_EXT_CAPTURE);
      }
    }
  }

  Status run() {
    // Each time that a backend refuses something, all begins anew without that. Recordings made
    // before stay with the others: they cannot end while the devices are held.
    do {
      again_ = false;
      out_.actions.clear();
      out_.recorded = 0;
      cut();
      for (uint32_t k = 0; k < steps_.size() && !again_;) GR_TRY(add_section(&k));
    } while (again_);
    note_refused_steps();
    return {};
  }

 private:
  void note(const Device& device, const std::string& why) {
    out_.notes.push_back(fmt::format(
        "backend {}: its tasks are launched one by one in every step: {}", device.name(), why));
  }

  bool recorded(uint32_t k) const {
    return !refused_[k] && capture_.at(steps_[k].device) != nullptr;
  }

  bool records_events(const Device* device) const {
    return (capture_.at(device)->flags & GR_CAPTURE_EVENTS) != 0;
  }

  /// `k` and `on`, if they are in one section, are in one recording, which keeps their order.
  bool joined(uint32_t k, uint32_t on) const {
    return recorded(k) && recorded(on) && steps_[k].device == steps_[on].device &&
           records_events(steps_[k].device);
  }

  /// Numbers the sections. Within one, plain steps are launched before recordings are replayed: so
  /// a step begins another one where it, or what it waits for, would then come too late.
  void cut() {
    section_.assign(steps_.size(), 0);
    awaited_inside_.assign(steps_.size(), false);
    awaited_outside_.assign(steps_.size(), false);
    std::set<uint32_t> lanes;  // those of this section in which a step is recorded
    uint32_t section = 0;
    for (uint32_t k = 0; k < steps_.size(); ++k) {
      bool cuts = !recorded(k) && lanes.count(steps_[k].lane) > 0;
      for (const StepWait& wait : steps_[k].waits) {
        const bool both_plain = !recorded(k) && !recorded(wait.on);
        cuts |= section_[wait.on] == section && !both_plain && !joined(k, wait.on);
      }
      if (cuts) {
        ++section;
        lanes.clear();
      }
      section_[k] = section;
      if (recorded(k)) lanes.insert(steps_[k].lane);
      for (const StepWait& wait : steps_[k].waits) {
        (section_[wait.on] == section ? awaited_inside_ : awaited_outside_)[wait.on] = true;
      }
    }
  }

  /// The actions of the section that begins at `*next`; moves it to the next one.
  Status add_section(uint32_t* next) {
    const uint32_t first = *next;
    std::vector<Group> groups;
    for (; *next < steps_.size() && section_[*next] == section_[first]; ++*next) {
      if (recorded(*next)) {
        add_to_group(*next, &groups);
      } else {
        add_plain(*next);
      }
    }
    for (const Group& group : groups) add_waits(group);
    for (const Group& group : groups) {
      GR_TRY(record(group));
      if (again_) return {};
    }
    for (const Group& group : groups) {
      for (const uint32_t k : group.steps) {
        if (awaited_outside_[k]) out_.actions.push_back(record_action(steps_[k]));
      }
    }
    return {};
  }

  void add_plain(uint32_t k) {
    const Step& step = steps_[k];
    for (const StepWait& wait : step.waits) {
      out_.actions.push_back(wait_action(steps_, step, wait));
    }
    out_.actions.push_back(launch_action(step));
    if (step.record != nullptr) out_.actions.push_back(record_action(step));
  }

  void add_to_group(uint32_t k, std::vector<Group>* groups) const {
    const Step& step = steps_[k];
    const bool together = records_events(step.device);
    auto group = std::find_if(groups->begin(), groups->end(), [&](const Group& g) {
      return g.device == step.device && (together || g.lanes[0] == step.lane);
    });
    if (group == groups->end()) group = groups->insert(groups->end(), Group{step.device, {}, {}});
    group->steps.push_back(k);
    if (std::find(group->lanes.begin(), group->lanes.end(), step.lane) == group->lanes.end()) {
      group->lanes.push_back(step.lane);
    }
  }

  /// What the group's lanes wait for from before the section: each event once a lane.
  void add_waits(const Group& group) {
    std::set<std::pair<uint32_t, gr_event_t*>> seen;
    for (const uint32_t k : group.steps) {
      for (const StepWait& wait : steps_[k].waits) {
        if (section_[wait.on] == section_[k]) continue;
        if (!seen.insert({steps_[k].lane, wait.event}).second) continue;
        out_.actions.push_back(wait_action(steps_, steps_[k], wait));
      }
    }
  }

  Status record(const Group& group) {
    const gr_capture_t* const capture = capture_.at(group.device);
    auto streams = std::make_unique<std::vector<gr_stream_t*>>();
    for (const uint32_t lane : group.lanes) {
      const auto in_lane = [&](uint32_t k) { return steps_[k].lane == lane; };
      const auto k = std::find_if(group.steps.begin(), group.steps.end(), in_lane);
      streams->push_back(steps_[*k].stream);
    }
    gr_error_t err = {};
    int32_t code = capture->begin(capture->self, streams->data(),
                                  static_cast<uint32_t>(streams->size()), &err);
    if (code != GR_OK) return refused(group, code, err);
    for (const uint32_t k : group.steps) {
      code = record_step(k, &err);
      if (code == GR_OK) continue;
      gr_error_t ignored = {};
      (void)capture->end(capture->self, streams->front(), nullptr, &ignored);
      if (code == GR_UNSUPPORTED && launch_failed_) return refused_step(k, err);
      return refused(group, code, err);
    }
    gr_recording_t* recording = nullptr;
    code = capture->end(capture->self, streams->front(), &recording, &err);
    if (code != GR_OK) return refused(group, code, err);
    out_.recordings.emplace_back(group.device, capture, recording);
    out_.recorded += group.steps.size();
    Action action;
    action.kind = Action::kReplay;
    action.backend = group.device->backend();
    action.capture = capture;
    action.recording = recording;
    action.streams = *streams;
    out_.actions.push_back(action);
    out_.streams.push_back(std::move(streams));
    return {};
  }

  int32_t record_step(uint32_t k, gr_error_t* err) {
    const Step& step = steps_[k];
    launch_failed_ = false;
    for (const StepWait& wait : step.waits) {
      if (section_[wait.on] != section_[k]) continue;
      const int32_t code = perform(wait_action(steps_, step, wait), err);
      if (code != GR_OK) return code;
    }
    const int32_t code = launch(step, err);
    launch_failed_ = code != GR_OK;
    if (code != GR_OK || !awaited_inside_[k]) return code;
    return perform(record_action(step), err);
  }

  /// The backend does not record at all: only GR_UNSUPPORTED may be put up with.
  Status refused(const Group& group, int32_t code, const gr_error_t& err) {
    const Status status = status_from(code, err);
    if (code != GR_UNSUPPORTED) {
      return status.with_context("backend " + group.device->name() + ": recording a step");
    }
    note(*group.device, status.message());
    capture_[group.device] = nullptr;
    again_ = true;
    return {};
  }

  Status refused_step(uint32_t k, const gr_error_t& err) {
    refused_[k] = again_ = true;
    Refused& all = refused_by_[steps_[k].device];
    if (all.count++ == 0) {
      all.first = fmt::format("{}: {}", plan_.table.tasks[steps_[k].task].name,
                              status_from(GR_UNSUPPORTED, err).message());
    }
    return {};
  }

  void note_refused_steps() {
    for (const auto& [device, all] : refused_by_) {
      if (capture_.at(device) == nullptr) continue;  // said already
      out_.notes.push_back(fmt::format("backend {}: {} of {} tasks cannot be recorded: {}",
                                       device->name(), all.count, steps_.size(), all.first));
    }
  }

  struct Refused {
    size_t count = 0;
    std::string first;
  };

  const Plan& plan_;
  std::span<const Step> steps_;
  RecordedSteps& out_;
  std::map<const Device*, const gr_capture_t*> capture_;  // null: launched one by one
  std::vector<bool> refused_;                             // by its backend; by step, as below
  std::map<const Device*, Refused> refused_by_;
  std::vector<uint32_t> section_;
  std::vector<bool> awaited_inside_;   // by a step of its section
  std::vector<bool> awaited_outside_;  // by one of a later section
  bool launch_failed_ = false;
  bool again_ = false;
};

}  // namespace

Status record_steps(const Plan& plan, std::span<const Step> steps, RecordedSteps* out) {
  return Recorder(plan, steps, out).run();
}

}  // namespace gradrack
