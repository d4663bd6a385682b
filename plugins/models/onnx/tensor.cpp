// SPDX-License-Identifier: Apache-2.0
// Tensors: see tensor.hpp.
#include "tensor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "fields.hpp"
#include "gradrack/bfloat16.hpp"
#include "gradrack/error.hpp"
#include "gradrack/float16.hpp"
#include "gradrack/graph.h"

namespace gradrack::onnx {

namespace {

namespace Type = TensorDataType;

struct TypeRow {
  int32_t type;
  const char* name;
  int64_t bits;
  gr_dtype_t dtype;  // 0: the host has none
};

constexpr TypeRow kTypes[] = {
    {Type::FLOAT, "FLOAT", 32, GR_FLOAT32},
    {Type::UINT8, "UINT8", 8, GR_UINT8},
    {Type::INT8, "INT8", 8, GR_INT8},
    {Type::UINT16, "UINT16", 16, 0},
    {Type::INT16, "INT16", 16, 0},
    {Type::INT32, "INT32", 32, GR_INT32},
    {Type::INT64, "INT64", 64, GR_INT64},
    {Type::STRING, "STRING", 0, 0},
    {Type::BOOL, "BOOL", 8, GR_BOOL},
    {Type::FLOAT16, "FLOAT16", 16, GR_FLOAT16},
    {Type::DOUBLE, "DOUBLE", 64, GR_FLOAT64},
    {Type::UINT32, "UINT32", 32, 0},
    {Type::UINT64, "UINT64", 64, 0},
    {Type::COMPLEX64, "COMPLEX64", 64, 0},
    {Type::COMPLEX128, "COMPLEX128", 128, 0},
    {Type::BFLOAT16, "BFLOAT16", 16, GR_BFLOAT16},
    {Type::FLOAT8E4M3FN, "FLOAT8E4M3FN", 8, 0},
    {Type::FLOAT8E4M3FNUZ, "FLOAT8E4M3FNUZ", 8, 0},
    {Type::FLOAT8E5M2, "FLOAT8E5M2", 8, 0},
    {Type::FLOAT8E5M2FNUZ, "FLOAT8E5M2FNUZ", 8, 0},
    {Type::UINT4, "UINT4", 4, 0},
    {Type::INT4, "INT4", 4, 0},
    {Type::FLOAT4E2M1, "FLOAT4E2M1", 4, 0},
};

const TypeRow* find_type(int32_t type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

/// Calls `use` with a value of the C++ type that has the content's layout.
template <typename Use>
void with_type(int32_t type, Use&& use) {
  switch (type) {
    case Type::FLOAT:
      return use(float{});
    case Type::DOUBLE:
      return use(double{});
    case Type::INT8:
      return use(int8_t{});
    case Type::INT16:
      return use(int16_t{});
    case Type::INT32:
      return use(int32_t{});
    case Type::INT64:
      return use(int64_t{});
    case Type::UINT8:
    case Type::BOOL:
      return use(uint8_t{});
    case Type::UINT16:
      return use(uint16_t{});
    case Type::UINT32:
      return use(uint32_t{});
    case Type::UINT64:
      return use(uint64_t{});
    default:
      throw sdk::Error(GR_UNSUPPORTED, "file",
                       "tensors of " + type_name(type) + " are not read element by element");
  }
}

template <typename Out>
std::vector<Out> elements(const Tensor& tensor) {
  std::vector<Out> out(static_cast<size_t>(tensor.count()));
  if (tensor.is_filled()) {
    std::fill(out.begin(), out.end(), static_cast<Out>(tensor.fill()));
    return out;
  }
  with_type(tensor.type(), [&](auto sample) {
    using T = decltype(sample);
    for (size_t k = 0; k < out.size(); ++k) {
      T number;
      std::memcpy(&number, tensor.content().data() + k * sizeof(T), sizeof(T));
      out[k] = static_cast<Out>(number);
    }
  });
  return out;
}

template <typename In>
Tensor from_elements(const std::vector<In>& numbers, std::vector<int64_t> dims, int32_t type) {
  auto bytes = std::make_shared<std::string>();
  with_type(type, [&](auto sample) {
    using T = decltype(sample);
    bytes->resize(numbers.size() * sizeof(T));
    for (size_t k = 0; k < numbers.size(); ++k) {
      const T number = static_cast<T>(numbers[k]);
      std::memcpy(bytes->data() + k * sizeof(T), &number, sizeof(T));
    }
  });
  return Tensor(type, std::move(dims), *bytes, bytes);
}

/// Bits of float16 and bfloat16 stand in int32_data, one number an element.
Tensor of_bits(const std::vector<int64_t>& numbers, std::vector<int64_t> dims, int32_t type) {
  Tensor bits = from_elements(numbers, dims, type_bits(type) == 8 ? Type::UINT8 : Type::UINT16);
  return Tensor(type, std::move(dims), bits.content(), std::make_shared<Tensor>(bits));
}

uint64_t number_of(const std::string& text, const TensorMessage& message, const char* key) {
  size_t used = 0;
  uint64_t number = 0;
  try {
    if (!text.empty() && text[0] >= '0' && text[0] <= '9') number = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  sdk::require(used == text.size() && used > 0, GR_INVALID_ARGUMENT, "file", "tensor '",
               message.name, "': its ", key, " is '", text, "', wanted a number of bytes");
  return number;
}

std::string_view external_content(const TensorMessage& message, uint64_t bytes, FileBytes& files) {
  std::string location;
  uint64_t offset = 0, length = bytes;
  for (const auto& [key, value] : message.external) {
    if (key == "location") location = value;
    if (key == "offset") offset = number_of(value, message, "offset");
    if (key == "length") length = number_of(value, message, "length");
  }
  sdk::require(length == bytes, GR_INVALID_ARGUMENT, "file", "tensor '", message.name,
               "': its length in ", location, " is ", length, " bytes, its dims say ", bytes);
  const std::string_view whole = files.beside(location, "tensor '" + message.name + "'");
  sdk::require(offset <= whole.size() && length <= whole.size() - offset, GR_INVALID_ARGUMENT,
               "file", "tensor '", message.name, "': bytes ", offset, " to ", offset + length,
               " of ", location, ", which has ", whole.size(), ": is it cut?");
  return whole.substr(offset, length);
}

Tensor from_numbers(const TensorMessage& message) {
  switch (message.type) {
    case Type::FLOAT:
      return from_elements(message.floats, message.dims, message.type);
    case Type::DOUBLE:
      return from_elements(message.doubles, message.dims, message.type);
    case Type::FLOAT16:
    case Type::BFLOAT16:
    case Type::FLOAT8E4M3FN:
    case Type::FLOAT8E4M3FNUZ:
    case Type::FLOAT8E5M2:
    case Type::FLOAT8E5M2FNUZ:
      return of_bits(message.ints, message.dims, message.type);
    default:
      return from_elements(message.ints, message.dims, message.type);
  }
}

size_t number_count(const TensorMessage& message) {
  if (message.type == Type::FLOAT) return message.floats.size();
  if (message.type == Type::DOUBLE) return message.doubles.size();
  return message.ints.size();
}

}  // namespace

Tensor::Tensor(int32_t type, std::vector<int64_t> dims, std::string_view content,
               std::shared_ptr<const void> owner)
    : type_(type),
      dims_(std::move(dims)),
      count_(element_count(dims_)),
      content_(content),
      owner_(std::move(owner)) {
  const auto bytes = static_cast<uint64_t>((count_ * type_bits(type) + 7) / 8);
  sdk::require(count_ >= 0 && content_.size() == bytes, GR_INVALID_ARGUMENT, "file",
               type_name(type), " ", dims_text(dims_), " has ", content_.size(), " bytes, wanted ",
               bytes);
}

Tensor Tensor::filled(int32_t type, std::vector<int64_t> dims, double number) {
  Tensor tensor;
  tensor.type_ = type;
  tensor.dims_ = std::move(dims);
  tensor.count_ = element_count(tensor.dims_);
  tensor.fill_ = number;
  return tensor;
}

Tensor Tensor::of_ints(const std::vector<int64_t>& numbers, std::vector<int64_t> dims,
                       int32_t type) {
  return from_elements(numbers, std::move(dims), type);
}

Tensor Tensor::of_reals(const std::vector<double>& numbers, std::vector<int64_t> dims,
                        int32_t type) {
  if (type == Type::FLOAT || type == Type::DOUBLE) return from_elements(numbers, dims, type);
  std::vector<int64_t> bits;
  for (const double number : numbers) {
    const auto narrow = static_cast<float>(number);
    bits.push_back(type == Type::FLOAT16 ? sdk::to_float16(narrow) : sdk::to_bfloat16(narrow));
  }
  return of_bits(bits, std::move(dims), type);
}

bool Tensor::is_real() const {
  return type_ == Type::FLOAT || type_ == Type::DOUBLE || type_ == Type::FLOAT16 ||
         type_ == Type::BFLOAT16;
}

bool Tensor::is_integer() const {
  return (type_ >= Type::UINT8 && type_ <= Type::INT64) || type_ == Type::BOOL ||
         type_ == Type::UINT32 || type_ == Type::UINT64;
}

std::vector<double> Tensor::reals() const {
  const bool half = type_ == Type::FLOAT16 || type_ == Type::BFLOAT16;
  if (!half || is_filled()) return elements<double>(*this);
  std::vector<double> out;
  const Tensor bits(Type::UINT16, dims_, content_, owner_);
  for (const int64_t each : bits.ints()) {
    const auto number = static_cast<uint16_t>(each);
    out.push_back(static_cast<double>(type_ == Type::FLOAT16 ? sdk::from_float16(number)
                                                             : sdk::from_bfloat16(number)));
  }
  return out;
}

std::vector<int64_t> Tensor::ints() const {
  sdk::require(is_integer(), GR_INVALID_ARGUMENT, "file", "got a tensor of ", type_name(type_),
               " where integers are wanted");
  return elements<int64_t>(*this);
}

Tensor Tensor::with_dims(std::vector<int64_t> dims) const {
  if (is_filled()) return filled(type_, std::move(dims), *fill_);
  return Tensor(type_, std::move(dims), content_, owner_);
}

Tensor read_tensor(const TensorMessage& message, FileBytes& files) {
  const std::string who = "tensor '" + message.name + "'";
  const int64_t bits = type_bits(message.type), count = element_count(message.dims);
  sdk::require(!message.has_strings && bits > 0, GR_UNSUPPORTED, "file", who, " has type ",
               type_name(message.type), ", which is not trained on");
  sdk::require(message.dims.size() <= GR_MAX_RANK, GR_UNSUPPORTED, "file", who, " has ",
               message.dims.size(), " dims, wanted at most ", int{GR_MAX_RANK});
  const bool fits = count >= 0 && count <= std::numeric_limits<int64_t>::max() / bits - 8;
  sdk::require(fits, GR_INVALID_ARGUMENT, "file", who, " has dims ", dims_text(message.dims),
               ", wanted numbers from 0 that leave 63 bits together");
  const auto bytes = static_cast<uint64_t>((count * bits + 7) / 8);
  try {
    if (message.is_external) {
      return Tensor(message.type, message.dims, external_content(message, bytes, files), nullptr);
    }
    if (!message.raw.empty() || bytes == 0) {
      return Tensor(message.type, message.dims, message.raw, nullptr);
    }
    const size_t given = number_count(message);
    sdk::require(given == static_cast<size_t>(count), GR_INVALID_ARGUMENT, "file", "holds ", given,
                 " numbers, its dims ", dims_text(message.dims), " say ", count);
    return from_numbers(message);
  } catch (const sdk::Error& e) {
    const std::string text = e.what();
    if (text.rfind(who, 0) == 0) throw;
    throw sdk::Error(e.code(), "file", who + ": " + text);
  }
}

gr_dtype_t host_dtype(int32_t type, std::string_view what) {
  const TypeRow* const row = find_type(type);
  sdk::require(row != nullptr && row->dtype != 0, GR_UNSUPPORTED, "file", what, " has type ",
               type_name(type), ", which no operator here takes");
  return row->dtype;
}

int32_t onnx_type(gr_dtype_t dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row.type;
  }
  throw sdk::Error(GR_INTERNAL, "file", sdk::text("dtype ", dtype, " has no ONNX type"));
}

std::string type_name(int32_t type) {
  const TypeRow* const row = find_type(type);
  return row != nullptr ? row->name : sdk::text("type ", type);
}

int64_t type_bits(int32_t type) {
  const TypeRow* const row = find_type(type);
  return row != nullptr ? row->bits : 0;
}

int64_t element_count(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return -1;
    empty = empty || dim == 0;
    if (dim > 0 && __builtin_mul_overflow(count, dim, &count)) return -1;
  }
  return empty ? 0 : count;
}

std::string dims_text(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t k = 0; k < dims.size(); ++k) text += (k > 0 ? ", " : "") + std::to_string(dims[k]);
  return text + "]";
}

}  // namespace gradrack::onnx
