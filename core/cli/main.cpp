// SPDX-License-Identifier: Apache-2.0
// The `gradrack` program. The command line is in app.cpp, so that tests can call it; plugins are
// stopped here, once a process, however the command ended.
#include <fcntl.h>
#include <unistd.h>

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

}  // namespace

int main(int argc, char** argv) {
  fill_standard_descriptors();
  return gradrack::end_plugins(gradrack::run_cli(argc, argv));
}
