// SPDX-License-Identifier: Apache-2.0
// Elements as doubles: see host_array.hpp. Half precision goes through its 16 bits by hand
// (IEEE 754-2019 binary16; bfloat16 is the upper half of binary32).
#include "sdk/conformance/host_array.hpp"

#include <cmath>
#include <cstring>

namespace gradrack::conform {
namespace {

template <typename T>
double load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

template <typename T>
void store(std::byte* at, double number) {
  const T value = static_cast<T>(number);
  std::memcpy(at, &value, sizeof value);
}

double from_half(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 0x1f) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

uint16_t to_half(double number) {
  const uint16_t sign = std::signbit(number) ? 0x8000 : 0;
  if (std::isnan(number)) return 0x7e00;
  const double size = std::fabs(number);
  if (size >= 65520.0) return sign | 0x7c00;  // rounds past the largest, 65504
  int exponent = 0;
  (void)std::frexp(size, &exponent);
  if (size == 0 || exponent < -13) {  // subnormal: multiples of 2^-24
    return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(size, 24)));
  }
  // A fraction that rounds up to 2048 carries into the exponent, as it should.
  const auto fraction = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 11 - exponent)));
  return sign | static_cast<uint16_t>((static_cast<uint32_t>(exponent + 13) << 10) + fraction);
}

double from_brain(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return static_cast<double>(value);
}

uint16_t to_brain(double number) {
  if (std::isnan(number)) return 0x7fc0;
  const auto value = static_cast<float>(number);
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

}  // namespace

HostArray::HostArray(gr_dtype_t type, std::vector<int64_t> shape)
    : dtype(type), dims(std::move(shape)) {
  bytes.resize(static_cast<size_t>(count() * gr_dtype_bytes(dtype)));
}

HostArray::HostArray(gr_dtype_t type, std::vector<int64_t> shape,
                     const std::vector<double>& numbers)
    : HostArray(type, std::move(shape)) {
  for (size_t k = 0; k < numbers.size(); ++k) set_number(static_cast<int64_t>(k), numbers[k]);
}

int64_t HostArray::count() const {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  return elements;
}

double HostArray::number(int64_t k) const {
  const std::byte* at = bytes.data() + k * gr_dtype_bytes(dtype);
  switch (dtype) {
    case GR_FLOAT32:
      return load<float>(at);
    case GR_FLOAT64:
      return load<double>(at);
    case GR_INT64:
      return load<int64_t>(at);
    case GR_INT32:
      return load<int32_t>(at);
    case GR_INT8:
      return load<int8_t>(at);
    case GR_FLOAT16:
      return from_half(static_cast<uint16_t>(load<uint16_t>(at)));
    case GR_BFLOAT16:
      return from_brain(static_cast<uint16_t>(load<uint16_t>(at)));
    default:  // uint8, and bool, whose byte may be wrong
      return load<uint8_t>(at);
  }
}

void HostArray::set_number(int64_t k, double number) {
  std::byte* at = bytes.data() + k * gr_dtype_bytes(dtype);
  switch (dtype) {
    case GR_FLOAT32:
      return store<float>(at, number);
    case GR_FLOAT64:
      return store<double>(at, number);
    case GR_INT64:
      return store<int64_t>(at, number);
    case GR_INT32:
      return store<int32_t>(at, number);
    case GR_INT8:
      return store<int8_t>(at, number);
    case GR_FLOAT16:
      return store<uint16_t>(at, to_half(number));
    case GR_BFLOAT16:
      return store<uint16_t>(at, to_brain(number));
    case GR_BOOL:
      return store<uint8_t>(at, number != 0 ? 1 : 0);
    default:
      return store<uint8_t>(at, number);
  }
}

std::vector<double> HostArray::numbers() const {
  std::vector<double> out;
  for (int64_t k = 0; k < count(); ++k) out.push_back(number(k));
  return out;
}

double round_to(gr_dtype_t dtype, double number) {
  HostArray one(dtype, {}, {number});
  return one.number(0);
}

}  // namespace gradrack::conform
