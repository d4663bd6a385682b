// SPDX-License-Identifier: Apache-2.0
// FileBytes: a model's file and the files beside it that hold its tensors.
//
// Invariant: nothing outside the model's folder is opened for a name that stands in the file: no
// absolute name, no "..", no link on the way, nothing but regular files.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "plugins/data/common/mapped_file.hpp"

namespace gradrack::onnx {

class FileBytes {
 public:
  /// GR_NOT_FOUND, GR_IO, with `option`, which names the file. [main]
  FileBytes(const std::string& path, const char* option);

  const std::string& path() const { return main_.path(); }
  std::string_view main() const { return main_.text(); }
  /// The whole file `location` of the model's folder, opened once. GR_INVALID_ARGUMENT: the name
  /// leaves the folder; GR_NOT_FOUND, GR_IO. `who` needs it, for messages.
  std::string_view beside(const std::string& location, const std::string& who);

 private:
  corpus::MappedFile main_;
  const char* option_;
  std::map<std::string, corpus::MappedFile> others_;
};

}  // namespace gradrack::onnx
