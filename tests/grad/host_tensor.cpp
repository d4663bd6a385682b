// SPDX-License-Identifier: Apache-2.0
// HostTensor: see host_tensor.hpp.
#include "tests/grad/host_tensor.hpp"

#include "gradrack/bfloat16.hpp"
#include "gradrack/float16.hpp"

namespace gradrack::test {

namespace {

template <class T>
double read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

template <class T>
void write(char* at, double number) {
  const T value = static_cast<T>(number);
  std::memcpy(at, &value, sizeof value);
}

uint16_t read_bits(const char* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

void write_bits(char* at, uint16_t bits) { std::memcpy(at, &bits, sizeof bits); }

}  // namespace

HostTensor::HostTensor(gr_dtype_t type, std::vector<int64_t> shape)
    : dtype(type), dims(std::move(shape)) {
  bytes.resize(static_cast<size_t>(count() * gr_dtype_bytes(dtype)));
}

HostTensor HostTensor::reals(gr_dtype_t dtype, std::vector<int64_t> dims,
                             const std::vector<double>& numbers) {
  HostTensor out(dtype, std::move(dims));
  GR_CHECK(static_cast<size_t>(out.count()) == numbers.size());
  for (size_t k = 0; k < numbers.size(); ++k) out.set_number(static_cast<int64_t>(k), numbers[k]);
  return out;
}

HostTensor HostTensor::ints(gr_dtype_t dtype, std::vector<int64_t> dims,
                            const std::vector<int64_t>& numbers) {
  HostTensor out(dtype, std::move(dims));
  GR_CHECK(static_cast<size_t>(out.count()) == numbers.size());
  for (size_t k = 0; k < numbers.size(); ++k) {
    char* at = out.bytes.data() + k * static_cast<size_t>(gr_dtype_bytes(dtype));
    if (dtype == GR_INT64) {
      std::memcpy(at, &numbers[k], sizeof numbers[k]);
    } else {
      out.set_number(static_cast<int64_t>(k), static_cast<double>(numbers[k]));
    }
  }
  return out;
}

int64_t HostTensor::count() const {
  int64_t n = 1;
  for (const int64_t dim : dims) n *= dim;
  return n;
}

std::vector<double> HostTensor::numbers() const {
  std::vector<double> out;
  for (int64_t k = 0; k < count(); ++k) out.push_back(number(k));
  return out;
}

double HostTensor::number(int64_t k) const {
  const char* at = bytes.data() + k * gr_dtype_bytes(dtype);
  switch (dtype) {
    case GR_FLOAT64:
      return read<double>(at);
    case GR_FLOAT32:
      return read<float>(at);
    case GR_INT64:
      return read<int64_t>(at);
    case GR_INT32:
      return read<int32_t>(at);
    case GR_INT8:
      return read<int8_t>(at);
    case GR_UINT8:
      return read<uint8_t>(at);
    case GR_FLOAT16:
      return sdk::from_float16(read_bits(at));
    case GR_BFLOAT16:
      return sdk::from_bfloat16(read_bits(at));
    default:
      GR_CHECK(dtype == GR_BOOL);
      return *at != 0 ? 1.0 : 0.0;
  }
}

void HostTensor::set_number(int64_t k, double number) {
  char* at = bytes.data() + k * gr_dtype_bytes(dtype);
  switch (dtype) {
    case GR_FLOAT64:
      return write<double>(at, number);
    case GR_FLOAT32:
      return write<float>(at, number);
    case GR_INT64:
      return write<int64_t>(at, number);
    case GR_INT32:
      return write<int32_t>(at, number);
    case GR_INT8:
      return write<int8_t>(at, number);
    case GR_UINT8:
      return write<uint8_t>(at, number);
    case GR_FLOAT16:
      return write_bits(at, sdk::to_float16(number));
    case GR_BFLOAT16:
      return write_bits(at, sdk::to_bfloat16(number));
    default:
      GR_CHECK(dtype == GR_BOOL);
      *at = number != 0.0;
  }
}

}  // namespace gradrack::test
