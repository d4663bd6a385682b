// SPDX-License-Identifier: Apache-2.0
// Subject: the library under test, loaded raw, so that a case can play any host against it.
//
// Unlike core/plugin/library.hpp it judges nothing: it opens the file, finds the header and calls
// entry with the host table that a case made. Invariant: never unloads. Lives in children alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/plugin/library.hpp"
#include "gradrack/plugin.h"

namespace gradrack::conform {

class Subject {
 public:
  /// Opens the file. Errors: the system's reason reworded; no entry symbol; wrong magic or size.
  static Result<std::unique_ptr<Subject>> open(const std::string& path);

  const std::string& path() const { return path_; }
  void* handle() const { return handle_; }
  const gr_plugin_header_t& header() const { return *header_; }

  /// Calls entry with a zeroed gr_plugin_t of the usual size.
  Result<gr_plugin_t> enter(const gr_host_t* host) const;

  /// The factories of an answer of entry, options tables checked, made for `host`.
  Result<std::vector<Factory>> factories(const gr_plugin_t& answer, const gr_host_t* host) const;

 private:
  Subject(std::string path, void* handle, const gr_plugin_header_t* header)
      : path_(std::move(path)), handle_(handle), header_(header) {}

  std::string path_;
  void* handle_;
  const gr_plugin_header_t* header_;
};

}  // namespace gradrack::conform
