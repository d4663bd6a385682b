// SPDX-License-Identifier: Apache-2.0
// Tensors over memory that is not there yet: see frame.hpp.
#include "backends/libtorch/frame.hpp"

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include "backends/common/host_backend.hpp"

namespace gradrack::libtorch {
namespace {

/// A dense tensor whose storage has a size and no bytes. Made in inference mode, so that no call
/// with it passes through autograd.
at::Tensor unbound(const Dims& dims, at::ScalarType type) {
  const caffe2::TypeMeta meta = c10::scalarTypeToTypeMeta(type);
  size_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), count * meta.itemsize(),
      at::DataPtr(nullptr, at::Device(at::kCPU)), nullptr, /*resizable=*/false);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), meta);
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes(dims));
  return tensor;
}

}  // namespace

at::ScalarType scalar_type(gr_dtype_t dtype) {
  switch (dtype) {
    case GR_INT8:
      return at::kChar;
    case GR_INT32:
      return at::kInt;
    case GR_INT64:
      return at::kLong;
    case GR_UINT8:
      return at::kByte;
    case GR_FLOAT16:
      return at::kHalf;
    case GR_FLOAT32:
      return at::kFloat;
    case GR_FLOAT64:
      return at::kDouble;
    case GR_BFLOAT16:
      return at::kBFloat16;
    case GR_BOOL:
      return at::kBool;
    default:
      return at::ScalarType::Undefined;
  }
}

Frame::Frame(const NodeSpec& node) {
  const auto fill = [](const std::vector<TensorSpec>& specs, std::vector<Place>* places) {
    for (const TensorSpec& spec : specs) {
      places->emplace_back();
      if (spec.present()) places->back().tensor = unbound(spec.dims, scalar_type(spec.dtype));
    }
  };
  fill(node.inputs, &inputs_);
  fill(node.outputs, &outputs_);
}

at::Tensor Frame::scratch(const Dims& dims, at::ScalarType type) {
  at::Tensor tensor = unbound(dims, type);
  const auto bytes = static_cast<int64_t>(tensor.storage().nbytes());
  scratch_.push_back({{tensor, nullptr}, workspace_bytes_});
  workspace_bytes_ += (bytes + host::kAlignment - 1) / host::kAlignment * host::kAlignment;
  return tensor;
}

void Frame::point(Place* place, void* data) {
  if (place->data == data) return;
  at::DataPtr pointer(data, at::Device(at::kCPU));
  place->tensor.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(pointer));
  place->data = data;
}

void Frame::bind(const DLTensor* const* in, DLTensor* const* out, void* workspace) {
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (in[k] != nullptr) point(&inputs_[k], static_cast<char*>(in[k]->data) + in[k]->byte_offset);
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    if (out[k] == nullptr) continue;
    point(&outputs_[k], static_cast<char*>(out[k]->data) + out[k]->byte_offset);
  }
  for (auto& [place, offset] : scratch_) point(&place, static_cast<char*>(workspace) + offset);
}

}  // namespace gradrack::libtorch
