// SPDX-License-Identifier: Apache-2.0
// Tensor: a dense tensor of a model's file, checked: as many bytes as its dims and dtype say.
//
// Made from a message, or by folding nodes whose inputs are all known. Invariant: content() has
// count() elements, little-endian, row-major; copies share it. It does not know graphs.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "file_bytes.hpp"
#include "gradrack/tensor.h"
#include "message.hpp"

namespace gradrack::onnx {

class Tensor {
 public:
  Tensor() = default;
  /// Whole content; `owner` keeps it alive, or is null when something else does.
  Tensor(int32_t type, std::vector<int64_t> dims, std::string_view content,
         std::shared_ptr<const void> owner);

  /// Every element is `number`; no bytes are kept, however many they are.
  static Tensor filled(int32_t type, std::vector<int64_t> dims, double number);

  static Tensor of_ints(const std::vector<int64_t>& numbers, std::vector<int64_t> dims,
                        int32_t type);
  static Tensor of_reals(const std::vector<double>& numbers, std::vector<int64_t> dims,
                         int32_t type);

  int32_t type() const { return type_; }  ///< TensorDataType
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t count() const { return count_; }
  std::string_view content() const { return content_; }  ///< empty when is_filled()
  bool is_filled() const { return fill_.has_value(); }
  double fill() const { return *fill_; }
  bool is_real() const;
  bool is_integer() const;  ///< or bool
  /// Elements as they convert to double; GR_UNSUPPORTED for types of less than a byte and others.
  std::vector<double> reals() const;
  std::vector<int64_t> ints() const;
  /// Same bytes, other dims of the same count.
  Tensor with_dims(std::vector<int64_t> dims) const;

 private:
  int32_t type_ = 0;
  std::vector<int64_t> dims_;
  int64_t count_ = 0;
  std::string_view content_;
  std::optional<double> fill_;
  std::shared_ptr<const void> owner_;
};

/// Checks a message; content that is outside the file is read from `files`. GR_INVALID_ARGUMENT
/// names the tensor: bad dims, another number of bytes than they say, a place outside the file.
Tensor read_tensor(const TensorMessage& message, FileBytes& files);

/// The host's dtype for ONNX's; GR_UNSUPPORTED names the type and `what` has it.
gr_dtype_t host_dtype(int32_t type, std::string_view what);
/// ONNX's type for the host's dtype.
int32_t onnx_type(gr_dtype_t dtype);
std::string type_name(int32_t type);  ///< "FLOAT16"
/// Bits of an element; 0: of strings and unknown types.
int64_t type_bits(int32_t type);
/// Product of dims, each of which is at least 0; -1: one is not, or it leaves 63 bits.
int64_t element_count(const std::vector<int64_t>& dims);
std::string dims_text(const std::vector<int64_t>& dims);

}  // namespace gradrack::onnx
