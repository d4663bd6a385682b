// SPDX-License-Identifier: Apache-2.0
// Driving a backend's table by hand: see rig.hpp. The order of calls is that of the host.
#include "rig.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>

namespace rig {
namespace {

const gr_host_t kHost = {sizeof(gr_host_t),
                         0,
                         GR_ABI_MAJOR,
                         GR_ABI_MIN_MINOR,
                         GR_ABI_MAX_MINOR,
                         0,
                         "rig",
                         "1.0.0",
                         nullptr,
                         [](void*, int32_t, const char*) {},
                         [](void*, const char*) -> const void* { return nullptr; }};

/// The defaults of a factory's options; texts and numbers are all that backends here declare.
struct Defaults {
  explicit Defaults(const gr_factory_t& factory) {
    for (uint32_t k = 0; k < factory.option_count; ++k) {
      const gr_option_t& option = factory.options[k];
      gr_option_value_t value{};
      value.name = option.name;
      value.type = option.type;
      value.is_default = 1;
      const char* text = option.default_text;
      value.s = text;
      value.f = std::atof(text);
      value.i = std::strcmp(text, "true") == 0 ? 1 : std::atoll(text);
      values.push_back(value);
    }
    options = {sizeof options, sizeof(gr_option_value_t), values.data(), values.size()};
  }
  std::vector<gr_option_value_t> values;
  gr_options_t options;
};

void store(void* at, size_t k, gr_dtype_t dtype, double v) {
  if (dtype == GR_FLOAT32) static_cast<float*>(at)[k] = static_cast<float>(v);
  if (dtype == GR_FLOAT64) static_cast<double*>(at)[k] = v;
  if (dtype == GR_INT8) static_cast<int8_t*>(at)[k] = static_cast<int8_t>(v);
  if (dtype == GR_INT32) static_cast<int32_t*>(at)[k] = static_cast<int32_t>(v);
  if (dtype == GR_INT64) static_cast<int64_t*>(at)[k] = static_cast<int64_t>(v);
  if (dtype == GR_UINT8 || dtype == GR_BOOL) static_cast<uint8_t*>(at)[k] = static_cast<uint8_t>(v);
}

double fetch(const void* at, size_t k, gr_dtype_t dtype) {
  if (dtype == GR_FLOAT32) return static_cast<const float*>(at)[k];
  if (dtype == GR_FLOAT64) return static_cast<const double*>(at)[k];
  if (dtype == GR_INT8) return static_cast<const int8_t*>(at)[k];
  if (dtype == GR_INT32) return static_cast<const int32_t*>(at)[k];
  if (dtype == GR_INT64) return static_cast<double>(static_cast<const int64_t*>(at)[k]);
  return static_cast<const uint8_t*>(at)[k];
}

/// A tensor in host memory and its twin on the device, not at the beginning of its allocation.
class Twin {
 public:
  Twin(const gr_backend_t& table, const gr_device_info_t& info, const Tensor& from)
      : table_(table), shape_(from.dims), strides_(from.dims.size()), dtype_(from.dtype) {
    for (size_t k = shape_.size(); k-- > 0; count_ *= shape_[k]) strides_[k] = count_;
    const int64_t bytes = count_ * gr_dtype_bytes(dtype_);
    host_.assign(static_cast<size_t>(bytes) + 8, 0x7f);
    for (size_t k = 0; k < from.values.size(); ++k) store(host_.data(), k, dtype_, from.values[k]);
    (void)table.allocate(table.self, bytes + 2 * info.alignment, &memory_, nullptr);
    host = {host_.data(),
            {kDLCPU, 0},
            static_cast<int32_t>(shape_.size()),
            gr_dl_dtype(dtype_),
            shape_.data(),
            strides_.data(),
            0};
    device = host;
    device.device = {static_cast<DLDeviceType>(info.device_type), info.device_id};
    device.data = memory_;
    if (info.memory == GR_MEMORY_HANDLE) {
      device.byte_offset = static_cast<uint64_t>(info.alignment);
    } else {
      device.data = static_cast<char*>(memory_) + info.alignment;
    }
  }
  ~Twin() { table_.release(table_.self, memory_); }
  Twin(const Twin&) = delete;
  Twin& operator=(const Twin&) = delete;

  std::vector<double> values() const {
    std::vector<double> out;
    for (int64_t k = 0; k < count_; ++k) {
      out.push_back(fetch(host_.data(), static_cast<size_t>(k), dtype_));
    }
    return out;
  }
  gr_value_type_t type(gr_value_t id, bool known) const {
    return {id, dtype_,        static_cast<uint32_t>(shape_.size()),
            0,  shape_.data(), known ? host_.data() : nullptr};
  }
  DLTensor host, device;

