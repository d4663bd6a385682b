// SPDX-License-Identifier: Apache-2.0
// Conversions: see convert.hpp.
#include "core/device/convert.hpp"

#include <fmt/format.h>

#include <limits>
#include <type_traits>

#include "gradrack/bfloat16.hpp"
#include "gradrack/float16.hpp"

namespace gradrack {

namespace {

/// A number of 16 bits as the conversions below see it.
template <uint16_t (*kToBits)(double), float (*kFromBits)(uint16_t)>
struct Narrow {
  Narrow() = default;
  explicit Narrow(double number) : bits(kToBits(number)) {}
  explicit Narrow(int64_t number) : Narrow(static_cast<double>(number)) {}
  explicit operator double() const { return static_cast<double>(kFromBits(bits)); }
  uint16_t bits = 0;
};
using Bfloat16 = Narrow<sdk::to_bfloat16, sdk::from_bfloat16>;
using Float16 = Narrow<sdk::to_float16, sdk::from_float16>;

template <typename T>
constexpr bool kIsReal =
    std::is_floating_point_v<T> || std::is_same_v<T, Bfloat16> || std::is_same_v<T, Float16>;

/// Calls `body` with a zero of the dtype's C++ type; bool is its own case because any non-zero is
/// true.
template <typename Body>
Status with_type(gr_dtype_t dtype, Body body) {
  switch (dtype) {
    case GR_INT8:
      return body(int8_t{});
    case GR_INT32:
      return body(int32_t{});
    case GR_INT64:
      return body(int64_t{});
    case GR_UINT8:
      return body(uint8_t{});
    case GR_BOOL:
      return body(bool{});
    case GR_FLOAT32:
      return body(float{});
    case GR_FLOAT64:
      return body(double{});
    case GR_BFLOAT16:
      return body(Bfloat16{});
    case GR_FLOAT16:
      return body(Float16{});
    default:
      return unsupported(fmt::format("no host conversion for dtype code {} with {} bits",
                                     dtype / 256, dtype % 256));
  }
}

template <typename To, typename From>
bool holds(From number) {
  if constexpr (std::is_same_v<To, bool> || kIsReal<To>) {
    return true;
  } else {
    const long double wide = number;
    return wide >= static_cast<long double>(std::numeric_limits<To>::min()) &&
           wide <= static_cast<long double>(std::numeric_limits<To>::max());
  }
}

template <typename From>
Status write_all(gr_dtype_t dtype, std::span<const From> numbers, void* out) {
  return with_type(dtype, [&](auto zero) -> Status {
    using To = decltype(zero);
    To* to = static_cast<To*>(out);
    for (const From number : numbers) {
      if (!holds<To>(number)) {
        return {GR_OUT_OF_RANGE, fmt::format("{} does not fit {} bits", number, dtype % 256)};
      }
      if constexpr (std::is_same_v<To, bool>) {
        *to++ = number != From{0};
      } else {
        *to++ = static_cast<To>(number);
      }
    }
    return {};
  });
}

}  // namespace

Status write_numbers(gr_dtype_t dtype, std::span<const double> numbers, void* out) {
  return write_all(dtype, numbers, out);
}

Status write_numbers(gr_dtype_t dtype, std::span<const int64_t> numbers, void* out) {
  return write_all(dtype, numbers, out);
}

Result<double> read_number(gr_dtype_t dtype, const void* at) {
  double number = 0;
  GR_TRY(with_type(dtype, [&](auto zero) -> Status {
    number = static_cast<double>(*static_cast<const decltype(zero)*>(at));
    return {};
  }));
  return number;
}

Result<std::vector<std::byte>> convert_numbers(std::span<const std::byte> bytes, gr_dtype_t from,
                                               gr_dtype_t to) {
  const auto width = static_cast<size_t>(gr_dtype_bytes(from));
  std::vector<double> numbers(bytes.size() / width);
  for (size_t k = 0; k < numbers.size(); ++k) {
    GR_ASSIGN(numbers[k], read_number(from, bytes.data() + k * width));
  }
  std::vector<std::byte> out(numbers.size() * static_cast<size_t>(gr_dtype_bytes(to)));
  GR_TRY(write_numbers(to, std::span<const double>(numbers), out.data()));
  return out;
}

}  // namespace gradrack
