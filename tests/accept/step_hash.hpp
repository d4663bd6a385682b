// SPDX-License-Identifier: Apache-2.0
// StepHash: hashes of all that training steps change, to compare runs bit by bit.
//
// For the programs of the acceptance scripts. Parameters, optimizer state and buffers as they are
// in the store, each class as a whole and the tensors of each part of the model by themselves, and
// the bits of every loss.
#pragma once

#include <map>
#include <string>

#include "core/train/trainer.hpp"

namespace CLI {
class App;
}

namespace gradrack {

struct StepHash {
  /// "parameters", "state blocks.0", ..., "losses" -> 32 hexadecimal digits.
  std::map<std::string, std::string> of;
  int64_t updates = 0;

  /// The first entry in which two differ, or that one of them lacks; "" when they are equal.
  std::string first_difference(const StepHash& other) const;
};

/// Trains `steps` steps and hashes what they changed. [exec]
Result<StepHash> hash_of_steps(Trainer& trainer, int64_t steps);

/// CONFIG --steps N [--set a.b=c]... [--plugin-path DIR]...
void add_session_options(CLI::App& app, SessionRequest* session, int64_t* steps);

}  // namespace gradrack
