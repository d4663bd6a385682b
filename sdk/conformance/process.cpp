// SPDX-License-Identifier: Apache-2.0
// Children of the kit: see process.hpp.
#include "sdk/conformance/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

extern char** environ;

namespace gradrack::conform {
namespace {

constexpr size_t kKeptOutput = 8192;

void close_one(int* fd) {
  if (*fd >= 0) ::close(*fd);
  *fd = -1;
}

// An unlinked file holding `text`, at its beginning: a stdin that never blocks either side.
int input_file(const std::string& text) {
  FILE* file = std::tmpfile();
  if (file == nullptr) return -1;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  const int fd = written ? ::fcntl(::fileno(file), F_DUPFD_CLOEXEC, 10) : -1;
  std::fclose(file);
  if (fd >= 0) ::lseek(fd, 0, SEEK_SET);
  return fd;
}

// Reads what is there. False when the other side has closed.
bool drain(int fd, std::string* into) {
  char bytes[4096];
  for (;;) {
    const ssize_t got = ::read(fd, bytes, sizeof bytes);
    if (got > 0) {
      into->append(bytes, static_cast<size_t>(got));
    } else if (got == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

int spawn(const std::vector<std::string>& arguments, int input, int report, int text, pid_t* pid) {
  std::vector<char*> argv = {const_cast<char*>("gradrack-conform")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, text, 1);
  posix_spawn_file_actions_adddup2(&actions, text, 2);
  posix_spawn_file_actions_adddup2(&actions, report, Process::kReportFd);
  const int error = posix_spawn(pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

Result<Process> Process::start(const std::vector<std::string>& arguments,
                               const std::string& input) {
  Process process;
  int report[2] = {-1, -1}, text[2] = {-1, -1};
  int in = input_file(input);
  const bool ready = in >= 0 && ::pipe2(report, O_CLOEXEC) == 0 && ::pipe2(text, O_CLOEXEC) == 0;
  // Above kReportFd, so that no dup2 of the child overwrites a source of another.
  for (int* end : {&report[1], &text[1]}) {
    const int high = ready ? ::fcntl(*end, F_DUPFD_CLOEXEC, 10) : -1;
    close_one(end);
    *end = high;
  }
  process.report_ = report[0];
  process.text_ = text[0];
  const int error = ready ? spawn(arguments, in, report[1], text[1], &process.pid_) : errno;
  close_one(&in);
  close_one(&report[1]);
  close_one(&text[1]);
  if (error != 0) {
    process.pid_ = -1;
    return internal_error(std::string("the kit cannot start a child: ") + std::strerror(error));
  }
  for (const int fd : {process.report_, process.text_}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  process.pid_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, process.pid_, 0));
  return process;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pid_fd_(std::exchange(other.pid_fd_, -1)),
      report_(std::exchange(other.report_, -1)),
      text_(std::exchange(other.text_, -1)),
      wait_status_(other.wait_status_),
      reaped_(other.reaped_),
      lines_(std::move(other.lines_)),
      output_(std::move(other.output_)) {}

Process::~Process() {
  if (pid_ > 0 && !reaped_) {
    kill();
    while (::waitpid(pid_, &wait_status_, 0) < 0 && errno == EINTR) {
    }
  }
  close_all();
}

void Process::close_all() {
  for (int* fd : {&pid_fd_, &report_, &text_}) close_one(fd);
}

void Process::kill() {
  if (pid_ > 0 && !reaped_) ::kill(pid_, SIGKILL);
}

void Process::reap() {
  if (reaped_ || ::waitpid(pid_, &wait_status_, WNOHANG) != pid_) return;
  reaped_ = true;
  // What a grandchild may still write is nobody's report.
  if (report_ >= 0) (void)drain(report_, &lines_);
  if (text_ >= 0) (void)drain(text_, &output_);
  close_all();
}

void Process::pump(double seconds) {
  pollfd waits[3] = {{report_, POLLIN, 0}, {text_, POLLIN, 0}, {pid_fd_, POLLIN, 0}};
  // Without a pidfd the end is looked for every 5 ms.
  const int most = pid_fd_ >= 0 ? static_cast<int>(seconds * 1000) + 1 : 5;
  (void)::poll(waits, 3, most);
  if (report_ >= 0 && !drain(report_, &lines_)) close_one(&report_);
  if (text_ >= 0 && !drain(text_, &output_)) close_one(&text_);
  if (output_.size() > 2 * kKeptOutput) output_.erase(0, output_.size() - kKeptOutput);
  reap();
}

bool Process::read_line(double seconds, std::string* line) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const size_t at = lines_.find('\n');
    if (at != std::string::npos) {
      *line = lines_.substr(0, at);
      lines_.erase(0, at + 1);
      return true;
    }
    const double left = std::chrono::duration<double>(end - Clock::now()).count();
    if (reaped_ || left <= 0) return false;
    pump(left);
  }
}

std::string Process::end_text() const {
  if (!reaped_) return "still running";
  if (WIFSIGNALED(wait_status_)) {
    const int number = WTERMSIG(wait_status_);
    const char* name = sigabbrev_np(number);
    return std::string("SIG") + (name != nullptr ? name : "?") + " (" + strsignal(number) + ")";
  }
  const int code = WEXITSTATUS(wait_status_);
  return code == 0 ? "" : "exit code " + std::to_string(code);
}

}  // namespace gradrack::conform
