// SPDX-License-Identifier: Apache-2.0
// Checkpointer: saves a run in the background while it goes on.
//
// Beside the training loop. save() copies the store between two steps and hands the copy to one
// thread that writes it, lets older checkpoints go, and is waited for by the next save. Invariant:
// a file holds one step's values; at most one save is under way; no failure is lost: it comes back
// at the next save() or wait().
#pragma once

#include <chrono>
#include <future>
#include <map>
#include <string>

#include "core/config/run_config.hpp"
#include "core/state/checkpoint_folder.hpp"
#include "core/state/snapshot.hpp"
#include "core/train/trainer_state.hpp"

namespace gradrack {

class Checkpointer {
 public:
  /// `folder`: ".../checkpoints". Takes memory for a copy of `store` with the first save.
  Checkpointer(std::string folder, const CheckpointSection& rules, std::string run_id,
               std::string model, EventSink& events);
  ~Checkpointer();

  const std::string& run_id() const { return run_id_; }
  /// A run that goes on from a checkpoint has it already.
  void set_saved(int64_t step, bool finished);

  /// Waits for the save before, copies `store`, starts writing. `averages`: states that stand for
  /// parameters in weights.safetensors. `eval_loss`: of an evaluation at this very step. Nothing is
  /// done where this state is saved already. Errors, of the save before too: an event
  /// "checkpoint_error", and returned where checkpoint.on_error is `stop`. The save before, where
  /// it succeeded: an event "checkpoint_saved" with what it took. [main]
  Status save(const Store& store, const std::map<std::string, std::string>& averages,
              const TrainerState& state, std::optional<double> eval_loss);
  /// Until the save under way is over; its error, whatever on_error says. [main]
  Status wait();

 private:
  Status settle(const Status& done);
  void report_saved() const;
  Status write(const CheckpointContent& content);

  const std::string folder_;
  const CheckpointSection rules_;
  const std::string run_id_, model_;
  EventSink& events_;
  StoreSnapshot snapshot_;
  std::future<Status> under_way_;
  // Of the save under way: its thread's until wait() has joined it.
  bool written_ = false;
  std::chrono::nanoseconds write_time_{};
  std::chrono::nanoseconds copy_time_{};
  int64_t started_ = -1;  // the step that is being saved, or was last
  bool finished_ = false;
  int64_t saved_ = -1;
};

}  // namespace gradrack
