// SPDX-License-Identifier: Apache-2.0
// Tables as JSON, both ways: see read_table.hpp and docs/formats.md.
//
// The text is parsed by events first, for keys that stand twice and the place of bad syntax, then
// into a tree. Places in messages are paths: tasks[3].deps.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/text.hpp"
#include "core/schedule/task_kind.hpp"
#include "core/simulate/read_table.hpp"
#include "core/simulate/table_builder.hpp"

namespace gradrack {
namespace {

using Json = nlohmann::json;

Status error_at(const std::string& where, const std::string& message) {
  return invalid_argument(where + ": " + message).in_area(Area::kConfig);
}

/// Looks for bad syntax, depth and repeated keys; keeps nothing else.
class SyntaxCheck : public nlohmann::json_sax<Json> {
 public:
  std::string complaint;
  size_t position = 0;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool string(string_t&) override { return true; }
  bool start_object(size_t) override { return deeper(); }
  bool start_array(size_t) override { return deeper(); }
  bool end_object() override { return keys_.pop_back(), true; }
  bool end_array() override { return keys_.pop_back(), true; }
  bool key(string_t& text) override {
    if (keys_.back().insert(text).second) return true;
    return complaint = "key '" + text + "' stands twice in one object", false;
  }
  bool parse_error(size_t at, const std::string&, const Json::exception&) override {
    position = at;
    return complaint = "not valid JSON", false;
  }

 private:
  bool deeper() {
    constexpr size_t kDeepest = 8;
    keys_.emplace_back();
    if (keys_.size() <= kDeepest) return true;
    return complaint = "nested more than 8 deep: this is not a task table", false;
  }
  std::vector<std::set<std::string>> keys_;
};

Status check_syntax(std::string_view text, const std::string& name) {
  SyntaxCheck check;
  if (Json::sax_parse(text.begin(), text.end(), &check)) return {};
  if (check.position == 0) return error_at(name, check.complaint);
  const std::string_view before = text.substr(0, std::min(text.size(), check.position - 1));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return error_at(fmt::format("{}:{}:{}", name, line, before.size() - start + 1), check.complaint);
}

/// One object: values by key, typed. What is never asked for is an unknown key.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  Status check() const {
    if (object_.is_object()) return {};
    return error_at(where_, std::string("got ") + object_.type_name() + ", wanted an object");
  }
  Status text(const char* key, std::string* out) {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return wrong(key, *value, "text");
    *out = value->get_ref<const std::string&>();
    return {};
  }
  Status texts(const char* key, std::vector<std::string>* out) {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_array()) return wrong(key, *value, "a list of texts");
    for (const Json& item : *value) {
      if (!item.is_string()) return wrong(key, item, "texts in the list");
      out->push_back(item.get_ref<const std::string&>());
    }
    return {};
  }
  Status whole(const char* key, int64_t* out) {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_number_integer() ||
        (value->is_number_unsigned() &&
         value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))) {
      return wrong(key, *value, "a whole number of 64 bits");
    }
    *out = value->get<int64_t>();
    return {};
  }
  Status number(const char* key, double* out) {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_number()) return wrong(key, *value, "a number");
    *out = value->get<double>();
    return {};
  }
  /// The list under `key`; an empty one when it is not there.
  Result<Json> list(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return Json(Json::array());
    if (!value->is_array()) return wrong(key, *value, "a list");
    return *value;
  }
  Status finish() const {
    for (const auto& item : object_.items()) {
      if (contains(known_, item.key())) continue;
      return error_at(where_, "unknown key '" + item.key() + "'" +
                                  did_you_mean(item.key(), known_) + "; known: " + join(known_));
    }
    return {};
  }

 private:
  const Json* find(const char* key) {
    known_.emplace_back(key);
    const auto at = object_.find(key);
    return at != object_.end() ? &*at : nullptr;
  }
  Status wrong(const char* key, const Json& got, const char* wanted) const {
    std::string shown = got.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (shown.size() > 40) shown = shown.substr(0, 40) + "...";
    return error_at(where_ + "." + key, "got " + shown + ", wanted " + wanted);
  }

  const Json& object_;
  std::string where_;
  std::vector<std::string> known_;
};

Status read_device(const Json& object, const std::string& where, TableBuilder* builder) {
  Fields fields(object, where);
  SimDevice device;
  int64_t streams = 1;
  GR_TRY(fields.check());
  GR_TRY(fields.text("name", &device.name));
  GR_TRY(fields.whole("streams", &streams));
  GR_TRY(fields.whole("memory_limit", &device.memory_limit));
  GR_TRY(fields.finish());
  device.streams = streams < 0 || streams > UINT32_MAX ? 0 : static_cast<uint32_t>(streams);
  return builder->add_device(where, std::move(device));
}

Status read_link(const Json& object, const std::string& where, TableBuilder* builder) {
  Fields fields(object, where);
  SimLink link;
  std::string policy = "fifo";
  GR_TRY(fields.check());
  GR_TRY(fields.text("name", &link.name));
  GR_TRY(fields.whole("latency_ns", &link.latency_ns));
  GR_TRY(fields.number("bytes_per_second", &link.bytes_per_second));
  GR_TRY(fields.text("policy", &policy));
  GR_TRY(fields.finish());
  GR_ASSIGN(link.policy, read_link_policy(where, policy));
  return builder->add_link(where, std::move(link));
}

