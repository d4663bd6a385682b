// SPDX-License-Identifier: Apache-2.0
// Tables as CSV: see read_table.hpp and docs/formats.md.
//
// Up to three tables in one file, each with a header line whose first word says which it is:
// `device`, `link` or `task`. Fields in double quotes may hold commas; "" is a quote. Lists in one
// field are separated by blanks, so ids of a CSV file have none.
#include <fmt/format.h>

#include <charconv>
#include <functional>

#include "core/base/text.hpp"
#include "core/simulate/read_table.hpp"
#include "core/simulate/table_builder.hpp"

namespace gradrack {
namespace {

Status error_at(const std::string& where, const std::string& message) {
  return invalid_argument(where + ": " + message).in_area(Area::kConfig);
}

Result<std::vector<std::string>> split_line(std::string_view line, const std::string& where) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t k = 0; k < line.size(); ++k) {
    const char c = line[k];
    if (quoted && c == '"' && k + 1 < line.size() && line[k + 1] == '"') {
      fields.back() += c;
      ++k;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return error_at(where, "a double quote without its end in the same line");
  return fields;
}

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t start = text.find_first_not_of(' ', at);
    if (start == std::string::npos) break;
    at = std::min(text.find(' ', start), text.size());
    words.push_back(text.substr(start, at - start));
  }
  return words;
}

/// One line under a header: fields by the header's words.
struct Row {
  const std::vector<std::string>& columns;
  const std::vector<std::string>& fields;
  std::string where;

  std::string text(const char* column) const {
    for (size_t k = 0; k < columns.size(); ++k) {
      if (columns[k] == column) return fields[k];
    }
    return "";
  }
  template <typename Number>
  Status number(const char* column, Number* out) const {
    const std::string field = text(column);
    if (field.empty()) return {};
    const char* const end = field.data() + field.size();
    const auto [at, error] = std::from_chars(field.data(), end, *out);
    if (error == std::errc() && at == end) return {};
    return error_at(
        where, fmt::format("{}: got '{}', wanted {}", column, field,
                           std::is_integral_v<Number> ? "a whole number of 64 bits" : "a number"));
  }
};

Status add_device(const Row& row, TableBuilder* builder) {
  SimDevice device;
  int64_t streams = 1;
  device.name = row.text("device");
  GR_TRY(row.number("streams", &streams));
  GR_TRY(row.number("memory_limit", &device.memory_limit));
  device.streams = streams < 0 || streams > UINT32_MAX ? 0 : static_cast<uint32_t>(streams);
  return builder->add_device(row.where, std::move(device));
}

Status add_link(const Row& row, TableBuilder* builder) {
  SimLink link;
  link.name = row.text("link");
  GR_TRY(row.number("latency_ns", &link.latency_ns));
  GR_TRY(row.number("bytes_per_second", &link.bytes_per_second));
  const std::string policy = row.text("policy");
  GR_ASSIGN(link.policy, read_link_policy(row.where, policy.empty() ? "fifo" : policy));
  return builder->add_link(row.where, std::move(link));
}

Status add_task(const Row& row, TableBuilder* builder) {
  TaskRow task;
  task.id = row.text("task");
  task.kind = row.text("kind");
  task.device = row.text("device");
  task.link = row.text("link");
  task.stage = row.text("stage");
  task.deps = split_words(row.text("deps"));
  task.reads = split_words(row.text("reads"));
  GR_TRY(row.number("duration_ns", &task.duration_ns));
  GR_TRY(row.number("bytes_held", &task.bytes_held));
  GR_TRY(row.number("bytes_freed", &task.bytes_freed));
  GR_TRY(row.number("bytes", &task.bytes));
  GR_TRY(row.number("microbatch", &task.microbatch));
  GR_TRY(row.number("priority", &task.priority));
  return builder->add_task(row.where, task);
}

struct Section {
  std::vector<std::string> columns;  // the first names the section
  Status (*add)(const Row&, TableBuilder*);
};

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {
      {{"device", "streams", "memory_limit"}, add_device},
      {{"link", "latency_ns", "bytes_per_second", "policy"}, add_link},
      {{"task", "kind", "device", "link", "stage", "microbatch", "duration_ns", "priority", "bytes",
        "bytes_held", "bytes_freed", "deps", "reads"},
       add_task}};
  return all;
}

Status check_header(const Section& section, const std::vector<std::string>& columns,
                    const std::string& where) {
  for (size_t k = 0; k < columns.size(); ++k) {
    if (!contains(section.columns, columns[k])) {
      return error_at(where, "unknown column '" + columns[k] + "'" +
                                 did_you_mean(columns[k], section.columns) +
                                 "; known: " + join(section.columns));
    }
    for (size_t other = 0; other < k; ++other) {
      if (columns[other] == columns[k]) {
        return error_at(where, "column '" + columns[k] + "' stands twice");
      }
    }
  }
  return {};
}

class CsvReader {
 public:
  explicit CsvReader(const std::string& name) : name_(name), builder_(name) {}

  Status line(std::string_view text, int number) {
    if (text.empty() || text[0] == '#') return {};
    const std::string where = fmt::format("{}:{}", name_, number);
    GR_ASSIGN(const std::vector<std::string> fields, split_line(text, where));
    for (const Section& section : sections()) {
      if (fields[0] != section.columns[0]) continue;
      section_ = &section;
      columns_ = fields;
      return check_header(section, columns_, where);
    }
    if (section_ == nullptr) {
      return error_at(where, "got '" + fields[0] +
                                 "', wanted a header line that begins with "
                                 "'device', 'link' or 'task'");
    }
    if (fields.size() != columns_.size()) {
      return error_at(where, fmt::format("{} fields under a header of {} columns", fields.size(),
                                         columns_.size()));
    }
    return section_->add(Row{columns_, fields, where}, &builder_);
  }

  Result<SimTable> finish() { return builder_.finish(); }

 private:
  std::string name_;
  TableBuilder builder_;
  const Section* section_ = nullptr;
  std::vector<std::string> columns_;
};

}  // namespace

Result<SimTable> parse_csv_table(std::string_view text, const std::string& name) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  CsvReader reader(name);
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    GR_TRY(reader.line(line, ++number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

}  // namespace gradrack
