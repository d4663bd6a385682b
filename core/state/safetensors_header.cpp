// SPDX-License-Identifier: Apache-2.0
// Safetensors header: see safetensors_header.hpp.
//
// Parsing is by events (SAX), not into a tree: a stranger's header of 100 MB then costs no more
// memory than its own text, nesting is refused where it begins, and keys that stand twice are seen.
#include "core/state/safetensors_header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace gradrack {
namespace {

using Json = nlohmann::json;

struct DtypeName {
  gr_dtype_t dtype;
  const char* name;
};
constexpr std::array<DtypeName, 9> kDtypes = {{{GR_FLOAT64, "F64"},
                                               {GR_INT64, "I64"},
                                               {GR_FLOAT32, "F32"},
                                               {GR_INT32, "I32"},
                                               {GR_FLOAT16, "F16"},
                                               {GR_BFLOAT16, "BF16"},
                                               {GR_INT8, "I8"},
                                               {GR_UINT8, "U8"},
                                               {GR_BOOL, "BOOL"}}};

gr_dtype_t dtype_named(std::string_view name) {
  for (const DtypeName& row : kDtypes) {
    if (name == row.name) return row.dtype;
  }
  return 0;
}

// Receives the parser's events. Depth 1 is the file's object, depth 2 a tensor or the metadata,
// depth 3 a list of numbers. The first complaint stops the parse.
class HeaderEvents : public nlohmann::json_sax<Json> {
 public:
  SafetensorsHeader header;
  std::string complaint;

