// SPDX-License-Identifier: Apache-2.0
// Cutting metrics: see metrics_cut.hpp.
#include "core/state/metrics_cut.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/state/aside.hpp"
#include "core/state/atomic_file.hpp"

namespace gradrack {
namespace {

using Json = nlohmann::json;
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// The step that a line is about: a number in records, text in events. -1: about none.
int64_t step_of(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step")) return -1;
  const Json& step = json["step"];
  if (step.is_number_integer()) return step.get<int64_t>();
  int64_t number = -1;
  if (!step.is_string()) return number;
  const std::string& text = step.get_ref<const std::string&>();
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Where the first line past `step` begins, or one without its end; else the end of the file.
Result<off_t> find_cut(std::FILE* file, const std::string& path, int64_t step) {
  off_t at = 0;
  char* line = nullptr;
  size_t room = 0;
  ssize_t length = 0;
  while ((length = ::getline(&line, &room, file)) > 0) {
    const std::string_view text(line, static_cast<size_t>(length));
    if (text.back() != '\n' || step_of(text) > step) break;
    at += length;
  }
  const int failed = std::ferror(file) != 0 ? errno : 0;
  std::free(line);  // NOLINT: getline's own way
  if (failed != 0) return file_error("read", path, failed);
  return at;
}

Status keep_rest(std::FILE* file, off_t from, const std::string& path, const std::string& aside) {
  GR_ASSIGN(AtomicFile kept, AtomicFile::create(aside));
  if (::fseeko(file, from, SEEK_SET) != 0) return file_error("read", path, errno);
  char block[1 << 14];
  size_t got = 0;
  while ((got = std::fread(block, 1, sizeof block, file)) > 0) GR_TRY(kept.append(block, got));
  if (std::ferror(file) != 0) return file_error("read", path, errno);
  return kept.commit();
}

}  // namespace

Result<std::string> cut_metrics(const std::string& path, int64_t step) {
  const File file(std::fopen(path.c_str(), "re"), std::fclose);
  if (file == nullptr) {
    if (errno == ENOENT) return std::string();
    return file_error("read", path, errno);
  }
  GR_ASSIGN(const off_t cut, find_cut(file.get(), path, step));
  if (::fseeko(file.get(), 0, SEEK_END) != 0) return file_error("read", path, errno);
  if (::ftello(file.get()) == cut) return std::string();
  const std::string aside = first_free(path);
  GR_TRY(keep_rest(file.get(), cut, path, aside));  // before the cut: a kill between loses nothing
  if (::truncate(path.c_str(), cut) != 0) return file_error("cut", path, errno);
  return aside;
}

}  // namespace gradrack
