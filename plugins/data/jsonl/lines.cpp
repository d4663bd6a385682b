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

/// Takes one text out of an object. No tree is built: one cannot be let go of without memory.
class TextOfField final : public nlohmann::json_sax<nlohmann::json> {
 public:
  TextOfField(const std::string& field, std::string* text) : field_(field), text_(text) {}

  /// What is wrong with the line; "" when nothing is.
  std::string fault() const {
    if (!root_.empty()) return gr::text("is no object but ", root_);
    if (!seen_) return "has no '" + field_ + "'";
    return type_.empty() ? "" : gr::text("has a ", type_, " as '", field_, "'");
  }

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("boolean"); }
  bool number_integer(number_integer_t) override { return value("number"); }
  bool number_unsigned(number_unsigned_t) override { return value("number"); }
  bool number_float(number_float_t, const string_t&) override { return value("number"); }
  bool binary(binary_t&) override { return value("binary"); }
  bool string(string_t& read) override {
    if (depth_ == 1 && wanted_) *text_ = std::move(read);
    return value("string");
  }
  bool start_object(std::size_t) override { return begin("object"); }
  bool start_array(std::size_t) override { return begin("array"); }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& name) override {
    if (depth_ == 1) wanted_ = name == field_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  bool value(const char* type) {
    if (depth_ == 0) root_ = type;
    if (depth_ == 1 && wanted_) {  // of several with the name the last one counts
      seen_ = true;
      type_ = std::string_view(type) == "string" ? "" : type;
    }
    return true;
  }
  bool begin(const char* type) {
    if (depth_ > 0 || std::string_view(type) != "object") value(type);
    ++depth_;
    return true;
  }

  const std::string& field_;
  std::string* text_;
  std::string root_, type_;
  int64_t depth_ = 0;
  bool wanted_ = false, seen_ = false;
};

/// Takes the text out of a line; says what is wrong with it, "" when nothing is.
std::string take_text(std::string_view line, const std::string& field, std::string* text) {
  TextOfField reader(field, text);
  return nlohmann::json::sax_parse(line, &reader) ? reader.fault() : "is no JSON";
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
