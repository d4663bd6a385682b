// SPDX-License-Identifier: Apache-2.0
// Guarded device memory: see backend_rig.hpp.
#include "sdk/conformance/backend_rig.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gradrack::conform {
namespace {

constexpr int64_t kLeastGuard = 256;

std::vector<int64_t> dense_strides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t k = dims.size(); k-- > 0; stride *= dims[k]) strides[k] = stride;
  return strides;
}

DLTensor describe(void* data, DLDevice device, gr_dtype_t dtype, std::vector<int64_t>& shape,
                  std::vector<int64_t>& strides) {
  DLTensor tensor = {};
  tensor.data = data;
  tensor.device = device;
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = gr_dl_dtype(dtype);
  if (shape.capacity() == 0) shape.reserve(1);  // a rank of 0 has an address too
  if (strides.capacity() == 0) strides.reserve(1);
  tensor.shape = shape.data();
  tensor.strides = strides.data();
  return tensor;
}

}  // namespace

Result<std::unique_ptr<Rig>> Rig::make(Device* device) {
  std::unique_ptr<Rig> rig(new Rig(device));
  GR_ASSIGN(rig->stream_, device->stream(device->info().max_streams - 1));
  return rig;
}

Status Rig::synchronize() const { return conform::synchronize(*this, stream()); }

Status synchronize(const Rig& rig, gr_stream_t* stream) {
  gr_error_t err = {};
  const int32_t code = rig.table()->stream_synchronize(rig.table()->self, stream, &err);
  return status_from(code, err).with_context("stream_synchronize");
}

Result<DeviceBuffer> DeviceBuffer::make(const Rig& rig, int64_t bytes) {
  DeviceBuffer buffer;
  buffer.rig_ = &rig;
  buffer.bytes_ = bytes;
  buffer.guard_ = align_up(kLeastGuard, rig.device()->alignment());
  gr_error_t err = {};
  const int32_t code =
      rig.table()->allocate(rig.table()->self, buffer.whole(), &buffer.memory_, &err);
  GR_TRY(status_from(code, err).with_context(fmt::format("allocate {} bytes", buffer.whole())));
  if (buffer.memory_ == nullptr) return internal_error("allocate gave NULL and said GR_OK");
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (memory_ != nullptr) rig_->table()->release(rig_->table()->self, memory_);
}

void DeviceBuffer::swap(DeviceBuffer& other) noexcept {
  std::swap(rig_, other.rig_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  std::swap(guard_, other.guard_);
}

void* DeviceBuffer::data() const {
  // An address on the device is added to, never read through.
  return rig_->handles() ? memory_ : static_cast<std::byte*>(memory_) + guard_;
}

Status DeviceBuffer::copy(void* host, bool to_device) const {
  std::vector<int64_t> shape = {whole()}, strides = {1};
  DLTensor here = describe(host, {kDLCPU, 0}, GR_UINT8, shape, strides);
  DLTensor there = describe(memory_, rig_->device()->dl_device(), GR_UINT8, shape, strides);
  const gr_backend_t* b = rig_->table();
  gr_error_t err = {};
  const int32_t code = b->copy(b->self, to_device ? &there : &here, to_device ? &here : &there,
                               rig_->stream(), &err);
  GR_TRY(status_from(code, err).with_context(to_device ? "copy to the device"
                                                       : "copy from the device"));
  return rig_->synchronize();
}

Status DeviceBuffer::put(const std::byte* content, uint8_t fill, uint8_t guard) {
  std::vector<std::byte> image(static_cast<size_t>(whole()), std::byte{guard});
  std::byte* body = image.data() + guard_;
  if (content == nullptr) {
    std::memset(body, fill, static_cast<size_t>(bytes_));
  } else if (bytes_ > 0) {
    std::memcpy(body, content, static_cast<size_t>(bytes_));
  }
  return copy(image.data(), true);
}

Result<std::vector<std::byte>> DeviceBuffer::get() const {
  std::vector<std::byte> image(static_cast<size_t>(whole()));
  GR_TRY(copy(image.data(), false));
  return image;
}

std::string DeviceBuffer::guard_fault(const std::vector<std::byte>& image, uint8_t guard) const {
  for (int64_t k = guard_; k-- > 0;) {
    if (image[static_cast<size_t>(k)] == std::byte{guard}) continue;
    return fmt::format("wrote {} bytes before the beginning", guard_ - k);
  }
  for (int64_t k = 0; k < guard_; ++k) {
    if (image[static_cast<size_t>(guard_ + bytes_ + k)] == std::byte{guard}) continue;
    return fmt::format("wrote past the end, first at byte {} behind it", k);
  }
  return "";
}

DeviceTensor::DeviceTensor(const DeviceBuffer& buffer, gr_dtype_t dtype, std::vector<int64_t> dims,
                           bool odd_strides)
    : shape_(std::move(dims)), strides_(dense_strides(shape_)) {
  for (size_t k = 0; odd_strides && k < shape_.size(); ++k) {
    if (shape_[k] == 1) strides_[k] = 1234567 + static_cast<int64_t>(k);
  }
  tensor_ = describe(buffer.data(), buffer.rig().device()->dl_device(), dtype, shape_, strides_);
  tensor_.byte_offset = buffer.byte_offset();
}

HostTensor::HostTensor(HostArray* array) : shape_(array->dims), strides_(dense_strides(shape_)) {
  if (array->bytes.empty()) array->bytes.reserve(1);  // an empty tensor has an address too
  tensor_ = describe(array->bytes.data(), {kDLCPU, 0}, array->dtype, shape_, strides_);
}

}  // namespace gradrack::conform
