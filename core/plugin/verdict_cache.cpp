// SPDX-License-Identifier: Apache-2.0
// The verdict cache: see verdict_cache.hpp.
#include "core/plugin/verdict_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/plugin/cache_folder.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 1;
constexpr off_t kMostBytes = off_t{1} << 20;
constexpr size_t kMostFiles = 512;  // of these the older half goes when a new one comes

// FNV-1a (Fowler, Noll, Vo), 64 bits: names files; the key inside decides.
uint64_t fingerprint(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

std::string key_text(const VerdictKey& key) {
  const FileStamp& file = key.library;
  return file.path + '\n' + std::to_string(file.modified) + '\n' + std::to_string(file.changed) +
         '\n' + std::to_string(file.size) + '\n' + std::to_string(file.inode) + '\n' + key.sha256 +
         '\n' + key.host;
}

// Bytes of a private regular file; `problem` says why there are none, and stays empty when the file
// is just not there.
std::string read_private(const std::string& path, std::string* problem) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) {
    if (errno != ENOENT) *problem = std::strerror(errno);
    return "";
  }
  struct stat info = {};
  std::string text;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > kMostBytes) {
    *problem = "it is no file of the cache";
  } else {
    *problem = exposure(info);
  }
  if (problem->empty()) {
    text.resize(static_cast<size_t>(info.st_size));
    const ssize_t count = ::read(file, text.data(), text.size());
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, count)));
  }
  close(file);
  return text;
}

// Written beside its place (mkstemp makes it 0600) and renamed.
std::string write_private(const std::string& path, const std::string& text) {
  std::string temporary = path + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  if (file < 0) return std::strerror(errno);
  const ssize_t count = ::write(file, text.data(), text.size());
  const bool whole = count == static_cast<ssize_t>(text.size());
  const int error = errno;
  close(file);
  if (whole && rename(temporary.c_str(), path.c_str()) == 0) return "";
  const std::string reason = std::strerror(whole ? errno : error);
  unlink(temporary.c_str());
  return reason;
}

bool still_there(const std::vector<FileStamp>& libraries) {
  return std::all_of(libraries.begin(), libraries.end(), [](const FileStamp& known) {
    return stamp_file(known.path) == std::optional<FileStamp>(known);
  });
}

}  // namespace

VerdictCache::VerdictCache(std::string folder, EventSink& events)
    : folder_(std::move(folder)), events_(events) {
  if (folder_.empty()) return;
  const Status made = make_private_folder(folder_);
  if (made.ok()) return;
  complain(folder_, made.message() + "; nothing is kept, so each start tries every library again");
  folder_.clear();
}

std::string VerdictCache::file_of(const VerdictKey& key) const {
  char name[40];
  const uint64_t hash = fingerprint(key.library.path + '\n' + key.host);
  (void)std::snprintf(name, sizeof name, "/verdict-%016llx.json",
                      static_cast<unsigned long long>(hash));
  return folder_ + name;
}

void VerdictCache::complain(const std::string& path, const std::string& reason) {
  events_.emit({"verdict_cache",
                Level::kWarn,
                "verdict cache " + path + " is not used: " + reason,
                {{"path", path}, {"reason", reason}}});
}

std::optional<Verdict> VerdictCache::find(const VerdictKey& key) {
  if (folder_.empty()) return std::nullopt;
  const std::string path = file_of(key);
  std::string problem;
  const std::string text = read_private(path, &problem);
  if (!problem.empty()) complain(path, problem);
  if (text.empty()) {
    if (problem.empty() && fs::exists(path)) complain(path, "it is empty; written anew");
    return std::nullopt;
  }
  try {
    const json root = json::parse(text);
    if (root.at("format").get<int>() != kFormat) return std::nullopt;
    if (root.at("key").get<std::string>() != key_text(key)) return std::nullopt;
    const int64_t until = root.at("until").get<int64_t>();
    if (until != 0 && std::time(nullptr) >= until) return std::nullopt;
    std::optional<ProbeReport> report = report_from_json(root.at("report").get<std::string>());
    if (!report.has_value()) {
      complain(path, "its report makes no sense; written anew");
    } else if (still_there(report->libraries)) {
      report->verdict.cached = true;
      return report->verdict;
    }
  } catch (const std::exception&) {
    complain(path, "it is damaged; written anew");
  }
  return std::nullopt;
}

void VerdictCache::keep(const VerdictKey& key, const ProbeReport& report, int64_t seconds) {
  if (folder_.empty()) return;
  const int64_t until = seconds == 0 ? 0 : std::time(nullptr) + seconds;
  const json root = {{"format", kFormat},
                     {"key", key_text(key)},
                     {"until", until},
                     {"report", report_to_json(report)}};
  const std::string path = file_of(key);
  drop_oldest(folder_, "verdict-", kMostFiles);
  const std::string problem =
      write_private(path, root.dump(-1, ' ', false, json::error_handler_t::replace));
  if (!problem.empty()) complain(path, "it cannot be written: " + problem);
}

}  // namespace gradrack
