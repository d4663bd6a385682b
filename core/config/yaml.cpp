// SPDX-License-Identifier: Apache-2.0
// Parsing and reading: see yaml.hpp. The one wall around yaml-cpp's exceptions.
#include "core/config/yaml.hpp"

#include <sys/stat.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>

#include "core/config/yaml_events.hpp"

namespace gradrack {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;

Status config_error(const Place& place, const std::string& message) {
  return invalid_argument(place.text() + ": " + message).in_area(Area::kConfig);
}

// yaml-cpp ends a document at byte 4 and reads other control characters as text: refuse them here.
Status check_bytes(std::string_view text, const std::string& name) {
  if (text.size() > kMaxBytes) {
    return config_error({name, 0, 0}, "larger than 1 MiB: this is not a run file");
  }
  Place place{name, 1, 1};
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') {
      return config_error(place, "byte " + std::to_string(static_cast<int>(c)) +
                                     " is not text: save the file as UTF-8 text");
    }
    ++place.column;
    if (c == '\n') {
      ++place.line;
      place.column = 1;
    }
  }
  return {};
}

}  // namespace

std::string Place::text() const {
  if (line == 0) return file;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

YamlNode* YamlNode::find(std::string_view key) {
  return const_cast<YamlNode*>(static_cast<const YamlNode*>(this)->find(key));
}

Result<YamlNode> parse_yaml(std::string_view text, const std::string& name) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  GR_TRY(check_bytes(text, name));
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    YamlTreeBuilder builder(name);
    if (!parser.HandleNextDocument(builder)) {
      return config_error({name, 0, 0}, "nothing in it (empty, or comments alone)");
    }
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const YamlError& error) {
    return config_error(error.place, error.message);
  } catch (const YAML::Exception& error) {
    return config_error({name, error.mark.line + 1, error.mark.column + 1},
                        "not valid YAML: " + error.msg);
  } catch (const std::bad_alloc&) {
    return Status(GR_OUT_OF_MEMORY, name + ": no memory left to parse it");
  } catch (const std::exception& error) {
    return config_error({name, 0, 0}, std::string("cannot be parsed: ") + error.what());
  }
}

Result<YamlNode> load_yaml(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    return Status(missing ? GR_NOT_FOUND : GR_IO,
                  path + ": cannot open the config file: " + std::strerror(errno))
        .in_area(Area::kConfig);
  }
  if (S_ISDIR(info.st_mode)) {
    return io_error(path + ": is a folder; give the run file itself").in_area(Area::kConfig);
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxBytes + 1, '\0');  // one more than allowed, so that too much shows
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    return io_error(path + ": cannot read the config file: " + std::strerror(errno))
        .in_area(Area::kConfig);
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return parse_yaml(text, path);
}

}  // namespace gradrack
