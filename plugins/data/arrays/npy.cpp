// SPDX-License-Identifier: Apache-2.0
// .npy reading: see npy.hpp. HeaderParser first, then the file, then the conversions.
#include "npy.hpp"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

#include "gradrack/error.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes = 65536;
constexpr size_t kMaxRank = 8;

/// The dict that describes the array: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  HeaderParser(std::string_view header, const std::string& path, const char* option)
      : rest_(header), path_(path), option_(option) {}

  void parse(NpyArray* out) {
    expect("{");
    while (!accept("}")) {
      const std::string key = quoted();
      expect(":");
      if (key == "descr" && out->descr.empty()) {
        gr::require(peek() != '[', GR_INVALID_ARGUMENT, option_, path_,
                    ": structured arrays are not read");
        out->descr = quoted();
      } else if (key == "fortran_order" && !has_order_) {
        has_order_ = true;
        if (!accept("False")) fail("is in Fortran order: save numpy.ascontiguousarray(x)");
      } else if (key == "shape" && !has_shape_) {
        has_shape_ = true;
        shape(out);
      } else {
        fail("has an unknown or repeated header key '" + key + "'");
      }
      if (accept(",")) continue;
      expect("}");
      break;
    }
    skip_space();
    if (!rest_.empty() || out->descr.empty() || !has_order_ || !has_shape_) {
      fail("has no proper .npy header: wanted descr, fortran_order and shape");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw gr::Error(GR_INVALID_ARGUMENT, option_, path_ + ": " + what);
  }

  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  char peek() {
    skip_space();
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool accept(std::string_view word) {
    skip_space();
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!accept(word)) fail(gr::text("has a broken .npy header: wanted '", word, "'"));
  }

  std::string quoted() {
    expect("'");
    const size_t end = rest_.find('\'');
    if (end == std::string_view::npos) fail("has a broken .npy header: a quote is not closed");
    const std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  void shape(NpyArray* out) {
    expect("(");
    while (!accept(")")) {
      if (out->shape.size() == kMaxRank) fail("has more than 8 dimensions");
      const int64_t dim = number();
      if (dim != 0 && out->count > std::numeric_limits<int64_t>::max() / 16 / dim) {
        fail("claims more elements than can exist");
      }
      out->shape.push_back(dim);
      out->count *= dim;
      if (accept(",")) continue;
      expect(")");
      break;
    }
  }

  int64_t number() {
    skip_space();
    int64_t value = 0;
    size_t digits = 0;
    while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9') {
      if (digits == 18) fail("has a dimension that is too large");
      value = value * 10 + (rest_[digits++] - '0');
    }
    if (digits == 0) fail("has a broken .npy header: wanted a dimension");
    rest_.remove_prefix(digits);
    return value;
  }

  std::string_view rest_;
  const std::string& path_;
  const char* option_;
  bool has_order_ = false;
  bool has_shape_ = false;
};

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_file(const std::string& path, const char* option, int64_t* size) {
  File file(std::fopen(path.c_str(), "rb"), std::fclose);
  const int code = errno == ENOENT ? int{GR_NOT_FOUND} : int{GR_IO};
  gr::require(file != nullptr, code, option, path, ": ", std::strerror(errno));
  const bool sized = std::fseek(file.get(), 0, SEEK_END) == 0;
  *size = sized ? std::ftell(file.get()) : -1;
  gr::require(*size >= 0 && *size < std::numeric_limits<int64_t>::max(), GR_IO, option, path,
              ": is not a plain file");
  std::rewind(file.get());
  return file;
}

void read_exactly(const File& file, void* out, size_t bytes, const char* option,
                  const std::string& path) {
  gr::require(std::fread(out, 1, bytes, file.get()) == bytes, GR_INVALID_ARGUMENT, option, path,
              ": ends too early for an .npy file");
}

