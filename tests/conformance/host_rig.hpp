// SPDX-License-Identifier: Apache-2.0
// HostRig: a backend in host memory made from a table of kernels, held by its C interface alone.
//
// Tests of the frame use it, so that they see what the host would see. It owns the gr_backend_t;
// nodes and tensors are the caller's.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/common/host_backend.hpp"
#include "backends/common/tensor_access.hpp"

namespace gradrack::conformance {

/// A dense tensor with memory of its own.
template <class T>
struct OwnedTensor {
  OwnedTensor(gr_dtype_t type, std::vector<int64_t> shape_in, std::vector<T> values)
      : shape(std::move(shape_in)),
        strides(host::row_major_strides(shape)),
        data(std::move(values)),
        dtype(type) {
    tensor.data = data.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype = gr_dl_dtype(type);
    tensor.shape = shape.data();
    tensor.strides = strides.data();
    tensor.byte_offset = 0;
  }
  OwnedTensor(const OwnedTensor&) = delete;
  OwnedTensor& operator=(const OwnedTensor&) = delete;

  gr_value_type_t type(gr_value_t id) const {
    return {id, dtype, static_cast<uint32_t>(shape.size()), 0, shape.data(), nullptr};
  }

  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::vector<T> data;
  gr_dtype_t dtype;
  DLTensor tensor;
};

class HostRig {
 public:
  HostRig(host::KernelTable table, bool threaded) {
    host::HostBackendConfig config;
    config.description = "test";
    config.threaded = threaded;
    config.max_streams = 8;
    backend.struct_size = sizeof backend;
    EXPECT_EQ(host::make_host_backend(std::move(table), std::move(config), &backend, &err), GR_OK);
  }
  ~HostRig() { backend.destroy(backend.self); }
  HostRig(const HostRig&) = delete;
  HostRig& operator=(const HostRig&) = delete;

  gr_stream_t* stream() {
    gr_stream_t* out = nullptr;
    EXPECT_EQ(backend.stream_create(backend.self, &out, &err), GR_OK);
    return out;
  }
  gr_event_t* event() {
    gr_event_t* out = nullptr;
    EXPECT_EQ(backend.event_create(backend.self, &out, &err), GR_OK);
    return out;
  }
  /// Prepares one node whose border is its own inputs and outputs.
  gr_kernel_t* prepare(const char* op, const std::vector<gr_value_type_t>& inputs,
                       const std::vector<gr_value_type_t>& outputs) {
    gr_node_view_t node = view(op, inputs, outputs);
    gr_group_t group = {};
    group.struct_size = sizeof group;
    group.node_stride = sizeof node;
    group.nodes = &node;
    group.node_count = 1;
    group.inputs = inputs.data();
    group.input_count = static_cast<uint32_t>(inputs.size());
    group.outputs = outputs.data();
    group.output_count = static_cast<uint32_t>(outputs.size());
    info.struct_size = sizeof info;
    gr_kernel_t* kernel = nullptr;
    EXPECT_EQ(backend.prepare(backend.self, &group, &kernel, &info, &err), GR_OK) << err.message;
    return kernel;
  }
  static gr_node_view_t view(const char* op, const std::vector<gr_value_type_t>& inputs,
                             const std::vector<gr_value_type_t>& outputs) {
    gr_node_view_t node = {};
    node.struct_size = sizeof node;
    node.domain = "";
    node.op = op;
    node.inputs = inputs.data();
    node.outputs = outputs.data();
    node.input_count = static_cast<uint32_t>(inputs.size());
    node.output_count = static_cast<uint32_t>(outputs.size());
    return node;
  }

  gr_backend_t backend = {};
  gr_error_t err = {};
  gr_kernel_info_t info = {};
};

}  // namespace gradrack::conformance
