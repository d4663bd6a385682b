// SPDX-License-Identifier: Apache-2.0
// JSON Lines: see lines.hpp.
#include "lines.hpp"

#include <nlohmann/json.hpp>

#include "gradrack/error.hpp"

namespace gr = gradrack::sdk;

namespace {

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

/// Takes the text out of a line; says what is wrong with it, "" when nothing is.
std::string take_text(std::string_view line, const std::string& field, std::string* text) {
  nlohmann::json root = nlohmann::json::parse(line, nullptr, false);
  if (root.is_discarded()) return "is no JSON";
  if (!root.is_object()) return gr::text("is no object but ", root.type_name());
  const auto found = root.find(field);
  if (found == root.end()) return "has no '" + field + "'";
  if (!found->is_string()) return gr::text("has a ", found->type_name(), " as '", field, "'");
  *text = std::move(found->get_ref<std::string&>());
  return "";
}

}  // namespace

Lines read_lines(std::string_view content, const std::string& path, const std::string& field,
                 bool skip, const std::function<void()>& tick) {
  Lines lines;
  for (int64_t number = 1; !content.empty(); ++number) {
    const size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (number % 1024 == 0) tick();
    if (is_blank(line)) continue;
    Document document{number, {}};
    const std::string fault = take_text(line, field, &document.text);
    if (fault.empty()) {
      lines.documents.push_back(std::move(document));
      continue;
    }
    const std::string said = gr::text("line ", number, " ", fault);
    gr::require(skip, GR_INVALID_ARGUMENT, "file", path, ": ", said, ": wanted {\"", field,
                "\": \"...\"}; mend it, or set `invalid_lines: skip`");
    if (lines.skipped++ == 0) lines.first_fault = said;
  }
  return lines;
}
