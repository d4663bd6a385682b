// SPDX-License-Identifier: Apache-2.0
// Emulated device memory over a host backend: see emulated_device.hpp. Tensors are translated on
// the stream, when a kernel runs, so that nothing on the way there can have read them.
#include "tests/support/emulated_device.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>

#include "backends/common/group.hpp"

namespace gradrack::emulated {

namespace {

// Bit 50: beyond what user space maps on x86-64 and AArch64, and below the bits that the latter
// ignores in addresses.
constexpr uintptr_t kShift = uintptr_t{1} << 50;
constexpr size_t kMaxTensors = 256;

void* hide(void* address) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) + kShift);
}
void* reveal(void* address) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) - kShift);
}

/// What an allocation of handle memory is.
struct Object {
  std::byte* bytes;
  int64_t size;
};

int64_t bytes_of(const DLTensor& tensor) {
  int64_t bytes = gr_dtype_bytes(gr_dtype_of(tensor.dtype));
  for (int32_t k = 0; k < tensor.ndim; ++k) bytes *= tensor.shape[k];
  return bytes;
}

bool is_own(const DLTensor& tensor, int32_t memory) {
  return tensor.device.device_type == kDLExtDev && tensor.device.device_id == memory;
}

/// `tensor` as the host backend reads it. Fails for one that is not in this device's memory.
int32_t translate(const DLTensor& tensor, int32_t memory, DLTensor* out, gr_error_t* err) {
  if (!is_own(tensor, memory)) {
    return gr_fail(err, GR_INVALID_ARGUMENT, "tensor", "a tensor of another device's memory");
  }
  *out = tensor;
  out->device = {kDLCPU, 0};
  out->byte_offset = 0;
  out->data = reveal(tensor.data);
  if (memory != GR_MEMORY_HANDLE) {
    if (tensor.byte_offset == 0) return GR_OK;
    return gr_fail(err, GR_INVALID_ARGUMENT, "tensor", "byte_offset beside an address");
  }
  const auto* object = static_cast<const Object*>(out->data);
  const auto offset = static_cast<int64_t>(tensor.byte_offset);
  if (offset < 0 || offset + bytes_of(tensor) > object->size) {
    return gr_fail(err, GR_OUT_OF_RANGE, "tensor", "a tensor that ends beyond its object");
  }
  out->data = object->bytes + offset;
  return GR_OK;
}

/// A kernel of the host backend, run on translated tensors.
class DeviceKernel final : public host::Kernel {
 public:
  DeviceKernel(std::unique_ptr<host::Kernel> inner, int32_t memory)
      : inner_(std::move(inner)), memory_(memory) {}

  int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  int in_place(int output) const override { return inner_->in_place(output); }
  bool cannot_fail() const override { return inner_->cannot_fail(); }
  int64_t cost_ns() const override { return inner_->cost_ns(); }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    std::array<DLTensor, kMaxTensors> tensors;
    std::array<DLTensor*, kMaxTensors> pointers;
    if (inputs + outputs > kMaxTensors) {
      return gr_fail(err, GR_INTERNAL, "run", "more tensors than an emulated kernel takes");
    }
    for (size_t k = 0; k < inputs + outputs; ++k) {
      const DLTensor* const from = k < inputs ? in[k] : out[k - inputs];
      pointers[k] = from == nullptr ? nullptr : &tensors[k];
      if (from == nullptr) continue;
      const int32_t code = translate(*from, memory_, &tensors[k], err);
      if (code != GR_OK) return code;
    }
    return inner_->run(pointers.data(), pointers.data() + inputs, workspace, err);
  }

  size_t inputs = 0;
  size_t outputs = 0;

 private:
  std::unique_ptr<host::Kernel> inner_;
  int32_t memory_;
};

