// SPDX-License-Identifier: Apache-2.0
// gradrack-probe: loads one plugin library, so that nobody else has to take the risk.
//
//   gradrack-probe LIBRARY                 its verdict as JSON on stdout
//   gradrack-probe --manifest LIBRARY      the manifest that belongs beside it, on stdout
//   gradrack-probe --report-fd N LIBRARY   stages and the verdict on descriptor N: for the host
//
// Exit code 0 when there is a verdict, good or bad, or a manifest; 3 when there is no manifest for
// it; 2 for wrong words. Invariant: nothing that the library writes to stdout gets between the
// lines of the report: stdout is moved away before.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "core/plugin/describe.hpp"
#include "core/plugin/library.hpp"
#include "core/plugin/probe_report.hpp"
#include "core/plugin/threads.hpp"

namespace gradrack {
namespace {

void write_all(int descriptor, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(descriptor, text.data() + done, text.size() - done);
    if (count <= 0) _exit(2);
    done += static_cast<size_t>(count);
  }
}

void tell_stage(int descriptor, const std::string& words) {
  if (descriptor != 1) write_all(descriptor, "stage " + words + "\n");
}

// Files mapped now that were not before: what the library pulled in, itself aside.
std::vector<std::string> newcomers(const std::vector<std::string>& before,
                                   const std::string& library) {
  std::vector<std::string> added;
  for (const std::string& path : mapped_libraries()) {
    if (path != library && std::find(before.begin(), before.end(), path) == before.end()) {
      added.push_back(path);
    }
  }
  return added;
}

// Asked for the sake of what may happen; the answer counts when the factory is used.
void try_probes(const Library& library, int descriptor) {
  for (const Factory& factory : library.factories) {
    if (factory.probe == nullptr) continue;
    tell_stage(descriptor, "in the probe of " + factory.kind + " '" + factory.name + "'");
    gr_error_t err = {};
    try {
      (void)factory.probe(factory.host, &err);
    } catch (...) {  // refused where it is used, with a better message
    }
  }
}

// The load alone, so that a death in a constructor can be told from one in entry.
bool open_first(const std::string& path) {
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
}

Status enter(const std::string& path, int descriptor, Verdict* verdict) {
  const std::vector<ThreadName> before = threads_alive();
  tell_stage(descriptor, "in its entry");
  const Result<Library> library = load_library(path);
  if (!library.ok()) return library.status();
  const std::vector<ThreadName> started = threads_since(before);
  if (!started.empty()) {
    return invalid_argument("its entry started " + thread_list(started) +
                            ": start threads in create, and join them in stop");
  }
  *verdict = answers_of(*library);
  try_probes(*library, descriptor);
  return {};
}

ProbeReport probe_here(const std::string& path, int descriptor) {
  ProbeReport report;
  const std::vector<std::string> before = mapped_libraries();
  tell_stage(descriptor, "while it was loaded (its constructors run then)");
  report.lasting = open_first(path);
  report.verdict.status = enter(path, descriptor, &report.verdict);
  for (const std::string& file : newcomers(before, path)) {
    if (const auto stamp = stamp_file(file)) report.libraries.push_back(*stamp);
  }
  report.verdict.runtimes = mapped_runtimes();
  return report;
}

// No core files, and no life beyond the host's.
void live_carefully() {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

// The manifest on the first stdout, whatever the library prints.
int print_manifest(const char* library) {
  live_carefully();
  const int own = fcntl(1, F_DUPFD_CLOEXEC, 10);
  dup2(2, 1);
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(library, error);
  const Result<Manifest> manifest = load_and_describe(path.string());
  if (!manifest.ok()) {
    std::fprintf(stderr, "%s: %s\n", library, manifest.status().message().c_str());
    _exit(3);
  }
  write_all(own, manifest_text(*manifest));
  _exit(0);
}

int probe_program(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--manifest") == 0) return print_manifest(argv[2]);
  int descriptor = 1;
  int word = 1;
  if (argc > 2 && std::strcmp(argv[1], "--report-fd") == 0) {
    descriptor = std::atoi(argv[2]);
    word = 3;
  }
  if (argc != word + 1 || descriptor < 1 || fcntl(descriptor, F_GETFD) < 0) {
    std::fputs("usage: gradrack-probe [--manifest | --report-fd N] LIBRARY\n", stderr);
    return 2;
  }
  live_carefully();
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 10);
  if (descriptor == 1) dup2(2, 1);  // the library's stdout
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(argv[word], error);
  const ProbeReport report = probe_here(path.string(), descriptor == 1 ? 1 : own);
  write_all(own, report_to_json(report) + "\n");
  _exit(0);  // without what the library left for the end: that is the host's affair
}

}  // namespace
}  // namespace gradrack

int main(int argc, char** argv) { return gradrack::probe_program(argc, argv); }