 private:
  const gr_backend_t& table_;
  std::vector<int64_t> shape_, strides_;
  gr_dtype_t dtype_;
  int64_t count_ = 1;
  std::vector<char> host_;
  void* memory_ = nullptr;
};

std::vector<gr_attr_t> c_attrs(const Case& c) {
  std::vector<gr_attr_t> out;
  for (const Attr& a : c.attrs) {
    gr_attr_t attr{};
    attr.name = a.name.c_str();
    attr.type = a.type;
    attr.i = a.i;
    attr.f = a.f;
    attr.s = a.s.c_str();
    attr.ints = a.ints.data();
    attr.count = a.ints.size();
    out.push_back(attr);
  }
  return out;
}

}  // namespace

Backend::Backend(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    (void)gr_fail(&error_, GR_NOT_FOUND, "dlopen", dlerror());
    return;
  }
  const auto* header = static_cast<const gr_plugin_header_t*>(dlsym(handle, GR_ENTRY_SYMBOL));
  gr_plugin_t plugin{};
  plugin.struct_size = sizeof plugin;
  status_ = header == nullptr ? gr_fail(&error_, GR_NOT_FOUND, "", "no entry")
                              : header->entry(&kHost, &plugin, &error_);
  if (status_ != GR_OK) return;
  const gr_factory_t& factory = *plugin.factories[0];
  status_ = factory.probe != nullptr ? factory.probe(&kHost, &error_) : int32_t{GR_OK};
  if (status_ != GR_OK) return;
  const Defaults defaults(factory);
  table_.struct_size = sizeof table_;
  status_ = factory.create(&kHost, &defaults.options, &table_, &error_);
}

Backend::~Backend() {
  if (ok()) table_.destroy(table_.self);
}

Answer Backend::run(const Case& c) {
  Answer answer;
  gr_error_t err{};
  void* self = table_.self;
  gr_device_info_t info{};
  info.struct_size = sizeof info;
  (void)table_.device_info(self, &info, &err);
  std::deque<std::unique_ptr<Twin>> ins, outs;
  std::vector<gr_value_type_t> in_types, out_types;
  std::vector<const DLTensor*> inputs;
  std::vector<DLTensor*> outputs;
  for (const Tensor& t : c.inputs) {
    ins.push_back(std::make_unique<Twin>(table_, info, t));
    in_types.push_back(ins.back()->type(static_cast<gr_value_t>(ins.size()), t.known));
    inputs.push_back(&ins.back()->device);
  }
  for (const Tensor& t : c.outputs) {
    outs.push_back(std::make_unique<Twin>(table_, info, t));
    out_types.push_back(outs.back()->type(static_cast<gr_value_t>(100 + outs.size()), false));
    outputs.push_back(&outs.back()->device);
  }
  const size_t dot = c.op.find('.');
  const std::string domain = dot == std::string::npos ? "" : c.op.substr(0, dot);
  const std::string op = dot == std::string::npos ? c.op : c.op.substr(dot + 1);
  const std::vector<gr_attr_t> attrs = c_attrs(c);
  gr_node_view_t node{};
  node.struct_size = sizeof node;
  node.domain = domain.c_str();
  node.op = op.c_str();
  node.inputs = in_types.data();
  node.outputs = out_types.data();
  node.attrs = attrs.data();
  node.input_count = static_cast<uint32_t>(in_types.size());
  node.output_count = static_cast<uint32_t>(out_types.size());
  node.attr_count = static_cast<uint32_t>(attrs.size());

  gr_claim_t claim{};
  claim.struct_size = sizeof claim;
  answer.status = table_.claim(self, &node, sizeof node, 1, &claim, sizeof claim, &err);
  if (answer.status == GR_OK && claim.verdict != GR_CLAIM_YES) {
    answer.status = GR_UNSUPPORTED;
    answer.message = claim.reason;
    return answer;
  }
  gr_group_t group{};
  group.struct_size = sizeof group;
  group.node_stride = sizeof node;
  group.nodes = &node;
  group.node_count = 1;
  group.inputs = in_types.data();
  group.outputs = out_types.data();
  group.input_count = node.input_count;
  group.output_count = node.output_count;
  gr_kernel_t* kernel = nullptr;
  gr_stream_t* stream = nullptr;
  gr_kernel_info_t kernel_info{};
  kernel_info.struct_size = sizeof kernel_info;
  const auto must = [&](int32_t status) {
    if (answer.status != GR_OK || status == GR_OK) return status == GR_OK;
    answer.status = status;
    answer.message = err.message;
    return false;
  };
  if (!must(table_.prepare(self, &group, &kernel, &kernel_info, &err))) return answer;
  (void)must(table_.stream_create(self, &stream, &err));
  const Twin workspace(table_, info, {GR_UINT8, {kernel_info.workspace_bytes}, {}, false});
  for (auto& t : ins) (void)must(table_.copy(self, &t->device, &t->host, stream, &err));
  for (auto& t : outs) (void)must(table_.copy(self, &t->device, &t->host, stream, &err));
  (void)must(table_.launch(self, kernel, inputs.data(), outputs.data(),
                           kernel_info.workspace_bytes > 0 ? &workspace.device : nullptr, stream,
                           &err));
  for (auto& t : outs) (void)must(table_.copy(self, &t->host, &t->device, stream, &err));
  (void)must(table_.stream_synchronize(self, stream, &err));
  for (const auto& t : outs) answer.values.push_back(t->values());
  table_.kernel_destroy(self, kernel);
  table_.stream_destroy(self, stream);
  return answer;
}

}  // namespace rig