Status read_task(const Json& object, const std::string& where, TableBuilder* builder) {
  Fields fields(object, where);
  TaskRow row;
  GR_TRY(fields.check());
  GR_TRY(fields.text("id", &row.id));
  GR_TRY(fields.text("kind", &row.kind));
  GR_TRY(fields.text("device", &row.device));
  GR_TRY(fields.text("link", &row.link));
  GR_TRY(fields.text("stage", &row.stage));
  GR_TRY(fields.texts("deps", &row.deps));
  GR_TRY(fields.texts("reads", &row.reads));
  GR_TRY(fields.whole("duration_ns", &row.duration_ns));
  GR_TRY(fields.whole("bytes_held", &row.bytes_held));
  GR_TRY(fields.whole("bytes_freed", &row.bytes_freed));
  GR_TRY(fields.whole("bytes", &row.bytes));
  GR_TRY(fields.whole("microbatch", &row.microbatch));
  GR_TRY(fields.whole("priority", &row.priority));
  GR_TRY(fields.finish());
  return builder->add_task(where, row);
}

using ReadRow = Status (*)(const Json&, const std::string&, TableBuilder*);

Status read_rows(Fields& root, const char* key, const std::string& name, ReadRow read,
                 TableBuilder* builder) {
  GR_ASSIGN(const Json rows, root.list(key));
  for (size_t k = 0; k < rows.size(); ++k) {
    GR_TRY(read(rows[k], fmt::format("{}: {}[{}]", name, key, k), builder));
  }
  return {};
}

// Keys in the order in which a person reads them; what has its default is left out.
class ObjectText {
 public:
  ObjectText& text(const char* key, const std::string& value) {
    if (value.empty()) return *this;
    return raw(key, Json(value).dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  ObjectText& number(const char* key, int64_t value, int64_t left_out) {
    return value == left_out ? *this : raw(key, fmt::to_string(value));
  }
  ObjectText& raw(const char* key, const std::string& value) {
    text_ += fmt::format("{}\"{}\": {}", text_.empty() ? "" : ", ", key, value);
    return *this;
  }
  std::string str() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string ids_text(const SimTable& table, const std::vector<uint32_t>& tasks) {
  Json list = Json::array();
  for (const uint32_t task : tasks) list.push_back(table.tasks.tasks[task].name);
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string task_text(const SimTable& table, uint32_t index) {
  const Task& task = table.tasks.tasks[index];
  const SimTask& more = table.more[index];
  ObjectText out;
  out.text("id", task.name).text("kind", task_kind(task.kind).name);
  if (table.is_transfer(index)) {
    out.text("link", table.links[table.link_of(index)].name);
  } else {
    out.text("device", table.devices[static_cast<size_t>(task.device)].name);
  }
  if (task.stage >= 0) out.text("stage", table.tasks.stages[static_cast<size_t>(task.stage)]);
  out.number("microbatch", more.microbatch, -1).number("duration_ns", task.cost_ns, 0);
  out.number("priority", more.priority, -1).number("bytes", more.bytes_moved, 0);
  out.number("bytes_held", task.bytes_held, 0).number("bytes_freed", more.bytes_freed, 0);
  if (!task.deps.empty()) out.raw("deps", ids_text(table, task.deps));
  if (!more.reads.empty()) out.raw("reads", ids_text(table, more.reads));
  return out.str();
}

std::string list_text(const char* key, const std::vector<std::string>& rows) {
  return fmt::format("\"{}\": [\n  {}\n]", key, join(rows, ",\n  "));
}

}  // namespace

Result<SimTable> parse_json_table(std::string_view text, const std::string& name) {
  GR_TRY(check_syntax(text, name));
  const Json tree = Json::parse(text.begin(), text.end(), nullptr, false);
  Fields root(tree, name);
  int64_t format = 0;
  TableBuilder builder(name);
  GR_TRY(root.check());
  GR_TRY(root.whole("format", &format));
  if (format != 1) {
    return error_at(name,
                    fmt::format("format is {}, this gradrack reads 1: \"format\": 1", format));
  }
  GR_TRY(read_rows(root, "devices", name, read_device, &builder));
  GR_TRY(read_rows(root, "links", name, read_link, &builder));
  GR_TRY(read_rows(root, "tasks", name, read_task, &builder));
  GR_TRY(root.finish());
  return builder.finish();
}

std::string table_to_json(const SimTable& table) {
  std::vector<std::string> devices, links, tasks;
  for (const SimDevice& device : table.devices) {
    ObjectText row;
    row.text("name", device.name).number("streams", device.streams, 1);
    devices.push_back(row.number("memory_limit", device.memory_limit, 0).str());
  }
  for (const SimLink& link : table.links) {
    ObjectText row;
    row.text("name", link.name).number("latency_ns", link.latency_ns, 0);
    if (link.bytes_per_second > 0) row.raw("bytes_per_second", Json(link.bytes_per_second).dump());
    row.text("policy", link_policy_names()[static_cast<size_t>(link.policy)]);
    links.push_back(row.str());
  }
  for (uint32_t k = 0; k < table.size(); ++k) tasks.push_back(task_text(table, k));
  std::string out = "{\"format\": 1,\n" + list_text("devices", devices) + ",\n";
  if (!links.empty()) out += list_text("links", links) + ",\n";
  return out + list_text("tasks", tasks) + "}\n";
}

}  // namespace gradrack