/// Entries that ask `table`, for the operators not refused; `wrap` makes a kernel of its kernel.
template <typename Wrap>
host::KernelTable derive(host::KernelTable from, const std::set<std::string>& refused, Wrap wrap) {
  const auto table = std::make_shared<const host::KernelTable>(std::move(from));
  host::KernelTable out;
  for (const std::string& op : table->ops()) {
    if (refused.count(op) > 0) continue;
    out.add({op,
             [table](const host::NodeSpec& node) {
               std::string reason;
               return table->match(node, &reason) != nullptr ? std::string() : reason;
             },
             [table, wrap](const host::NodeSpec& node) {
               std::string reason;
               return wrap(node, table->match(node, &reason)->make(node));
             }});
  }
  return out;
}

/// A kernel that fails when the shared count of runs comes to 0.
class CountedKernel final : public host::Kernel {
 public:
  CountedKernel(std::unique_ptr<host::Kernel> inner, std::shared_ptr<std::atomic<int64_t>> left)
      : inner_(std::move(inner)), left_(std::move(left)) {}

  int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  int in_place(int output) const override { return inner_->in_place(output); }
  int64_t cost_ns() const override { return inner_->cost_ns(); }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    if (left_->fetch_sub(1) == 1) return gr_fail(err, GR_OUT_OF_RANGE, "", "told to fail");
    return inner_->run(in, out, workspace, err);
  }

 private:
  std::unique_ptr<host::Kernel> inner_;
  std::shared_ptr<std::atomic<int64_t>> left_;
};

/// The functions in which such a device differs from the host backend that it is made of.
template <int32_t kMemory>
struct Face {
  static inline gr_backend_t host = {};  // its functions; they are the same for every instance

  static int32_t device_info(void* self, gr_device_info_t* out, gr_error_t* err) noexcept {
    const int32_t code = host.device_info(self, out, err);
    out->device_type = kDLExtDev;
    out->device_id = kMemory;
    out->memory = kMemory;
    return code;
  }

  static int32_t allocate(void* self, int64_t bytes, void** out, gr_error_t* err) noexcept {
    const int32_t code = host.allocate(self, bytes, out, err);
    if (code != GR_OK) return code;
    std::memset(*out, 0xCB, static_cast<size_t>(bytes));  // what was never written shows
    if constexpr (kMemory == GR_MEMORY_HANDLE) {
      auto* const object = new (std::nothrow) Object{static_cast<std::byte*>(*out), bytes};
      if (object == nullptr) {
        host.release(self, *out);
        return gr_fail(err, GR_OUT_OF_MEMORY, "allocate", "no memory for an object");
      }
      *out = object;
    }
    *out = hide(*out);
    return GR_OK;
  }

  static void release(void* self, void* memory) noexcept {
    void* const revealed = reveal(memory);
    if constexpr (kMemory == GR_MEMORY_HANDLE) {
      const std::unique_ptr<Object> object(static_cast<Object*>(revealed));
      host.release(self, object->bytes);
    } else {
      host.release(self, revealed);
    }
  }

  static int32_t copy(void* self, const DLTensor* to, const DLTensor* from, gr_stream_t* stream,
                      gr_error_t* err) noexcept {
    if (!is_own(*to, kMemory) && !is_own(*from, kMemory)) {
      return gr_fail(err, GR_INVALID_ARGUMENT, "copy", "neither side is on this device");
    }
    DLTensor ends[2];
    for (int k = 0; k < 2; ++k) {
      const DLTensor& end = k == 0 ? *to : *from;
      ends[k] = end;
      if (end.device.device_type == kDLCPU) continue;
      const int32_t code = translate(end, kMemory, &ends[k], err);
      if (code != GR_OK) return code;
    }
    return host.copy(self, &ends[0], &ends[1], stream, err);
  }

