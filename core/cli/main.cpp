// SPDX-License-Identifier: Apache-2.0
// The `gradrack` program. The command line is in app.cpp, so that tests can call it; plugins are
// stopped here, once a process, however the command ended.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "core/base/exit_codes.hpp"
#include "core/cli/app.hpp"
#include "core/plugin/lifecycle.hpp"

namespace {

// A file of the run that got the number of a closed stdout would receive what is printed. What is
// opened in its place cannot be written, so that printing fails as it should.
void fill_standard_descriptors() {
  for (int opened = 0; opened >= 0 && opened <= STDERR_FILENO;) {
    opened = ::open("/dev/null", O_RDONLY);
    if (opened > STDERR_FILENO) ::close(opened);
  }
}

void say(std::string_view line) {
  const ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
  (void)ignored;  // nobody else to tell
}

// No memory left inside a function that may not throw, of a library mostly: still one line for the
// user and a documented exit code. Anything else that gets here is a bug, and worth a core file.
[[noreturn]] void end_uncaught() {
  if (const std::exception_ptr exception = std::current_exception()) {
    try {
      std::rethrow_exception(exception);
    } catch (const std::bad_alloc&) {
      say("error: out of memory\n");
      ::_exit(gradrack::kExitInternal);
    } catch (...) {
    }
  }
  say("error: a bug: an exception that nothing caught\n");
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(end_uncaught);
  fill_standard_descriptors();
  return gradrack::end_plugins(gradrack::run_cli(argc, argv));
}
