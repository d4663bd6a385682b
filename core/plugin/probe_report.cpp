// SPDX-License-Identifier: Apache-2.0
// Reports of the probe process: see probe_report.hpp. The wall around the JSON library.
#include "core/plugin/probe_report.hpp"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

namespace gradrack {
namespace {

using nlohmann::json;

int64_t nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

json stamps_to_json(const std::vector<FileStamp>& files) {
  json list = json::array();
  for (const FileStamp& file : files) {
    list.push_back({{"path", file.path},
                    {"modified", file.modified},
                    {"changed", file.changed},
                    {"size", file.size},
                    {"inode", file.inode}});
  }
  return list;
}

std::vector<FileStamp> stamps_from_json(const json& list) {
  std::vector<FileStamp> files;
  for (const json& file : list) {
    files.push_back({file.at("path").get<std::string>(), file.at("modified").get<int64_t>(),
                     file.at("changed").get<int64_t>(), file.at("size").get<int64_t>(),
                     file.at("inode").get<int64_t>()});
  }
  return files;
}

json offers_to_json(const std::vector<Offer>& offers) {
  json list = json::array();
  for (const Offer& offer : offers) {
    list.push_back({{"kind", offer.kind},
                    {"name", offer.name},
                    {"version", offer.version},
                    {"help", offer.help}});
  }
  return list;
}

ProbeReport read_report(const json& root) {
  ProbeReport report;
  const int32_t code = root.at("code").get<int32_t>();
  if (code < GR_OK || code > GR_INTERNAL) throw std::out_of_range("code");
  if (code != GR_OK) {
    report.verdict.status =
        Status(code, root.at("message").get<std::string>()).in_area(Area::kPlugin);
  }
  report.verdict.id = root.at("id").get<std::string>();
  report.verdict.version = root.at("version").get<std::string>();
  report.verdict.abi_minor = root.at("abi_minor").get<uint32_t>();
  report.lasting = root.at("lasting").get<bool>();
  for (const json& offer : root.at("offers")) {
    report.verdict.offers.push_back(
        {offer.at("kind").get<std::string>(), offer.at("name").get<std::string>(),
         offer.at("version").get<std::string>(), offer.at("help").get<std::string>()});
  }
  for (const json& runtime : root.at("runtimes")) {
    report.verdict.runtimes.push_back(
        {runtime.at("kind").get<std::string>(), runtime.at("path").get<std::string>()});
  }
  report.libraries = stamps_from_json(root.at("libraries"));
  return report;
}

}  // namespace

std::optional<FileStamp> stamp_file(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileStamp{path, nanoseconds(info.st_mtim), nanoseconds(info.st_ctim), info.st_size,
                   static_cast<int64_t>(info.st_ino)};
}

std::string report_to_json(const ProbeReport& report) {
  const Verdict& verdict = report.verdict;
  json runtimes = json::array();
  for (const Runtime& runtime : verdict.runtimes) {
    runtimes.push_back({{"kind", runtime.kind}, {"path", runtime.path}});
  }
  const json root = {{"code", verdict.status.code()},
                     {"message", verdict.status.message()},
                     {"id", verdict.id},
                     {"version", verdict.version},
                     {"abi_minor", verdict.abi_minor},
                     {"lasting", report.lasting},
                     {"offers", offers_to_json(verdict.offers)},
                     {"runtimes", std::move(runtimes)},
                     {"libraries", stamps_to_json(report.libraries)}};
  return root.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<ProbeReport> report_from_json(std::string_view text) {
  try {
    return read_report(json::parse(text));
  } catch (const std::exception&) {  // no JSON, a key missing, another type, a wild number
    return std::nullopt;
  }
}

}  // namespace gradrack
