// SPDX-License-Identifier: Apache-2.0
// Stop signals: a flag that loops look at between steps. The earlier handlers come back with the
// second signal, so that a run that hangs can still be ended from the keyboard.
#include <atomic>
#include <csignal>

#include "core/train/commands.hpp"

namespace gradrack {

namespace {

static_assert(std::atomic<int>::is_always_lock_free, "a handler may only touch lock-free atomics");
std::atomic<int> g_stop_signal{0};  // NOLINT: a signal handler can reach nothing else

void on_signal(int number) {
  int none = 0;
  if (!g_stop_signal.compare_exchange_strong(none, number)) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

}  // namespace

int stop_signal() { return g_stop_signal.load(std::memory_order_relaxed); }

void install_stop_signals() {
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace gradrack
