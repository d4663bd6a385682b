// SPDX-License-Identifier: Apache-2.0
// Finding a device: walks platforms and devices in the order of the loader, once.
#include "device.hpp"

#include <algorithm>
#include <vector>

namespace opencl_backend {
namespace {

std::string text_of(cl_device_id device, cl_device_info what) {
  size_t size = 0;
  if (clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  (void)clGetDeviceInfo(device, what, size, text.data(), nullptr);
  return text.substr(0, text.find('\0'));
}

std::string text_of(cl_platform_id platform, cl_platform_info what) {
  size_t size = 0;
  if (clGetPlatformInfo(platform, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  (void)clGetPlatformInfo(platform, what, size, text.data(), nullptr);
  return text.substr(0, text.find('\0'));
}

/// 0 for what the driver does not answer.
template <typename T>
T number_of(cl_device_id device, cl_device_info what) {
  T value{};
  return clGetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : T{};
}

std::vector<FoundDevice> all_devices() {
  cl_uint count = 0;
  // The loader answers -1001 (CL_PLATFORM_NOT_FOUND_KHR) when no driver is installed.
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_platform_id> platforms(count);
  (void)clGetPlatformIDs(count, platforms.data(), nullptr);
  std::vector<FoundDevice> found;
  for (cl_platform_id platform : platforms) {
    cl_uint devices = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(devices);
    (void)clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr);
    for (cl_uint k = 0; k < devices; ++k) {
      found.push_back({platform, ids[k], static_cast<int32_t>(k),
                       text_of(platform, CL_PLATFORM_NAME), text_of(ids[k], CL_DEVICE_NAME)});
    }
  }
  return found;
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool fits(const FoundDevice& c, const std::string& platform, const std::string& device) {
  const std::string any = "any";
  if (platform != any && c.platform_name.find(platform) == std::string::npos) return false;
  if (device == any) return true;
  if (is_number(device)) return std::to_string(c.index) == device;
  return c.name.find(device) != std::string::npos;
}

void read_facts(Device& d) {
  const auto extensions = text_of(d.id, CL_DEVICE_EXTENSIONS);
  d.fp64 = number_of<cl_device_fp_config>(d.id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0 ||
           extensions.find("cl_khr_fp64") != std::string::npos;
  d.exact_division = (number_of<cl_device_fp_config>(d.id, CL_DEVICE_SINGLE_FP_CONFIG) &
                      CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  d.alignment = std::max<int64_t>(64, number_of<cl_uint>(d.id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8);
  d.memory_bytes = static_cast<int64_t>(number_of<cl_ulong>(d.id, CL_DEVICE_GLOBAL_MEM_SIZE));
  d.largest_allocation =
      static_cast<int64_t>(number_of<cl_ulong>(d.id, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  d.group = std::min<size_t>(128, number_of<size_t>(d.id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
}

}  // namespace

FoundDevice find_device(const std::string& platform, const std::string& device) {
  std::string seen;
  for (const FoundDevice& c : all_devices()) {
    if (fits(c, platform, device)) return c;
    seen += (seen.empty() ? "" : "; ") + c.platform_name + " " + std::to_string(c.index) + ": " +
            c.name;
  }
  throw gr::Error(GR_UNSUPPORTED, "device",
                  "no OpenCL device fits platform '" + platform + "' and device '" + device +
                      "'; there is " + (seen.empty() ? "none" : seen));
}

Device open_device(const FoundDevice& found) {
  Device d;
  d.id = found.id;
  d.index = found.index;
  read_facts(d);
  cl_int code = CL_SUCCESS;
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(found.platform), 0};
  d.context.reset(clCreateContext(properties, 1, &d.id, nullptr, nullptr, &code));
  check_cl(code, "clCreateContext");
  d.service.reset(clCreateCommandQueue(d.context.get(), d.id, 0, &code));
  check_cl(code, "clCreateCommandQueue");
  d.description = found.platform_name + ", " + found.name + ", " +
                  text_of(d.id, CL_DEVICE_VERSION) + (d.fp64 ? "" : ", no doubles");
  return d;
}

void require_any_platform() {
  cl_uint count = 0;
  const cl_int code = clGetPlatformIDs(0, nullptr, &count);
  gr::require(code == CL_SUCCESS && count > 0, GR_UNSUPPORTED, "opencl",
              "no OpenCL platform: install the driver of your device, or pocl-opencl-icd for the "
              "processor; clinfo lists what the loader sees");
}

}  // namespace opencl_backend
