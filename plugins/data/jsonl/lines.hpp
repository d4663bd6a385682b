// SPDX-License-Identifier: Apache-2.0
// Documents of a JSON Lines file: the text of one field of each line's object.
//
// The file may come from a stranger: a line that is no object with that text is refused by its
// number, or passed over and counted where that is asked for. Blank lines hold nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

struct Document {
  int64_t line = 0;  // from 1
  std::string text;
};

struct Lines {
  std::vector<Document> documents;
  int64_t skipped = 0;
  std::string first_fault;  // of what was skipped
};

/// Throws GR_INVALID_ARGUMENT with the number of a faulty line unless `skip`. `path`: for messages.
Lines read_lines(std::string_view content, const std::string& path, const std::string& field,
                 bool skip, const std::function<void()>& tick);
