// SPDX-License-Identifier: Apache-2.0
// Stop signals: see stop_signal.hpp.
#include "core/base/stop_signal.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <string_view>

namespace gradrack {
namespace {

constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};
constexpr size_t kStopCount = std::size(kStops);

// Touched by handlers: lock-free atomics are all that is safe there. Made by StopSignals(), before
// a handler can ask for it.
struct Shared {
  std::atomic<int> pending{0};
  std::atomic<unsigned> grace_s{0};
};

Shared& shared() {
  static Shared all;
  return all;
}

// Of [main] alone.
struct Replaced {
  int scopes = 0;
  struct sigaction stops[kStopCount] = {}, pipe = {}, alarm = {};
};

Replaced& replaced() {
  static Replaced all;
  return all;
}

extern "C" void on_stop_signal(int number) {
  const int error = errno;
  int none = 0;
  if (!shared().pending.compare_exchange_strong(none, number)) {
    // The second one: as if nobody had asked for the first.
    ::signal(number, SIG_DFL);
    ::raise(number);
    return;
  }
  if (const unsigned seconds = shared().grace_s.load(); seconds > 0) ::alarm(seconds);
  errno = error;
}

extern "C" void on_grace_over(int) {
  constexpr std::string_view kText =
      "error: the grace time after the stop signal is over: ended without waiting for a "
      "checkpoint; the last one is whole\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(128 + shared().pending.load());
}

void replace(int number, void (*handler)(int), struct sigaction* old) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(number, nullptr, old);
  if (old->sa_handler == SIG_IGN && number != SIGALRM) return;  // somebody wants it so
  sigaction(number, &action, nullptr);
}

}  // namespace

int stop_signal() { return shared().pending.load(); }

StopSignals::StopSignals() {
  Replaced& old = replaced();
  if (old.scopes++ > 0) return;
  shared().pending.store(0);
  for (size_t k = 0; k < kStopCount; ++k) replace(kStops[k], on_stop_signal, &old.stops[k]);
  replace(SIGPIPE, SIG_IGN, &old.pipe);
  replace(SIGALRM, on_grace_over, &old.alarm);
}

StopSignals::~StopSignals() {
  Replaced& old = replaced();
  if (--old.scopes > 0) return;
  for (size_t k = 0; k < kStopCount; ++k) sigaction(kStops[k], &old.stops[k], nullptr);
  sigaction(SIGPIPE, &old.pipe, nullptr);
  if (stop_signal() == 0) sigaction(SIGALRM, &old.alarm, nullptr);  // else it may yet be needed
}

void set_stop_grace(int64_t seconds) {
  shared().grace_s.store(
      static_cast<unsigned>(std::clamp<int64_t>(seconds, 0, std::numeric_limits<unsigned>::max())));
}

}  // namespace gradrack