  static int32_t launch(void* self, gr_kernel_t* kernel, const DLTensor* const* inputs,
                        DLTensor* const* outputs, const DLTensor* workspace, gr_stream_t* stream,
                        gr_error_t* err) noexcept {
    DLTensor revealed;
    if (workspace != nullptr) {
      const int32_t code = translate(*workspace, kMemory, &revealed, err);
      if (code != GR_OK) return code;
    }
    return host.launch(self, kernel, inputs, outputs, workspace != nullptr ? &revealed : nullptr,
                       stream, err);
  }

  static void apply(gr_backend_t* table) {
    host = *table;
    table->device_info = device_info;
    table->allocate = allocate;
    table->release = release;
    table->copy = copy;
    table->launch = launch;
  }
};

}  // namespace

void count_waits(gr_backend_t* table) {
  static gr_backend_t inner = {};  // the functions are the same for every instance
  static Waits waits;
  inner = *table;
  table->stream_synchronize = [](void* self, gr_stream_t* stream, gr_error_t* err) noexcept {
    ++waits.streams;
    return inner.stream_synchronize(self, stream, err);
  };
  table->event_synchronize = [](void* self, gr_event_t* event, gr_error_t* err) noexcept {
    ++waits.events;
    return inner.event_synchronize(self, event, err);
  };
  table->get_extension = [](void* self, const char* id) noexcept -> const void* {
    if (std::strcmp(id, kWaitsExtension) == 0) return &waits;
    return inner.get_extension(self, id);
  };
}

host::KernelTable without(host::KernelTable table, const std::set<std::string>& refused) {
  return derive(std::move(table), refused,
                [](const host::NodeSpec&, std::unique_ptr<host::Kernel> kernel) { return kernel; });
}

host::KernelTable failing(host::KernelTable table, int64_t run) {
  auto left = std::make_shared<std::atomic<int64_t>>(run);
  return derive(std::move(table), {},
                [left](const host::NodeSpec&,
                       std::unique_ptr<host::Kernel> inner) -> std::unique_ptr<host::Kernel> {
                  return std::make_unique<CountedKernel>(std::move(inner), left);
                });
}

std::set<std::string> draw(const std::vector<std::string>& operators, int percent, uint64_t seed) {
  std::set<std::string> drawn;
  std::mt19937_64 random(seed);
  for (const std::string& op : operators) {
    if (random() % 100 < static_cast<uint64_t>(percent)) drawn.insert(op);
  }
  return drawn;
}

int32_t make_backend(host::KernelTable table, host::HostBackendConfig config, int32_t memory,
                     gr_backend_t* out, gr_error_t* err) noexcept {
  try {
    if (memory != GR_MEMORY_HOST) {
      const auto groups = table.groups();
      table =
          derive(std::move(table), {},
                 [memory](const host::NodeSpec& node,
                          std::unique_ptr<host::Kernel> inner) -> std::unique_ptr<host::Kernel> {
                   auto kernel = std::make_unique<DeviceKernel>(std::move(inner), memory);
                   kernel->inputs = node.inputs.size();
                   kernel->outputs = node.outputs.size();
                   return kernel;
                 });
      for (const auto& group : groups) {
        host::GroupEntry entry = *group;
        entry.make = [group, memory](const host::GroupSpec& spec) {
          auto kernel = std::make_unique<DeviceKernel>(group->make(spec), memory);
          kernel->inputs = spec.inputs.size();
          kernel->outputs = spec.outputs.size();
          return kernel;
        };
        table.add_group(std::move(entry));
      }
    }
    const int32_t code = host::make_host_backend(std::move(table), std::move(config), out, err);
    if (code != GR_OK) return code;
    if (memory == GR_MEMORY_DEVICE) Face<GR_MEMORY_DEVICE>::apply(out);
    if (memory == GR_MEMORY_HANDLE) Face<GR_MEMORY_HANDLE>::apply(out);
    return GR_OK;
  } catch (...) {
    return gr_fail(err, GR_OUT_OF_MEMORY, "create", "out of memory");
  }
}

}  // namespace gradrack::emulated
