// SPDX-License-Identifier: Apache-2.0
// Stop signals: see stop_signal.hpp.
#include "core/base/stop_signal.hpp"

#include <signal.h>

#include <atomic>

namespace gradrack {
namespace {

// Touched by the handler: a lock-free atomic is all that is safe there.
std::atomic<int>& pending_signal() {
  static std::atomic<int> signal_number{0};
  return signal_number;
}

extern "C" void on_stop_signal(int number) { pending_signal().store(number); }

}  // namespace

int stop_signal() { return pending_signal().load(); }

void install_stop_signals() {
  (void)pending_signal();  // made before a handler can ask for it
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    action.sa_handler = on_stop_signal;
    action.sa_flags =
        static_cast<int>(SA_RESETHAND) | SA_RESTART;  // the second one has its own way
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace gradrack