/// Reads up to the end of the header and returns it; the data begin there.
std::string read_header(const File& file, const char* option, const std::string& path) {
  std::array<unsigned char, 8> start;
  read_exactly(file, start.data(), start.size(), option, path);
  gr::require(std::memcmp(start.data(), kMagic.data(), kMagic.size()) == 0, GR_INVALID_ARGUMENT,
              option, path, ": is not an .npy file: save it with numpy.save");
  const int major = start[6], minor = start[7];
  gr::require((major == 1 || major == 2) && minor == 0, GR_INVALID_ARGUMENT, option, path,
              ": has .npy format ", major, ".", minor, ", wanted 1.0 or 2.0");
  std::array<unsigned char, 4> length = {};
  read_exactly(file, length.data(), major == 1 ? 2 : 4, option, path);
  const size_t bytes =
      length[0] | size_t{length[1]} << 8 | size_t{length[2]} << 16 | size_t{length[3]} << 24;
  gr::require(bytes <= kMaxHeaderBytes, GR_INVALID_ARGUMENT, option, path, ": claims a header of ",
              bytes, " bytes");
  std::string header(bytes, '\0');
  read_exactly(file, header.data(), bytes, option, path);
  return header;
}

int64_t element_bytes(const NpyArray& array, const char* option) {
  if (array.descr == "<f8" || array.descr == "<i8") return 8;
  if (array.descr == "<f4" || array.descr == "<i4") return 4;
  if (array.descr == "|u1") return 1;
  throw gr::Error(GR_INVALID_ARGUMENT, option,
                  gr::text(array.path, ": has dtype '", array.descr,
                           "', wanted little-endian float32, float64, uint8, int32 or int64"));
}

template <typename From, typename To>
std::vector<To> convert(const NpyArray& array) {
  std::vector<To> out(static_cast<size_t>(array.count));
  for (size_t k = 0; k < out.size(); ++k) {
    From value;
    std::memcpy(&value, array.bytes.data() + k * sizeof value, sizeof value);
    out[k] = static_cast<To>(value);
  }
  return out;
}

}  // namespace

NpyArray read_npy(const std::string& path, const char* option) {
  int64_t size = 0;
  const File file = open_file(path, option, &size);
  const std::string header = read_header(file, option, path);
  NpyArray array;
  array.path = path;
  HeaderParser(header, path, option).parse(&array);
  const int64_t wanted = array.count * element_bytes(array, option);
  const int64_t found = size - std::ftell(file.get());
  gr::require(found == wanted, GR_INVALID_ARGUMENT, option, path, ": holds ", found,
              " bytes of data, its header asks for ", wanted, ": the file is damaged");
  array.bytes.resize(static_cast<size_t>(wanted));
  read_exactly(file, array.bytes.data(), array.bytes.size(), option, path);
  return array;
}

std::vector<float> to_floats(const NpyArray& array, const char* option) {
  std::vector<float> out;
  if (array.descr == "<f4") {
    out = convert<float, float>(array);
  } else if (array.descr == "<f8") {
    out = convert<double, float>(array);
  } else if (array.descr == "|u1") {
    out = convert<uint8_t, float>(array);
  } else {
    throw gr::Error(
        GR_INVALID_ARGUMENT, option,
        gr::text(array.path, ": has dtype '", array.descr, "', wanted float32, float64 or uint8"));
  }
  for (size_t k = 0; k < out.size(); ++k) {
    if (std::isfinite(out[k])) continue;
    throw gr::Error(GR_NONFINITE, option,
                    gr::text(array.path, ": element ", k, " is ", out[k], " as float32"));
  }
  return out;
}

std::vector<int64_t> to_integers(const NpyArray& array, const char* option) {
  if (array.descr == "<i8") return convert<int64_t, int64_t>(array);
  if (array.descr == "<i4") return convert<int32_t, int64_t>(array);
  throw gr::Error(GR_INVALID_ARGUMENT, option,
                  gr::text(array.path, ": has dtype '", array.descr, "', wanted int32 or int64"));
}
