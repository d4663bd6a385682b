// SPDX-License-Identifier: Apache-2.0
// Metrics: see metrics.hpp.
#include "core/state/metrics.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/state/atomic_file.hpp"

namespace gradrack {
namespace {

using Json = nlohmann::ordered_json;

const char* flag_of(double value) {
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

// Where the last whole line ends.
Result<off_t> end_of_lines(int descriptor, const std::string& path) {
  off_t end = ::lseek(descriptor, 0, SEEK_END);
  if (end < 0) return file_error("read", path, errno);
  for (; end > 0; --end) {
    char last = 0;
    const ssize_t got = ::pread(descriptor, &last, 1, end - 1);
    if (got < 0) return file_error("read", path, errno);
    if (last == '\n') break;
  }
  return end;
}

}  // namespace

std::string to_json_line(const MetricsRecord& record) {
  Json line = {{"step", record.step}, {"tokens", record.tokens}};
  Json flags = Json::object();
  for (const auto& [name, value] : record.values) {
    GR_CHECK(name != "step" && name != "tokens" && name != "flags");
    if (std::isfinite(value)) {
      line[name] = value;
    } else {
      line[name] = nullptr;
      flags[name] = flag_of(value);
    }
  }
  for (const auto& [name, text] : record.texts) {
    GR_CHECK(name != "step" && name != "tokens" && name != "flags");
    line[name] = text;
  }
  if (!flags.empty()) line["flags"] = std::move(flags);
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::unique_ptr<MetricsFile>> MetricsFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) return file_error("write", path, errno);
  std::unique_ptr<MetricsFile> file(new MetricsFile(path, descriptor));
  GR_ASSIGN(const off_t end, end_of_lines(descriptor, path));
  if (::ftruncate(descriptor, end) != 0) return file_error("write", path, errno);
  return file;
}

MetricsFile::~MetricsFile() { ::close(descriptor_); }

void MetricsFile::record(const MetricsRecord& record, EventSink& events) {
  append(to_json_line(record));
  std::string failure;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure.swap(failure_);
  }
  // Outside the lock: a listener may write to this very file.
  if (!failure.empty()) {
    events.emit({"metrics_error",
                 Level::kWarn,
                 failure + "; training goes on, records may be missing from here on",
                 {{"path", path_}}});
  }
}

void MetricsFile::record(const Event& event) { append(to_json_line(event)); }

void MetricsFile::append(std::string line) {
  line += '\n';
  const std::lock_guard<std::mutex> lock(mutex_);
  const off_t before = ::lseek(descriptor_, 0, SEEK_END);
  ssize_t written = 0;
  do {
    written = ::write(descriptor_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return;
  // A disk that fills up takes part of a line: take that back, so that lines stay whole.
  const int reason = written < 0 ? errno : ENOSPC;
  const bool cut = written <= 0 || before < 0 || ::ftruncate(descriptor_, before) == 0;
  if (failed_) return;
  failed_ = true;
  failure_ =
      file_error("write", path_, reason).message() + (cut ? "" : " (the last line is incomplete)");
}

}  // namespace gradrack