  bool null() override { return unwanted("null"); }
  bool boolean(bool value) override { return unwanted(value ? "true" : "false"); }
  bool binary(binary_t&) override { return unwanted("binary data"); }
  bool number_integer(number_integer_t value) override { return bad_number(fmt::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return bad_number(text); }
  bool number_unsigned(number_unsigned_t value) override;
  bool string(string_t& value) override;
  bool start_object(size_t) override;
  bool key(string_t& text) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override { return --depth_, true; }
  bool parse_error(size_t position, const std::string&, const Json::exception& error) override {
    return fail(fmt::format("header is not JSON at byte {}: {}", position, error.what()));
  }

 private:
  bool fail(std::string text) { return complaint = std::move(text), false; }
  std::string where() const {
    if (depth_ == 0) return "header";
    if (depth_ == 1) return in_quotes(name_);
    return fmt::format("{} of {}", in_quotes(field_), in_quotes(name_));
  }
  std::string wanted() const {
    if (depth_ < 2) return "an object";
    if (in_metadata_) return "a string";
    return field_ == "dtype" ? "a string" : "a list of unsigned integers";
  }
  bool unwanted(std::string_view got) {
    return fail(fmt::format("{} is {}, wanted {}", where(), got, wanted()));
  }
  bool bad_number(const std::string& text) {
    if (depth_ < 3) return unwanted("the number " + text);
    return fail(fmt::format("{} holds {}, which is not an unsigned integer", where(), text));
  }
  bool end_tensor();

  int depth_ = 0;
  bool in_metadata_ = false;
  std::string name_;   // key at depth 1
  std::string field_;  // key at depth 2
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> fields_;
  std::string dtype_text_;
  std::vector<int64_t> shape_;
  std::vector<uint64_t> offsets_;
};

bool HeaderEvents::number_unsigned(number_unsigned_t value) {
  if (depth_ < 3) return unwanted(fmt::format("the number {}", value));
  if (field_ == "data_offsets") return offsets_.push_back(value), true;
  if (value > static_cast<uint64_t>(INT64_MAX)) {
    return fail(fmt::format("{} holds {}: too large for a dimension", where(), value));
  }
  return shape_.push_back(static_cast<int64_t>(value)), true;
}

bool HeaderEvents::string(string_t& value) {
  if (depth_ == 2 && in_metadata_) return header.metadata.emplace(field_, std::move(value)), true;
  if (depth_ == 2 && field_ == "dtype") return dtype_text_ = std::move(value), true;
  return unwanted("the string " + in_quotes(value));
}

bool HeaderEvents::start_object(size_t) {
  if (depth_ >= 2) return unwanted("an object");
  if (++depth_ == 2) {
    in_metadata_ = name_ == "__metadata__";
    fields_.clear();
    dtype_text_.clear();
    shape_.clear();
    offsets_.clear();
  }
  return true;
}

bool HeaderEvents::key(string_t& text) {
  std::string& current = depth_ == 1 ? name_ : field_;
  current = std::move(text);
  if (!(depth_ == 1 ? names_ : fields_).insert(current).second) {
    return fail(depth_ == 1 ? fmt::format("{} stands twice in the header", in_quotes(current))
                            : fmt::format("{} stands twice", where()));
  }
  if (depth_ == 1 || in_metadata_) return true;
  if (field_ == "dtype" || field_ == "shape" || field_ == "data_offsets") return true;
  return fail(fmt::format("{} is unknown: a tensor has dtype, shape and data_offsets", where()));
}

bool HeaderEvents::start_array(size_t) {
  if (depth_ != 2 || in_metadata_ || field_ == "dtype") return unwanted("a list");
  ++depth_;
  return true;
}

bool HeaderEvents::end_object() {
  if (depth_-- == 1 || in_metadata_) return true;
  return end_tensor();
}

// All that can be said of one tensor without its neighbours.
bool HeaderEvents::end_tensor() {
  for (const char* field : {"dtype", "shape", "data_offsets"}) {
    if (fields_.count(field) == 0)
      return fail(fmt::format("{} has no {}", in_quotes(name_), field));
  }
  if (offsets_.size() != 2) {
    return fail(fmt::format("data_offsets of {} has {} numbers, wanted 2", in_quotes(name_),
                            offsets_.size()));
  }
  SafetensorsEntry entry{name_, dtype_named(dtype_text_), shape_, offsets_[0], offsets_[1]};
  if (entry.dtype == 0) {
    return fail(
        fmt::format("dtype {} of {} is not known here; known are F64, I64, F32, I32, F16, "
                    "BF16, I8, U8, BOOL",
                    in_quotes(dtype_text_), in_quotes(name_)));
  }
  if (entry.begin > entry.end) {
    return fail(fmt::format("data_offsets of {} begin at {}, after their end {}", in_quotes(name_),
                            entry.begin, entry.end));
  }
  const Result<uint64_t> bytes = safetensors_bytes(entry.dtype, entry.shape);
  if (!bytes.ok()) return fail(in_quotes(name_) + ": " + bytes.status().message());
  if (*bytes != entry.end - entry.begin) {
    return fail(
        fmt::format("{} of shape [{}] and dtype {} takes {} bytes, but data_offsets [{}, {}] "
                    "hold {}",
                    in_quotes(name_), fmt::join(entry.shape, ", "), dtype_text_, *bytes,
                    entry.begin, entry.end, entry.end - entry.begin));
  }
  header.entries.push_back(std::move(entry));
  return true;
}

// Sorts the tensors by place and demands that they tile the data section.
Status check_cover(std::vector<SafetensorsEntry>* entries, uint64_t data_bytes) {
  std::sort(entries->begin(), entries->end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t at = 0;
  for (const SafetensorsEntry& entry : *entries) {
    if (entry.begin < at) {
      return invalid_argument(fmt::format("{} overlaps another tensor at byte {} of the data",
                                          in_quotes(entry.name), entry.begin));
    }
    if (entry.begin > at) {
      return invalid_argument(
          fmt::format("hole in the data: bytes {}-{} before {} belong to no "
                      "tensor",
                      at, entry.begin, in_quotes(entry.name)));
    }
    at = entry.end;
  }
  if (at > data_bytes) {
    return io_error(fmt::format("file is cut: expected {} data bytes, found {}", at, data_bytes));
  }
  if (at < data_bytes) {
    return invalid_argument(
        fmt::format("{} bytes after the last tensor belong to no tensor: "
                    "expected {} data bytes, found {}",
                    data_bytes - at, at, data_bytes));
  }
  return {};
}

// JSON text of a string, or an error when it is not UTF-8 and so could not be read back.
Result<std::string> json_text(const std::string& text) {
  std::string out = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (Json::parse(out, nullptr, false) != Json(text)) {
    return invalid_argument(in_quotes(text) + " is not UTF-8, which the format wants");
  }
  return out;
}

}  // namespace

const char* safetensors_dtype_name(gr_dtype_t dtype) {
  for (const DtypeName& row : kDtypes) {
    if (dtype == row.dtype) return row.name;
  }
  return nullptr;
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kShown = 120;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return out + (text.size() > kShown ? "...'" : "'");
}

Result<uint64_t> safetensors_bytes(gr_dtype_t dtype, const std::vector<int64_t>& shape) {
  auto bytes = static_cast<uint64_t>(gr_dtype_bytes(dtype));
  for (const int64_t dim : shape) {
    if (dim < 0) return invalid_argument(fmt::format("dimension {} is negative", dim));
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes)) {
      return invalid_argument(
          fmt::format("shape [{}] has more bytes than 64 bits can count", fmt::join(shape, ", ")));
    }
  }
  return bytes;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, uint64_t data_bytes) {
  if (text.empty() || text.front() != '{') {
    return invalid_argument("header does not begin with '{': this is no safetensors file");
  }
  HeaderEvents events;
  if (!Json::sax_parse(text.begin(), text.end(), &events)) {
    return invalid_argument(std::move(events.complaint));
  }
  GR_TRY(check_cover(&events.header.entries, data_bytes));
  return std::move(events.header);
}

Result<std::string> compose_safetensors_header(const std::vector<SafetensorsTensor>& tensors,
                                               const TextMap& metadata) {
  std::string text = "{";
  const auto separate = [&text] { text += text.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    text += "\"__metadata__\":";
    char before = '{';
    for (const auto& [key, value] : metadata) {
      GR_ASSIGN(const std::string key_text, json_text(key));
      GR_ASSIGN(const std::string value_text, json_text(value));
      text += before + key_text + ":" + value_text;
      before = ',';
    }
    text += "}";
  }
  uint64_t at = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    GR_ASSIGN(const uint64_t bytes, safetensors_bytes(tensor.dtype, tensor.shape));
    GR_ASSIGN(const std::string name_text, json_text(tensor.name));
    separate();
    text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name_text,
                        safetensors_dtype_name(tensor.dtype), fmt::join(tensor.shape, ","), at,
                        at + bytes);
    at += bytes;
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');  // what is missing to 8, not the remainder
  std::string out(8, '\0');
  for (size_t k = 0; k < 8; ++k) out[k] = static_cast<char>(text.size() >> (8 * k) & 0xff);
  return out + text;
}

}  // namespace gradrack
