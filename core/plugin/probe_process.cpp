// SPDX-License-Identifier: Apache-2.0
// Running the probe program: see probe_process.hpp.
#include "core/plugin/probe_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace gradrack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kNoiseBytes = 4096;
constexpr size_t kReportBytes = size_t{16} << 20;  // a report of more is no report
constexpr int kTickMs = 20;  // how late an end is seen while somebody else holds the pipes

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  int get() const { return number_; }

 private:
  int number_;
};

struct Pipe {
  Descriptor read, write;
};

Status system_error(const char* what) {
  return io_error(std::string(what) + ": " + std::strerror(errno));
}

// Both ends above the numbers that the child uses, so that putting one there overwrites no other.
Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("no pipe to the probe process");
  const Descriptor low_read(ends[0]);
  const Descriptor low_write(ends[1]);
  Pipe pipe{Descriptor(fcntl(ends[0], F_DUPFD_CLOEXEC, 4)),
            Descriptor(fcntl(ends[1], F_DUPFD_CLOEXEC, 4))};
  if (pipe.read.get() < 0 || pipe.write.get() < 0) return system_error("no pipe to the probe");
  fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

/// posix_spawn's two records, set up for one child.
class SpawnPlan {
 public:
  SpawnPlan(int noise, int report) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, noise, 1);
    posix_spawn_file_actions_adddup2(&actions_, noise, 2);
    posix_spawn_file_actions_adddup2(&actions_, report, 3);
    posix_spawn_file_actions_addclosefrom_np(&actions_, 4);
    posix_spawnattr_init(&attributes_);
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, 0);  // so that what it starts can be ended with it
    posix_spawnattr_setflags(
        &attributes_,
        static_cast<short>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP));
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  Result<pid_t> start(const std::string& program, const std::vector<std::string>& arguments) {
    std::vector<char*> words = {const_cast<char*>(program.c_str())};
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    pid_t child = 0;
    const int error =
        posix_spawn(&child, program.c_str(), &actions_, &attributes_, words.data(), environ);
    if (error == 0) return child;
    return io_error(program + " cannot be started: " + std::strerror(error));
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Reads what is there; closes at the end of the stream. What is beyond `most` bytes is dropped.
void drain(Descriptor* from, size_t most, std::string* into) {
  char buffer[4096];
  while (from->get() >= 0) {
    const ssize_t count = ::read(from->get(), buffer, sizeof buffer);
    if (count > 0) {
      into->append(buffer, std::min(static_cast<size_t>(count), most - into->size()));
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      from->close();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

int left_ms(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

// True once the child is dead; it stays a zombie, so that its number is not given away meanwhile.
bool has_ended(pid_t child) {
  siginfo_t info = {};
  const int code = waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
  return code != 0 || info.si_pid == child;
}

void collect_end(pid_t child, ProcessEnd* end) {
  kill(-child, SIGKILL);  // whatever it started and left
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (end->timed_out) return;
  if (WIFEXITED(status)) end->exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end->signal = WTERMSIG(status);
}

void watch(pid_t child, Pipe& noise, Pipe& report, int64_t time_limit_ms, ProcessEnd* end) {
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(time_limit_ms);
  bool ended = false;
  while (!ended) {
    const int left = left_ms(deadline);
    if (left == 0) {
      end->timed_out = true;
      return;
    }
    pollfd waits[2] = {{noise.read.get(), POLLIN, 0}, {report.read.get(), POLLIN, 0}};
    poll(waits, 2, std::min(left, kTickMs));
    ended = has_ended(child);  // before the reads: what it wrote is then in the pipes
    drain(&noise.read, kNoiseBytes, &end->noise);
    drain(&report.read, kReportBytes, &end->report);
    // Both pipes at their end: death is due, and polling no descriptor would only sleep.
    if (!ended && noise.read.get() < 0 && report.read.get() < 0) poll(nullptr, 0, 1);
  }
}

}  // namespace

Result<ProcessEnd> run_probe_process(const std::string& program,
                                     const std::vector<std::string>& arguments,
                                     int64_t time_limit_ms) {
  GR_ASSIGN(Pipe noise, make_pipe());
  GR_ASSIGN(Pipe report, make_pipe());
  SpawnPlan plan(noise.write.get(), report.write.get());
  GR_ASSIGN(const pid_t child, plan.start(program, arguments));
  noise.write.close();
  report.write.close();
  ProcessEnd end;
  watch(child, noise, report, time_limit_ms, &end);
  collect_end(child, &end);
  return end;
}

}  // namespace gradrack
