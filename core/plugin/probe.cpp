// SPDX-License-Identifier: Apache-2.0
// Probing: see probe.hpp. Turns the end of the probe process into a verdict.
#include "core/plugin/probe.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/log.hpp"
#include "core/plugin/cache_folder.hpp"
#include "core/plugin/probe_process.hpp"
#include "core/plugin/probe_report.hpp"
#include "core/plugin/verdict_cache.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDefaultLimitMs = 10000;

Status refusal(const std::string& message) { return unsupported(message).in_area(Area::kPlugin); }

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  std::string text = name != nullptr ? std::string("SIG") + name : std::to_string(number);
  switch (number) {
    case SIGILL:
      return text + " (an instruction that this CPU lacks)";
    case SIGSEGV:
    case SIGBUS:
      return text + " (a wrong address)";
    case SIGFPE:
      return text + " (a division by zero or the like)";
    case SIGABRT:
      return text + " (it aborted)";
    case SIGKILL:
      return text + " (ended from outside: out of memory?)";
    default:
      return text;
  }
}

std::string advice(int number) {
  return number == SIGILL ? "build it for this machine's instruction set, or choose another one"
                          : "a fault of the library: ask its maker, or remove it";
}

// "stage WORDS" lines say what was going on; the last one counts.
std::string stage_of(const std::string& report) {
  const size_t at = report.rfind("stage ");
  if (at == std::string::npos) return "before it was loaded";
  return report.substr(at + 6, report.find('\n', at) - at - 6);
}

// The last line that is not empty, shortened.
std::string last_words(const std::string& noise) {
  size_t end = noise.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return "";
  const size_t begin = noise.rfind('\n', end);
  const size_t start = begin == std::string::npos ? 0 : begin + 1;
  std::string line = noise.substr(start, std::min<size_t>(end - start + 1, 200));
  return "; it wrote \"" + printable(line) + "\"";
}

Status death(const ProcessEnd& end, int64_t limit_ms) {
  const std::string stage = stage_of(end.report);
  const std::string wrote = last_words(end.noise);
  if (end.timed_out) {
    return refusal("it did not return within " + std::to_string((limit_ms + 999) / 1000) + " s " +
                   stage + ": a fault of the library: ask its maker, or remove it" + wrote);
  }
  if (end.signal != 0) {
    return refusal("it died of " + signal_text(end.signal) + " " + stage + ": " +
                   advice(end.signal) + wrote);
  }
  return refusal("it ended the process with exit code " + std::to_string(end.exit_code) + " " +
                 stage + ": a library has to return: ask its maker, or remove it" + wrote);
}

// From the environment, for a slow machine or file system; nonsense there is passed over.
int64_t default_limit_ms() {
  const char* text = std::getenv("GRADRACK_PROBE_SECONDS");
  const double seconds = text != nullptr ? std::atof(text) : 0;
  return seconds >= 0.1 && seconds <= 3600 ? static_cast<int64_t>(seconds * 1000) : kDefaultLimitMs;
}

// The report is the last line, and only whole lines count.
std::optional<ProbeReport> report_of(const std::string& text) {
  if (text.empty() || text.back() != '\n') return std::nullopt;
  const size_t begin = text.rfind('\n', text.size() - 2);
  return report_from_json(
      std::string_view(text).substr(begin == std::string::npos ? 0 : begin + 1));
}

struct Probed {
  ProbeReport report;
  int64_t seconds = 0;  // how long it may be kept; 0: until something changes
};

Result<Probed> run_probe(const std::string& path, const std::string& program,
                         const ProbeSettings& settings, EventSink& events) {
  const int64_t limit_ms = settings.time_limit_ms > 0 ? settings.time_limit_ms : default_limit_ms();
  GR_ASSIGN(const ProcessEnd end, run_probe_process(program, {"--report-fd", "3", path}, limit_ms));
  events.emit({"probe", Level::kDebug, "probed " + path, {{"path", path}}});
  std::optional<ProbeReport> report = report_of(end.report);
  if (report.has_value() && end.exit_code == 0) return Probed{std::move(*report), 0};
  ProbeReport dead;
  dead.verdict.status = death(end, limit_ms);
  return Probed{std::move(dead), kDeathSeconds};
}

Verdict refused(Status status) {
  Verdict verdict;
  verdict.status = status.in_area(Area::kPlugin);
  return verdict;
}

}  // namespace

std::string find_probe_program() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const fs::path folder = self.parent_path();
  for (const char* place :
       {"gradrack-probe", "../bin/gradrack-probe", "../libexec/gradrack/gradrack-probe"}) {
    const std::string path = (folder / place).lexically_normal().string();
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

Verdict probe_library(const std::string& path, const std::string& sha256,
                      const ProbeSettings& settings, EventSink& events) {
  const std::optional<FileStamp> library = stamp_file(path);
  if (!library.has_value()) return refused(not_found(path + ": " + std::strerror(errno)));
  const std::string program = settings.program.empty() ? find_probe_program() : settings.program;
  const std::optional<FileStamp> probe = stamp_file(program);
  if (!probe.has_value()) {
    return refused(not_found(
        "it cannot be tried: the program gradrack-probe is not beside this one" +
        (program.empty() ? "" : " (looked for " + program + ")") + ": install gradrack again"));
  }
  const VerdictKey key{*library, sha256,
                       host_identity() + " probe " + probe->path + " " +
                           std::to_string(probe->modified) + " " + std::to_string(probe->size)};
  std::string folder;
  if (settings.use_cache) {
    folder = settings.cache_folder.empty() ? default_cache_folder() : settings.cache_folder;
  }
  VerdictCache cache(std::move(folder), events);
  if (std::optional<Verdict> known = cache.find(key)) return *known;
  Result<Probed> probed = run_probe(path, program, settings, events);
  if (!probed.ok()) return refused(probed.status());
  if (probed->report.lasting) cache.keep(key, probed->report, probed->seconds);
  return probed->report.verdict;
}

}  // namespace gradrack
