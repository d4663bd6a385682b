// SPDX-License-Identifier: Apache-2.0
// Safetensors files: see safetensors.hpp. This file does the reading and writing; the header's JSON
// is next door in safetensors_header.cpp.
#include "core/state/safetensors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <set>

#include "core/base/text.hpp"
#include "core/state/atomic_file.hpp"
#include "core/state/safetensors_header.hpp"

namespace gradrack {
namespace {

constexpr std::string_view kLfsPointer = "version https://git-lfs";
constexpr uint64_t kLengthBytes = 8;

// An open file that closes itself.
class Input {
 public:
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  explicit Input(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int descriptor() const { return descriptor_; }

  // Up to `bytes` bytes from `offset`; fewer only at the end of the file. -1: errno says why.
  int64_t read(void* out, uint64_t bytes, uint64_t offset) const {
    char* at = static_cast<char*>(out);
    uint64_t done = 0;
    while (done < bytes) {
      const ssize_t got =
          ::pread(descriptor_, at + done, bytes - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return -1;
      if (got == 0) break;
      done += static_cast<uint64_t>(got);
    }
    return static_cast<int64_t>(done);
  }

 private:
  int descriptor_;
};

Result<uint64_t> size_of(const Input& input, const std::string& path) {
  struct stat info = {};
  if (input.descriptor() < 0 || ::fstat(input.descriptor(), &info) != 0) {
    return file_error("read", path, errno);
  }
  if (!S_ISREG(info.st_mode)) return io_error("not a regular file");
  return static_cast<uint64_t>(info.st_size);
}

// The JSON text. Checks the length field before it believes it.
Result<std::string> read_header(const Input& input, const std::string& path, uint64_t file_bytes) {
  char start[kLfsPointer.size()] = {};
  const int64_t got = input.read(start, sizeof start, 0);
  if (got < 0) return file_error("read", path, errno);
  if (std::string_view(start, static_cast<size_t>(got)) == kLfsPointer) {
    return invalid_argument(
        "looks like a Git LFS pointer, not the file itself: run `git lfs pull`");
  }
  if (static_cast<uint64_t>(got) < kLengthBytes) {
    return io_error(
        fmt::format("too short for a safetensors file ({} of {} bytes)", got, kLengthBytes));
  }
  uint64_t length = 0;
  for (uint64_t k = 0; k < kLengthBytes; ++k) {
    length |= static_cast<uint64_t>(static_cast<unsigned char>(start[k])) << (8 * k);
  }
  if (length > kMaxHeaderBytes) {
    return invalid_argument(
        fmt::format("header of {} bytes is larger than the limit of {}: this is "
                    "no safetensors file, or a damaged one",
                    length, kMaxHeaderBytes));
  }
  if (length > file_bytes - kLengthBytes) {
    return io_error(fmt::format("file is cut: expected {} header bytes, found {}", length,
                                file_bytes - kLengthBytes));
  }
  std::string text(length, '\0');
  const int64_t text_bytes = input.read(text.data(), length, kLengthBytes);
  if (text_bytes < 0) return file_error("read", path, errno);
  if (static_cast<uint64_t>(text_bytes) < length) return io_error("file shrank while it was read");
  return text;
}

Result<std::unique_ptr<std::byte[]>> read_data(const Input& input, const std::string& path,
                                               uint64_t offset, uint64_t bytes) {
  std::unique_ptr<std::byte[]> data(new (std::nothrow) std::byte[bytes]);
  if (data == nullptr) {
    return Status(GR_OUT_OF_MEMORY, fmt::format("no memory for {} of tensors",
                                                human_bytes(static_cast<int64_t>(bytes))));
  }
  const int64_t got = input.read(data.get(), bytes, offset);
  if (got < 0) return file_error("read", path, errno);
  if (static_cast<uint64_t>(got) < bytes) {
    return io_error(fmt::format("file is cut: expected {} data bytes, found {}", bytes, got));
  }
  return data;
}

Status check_tensors(const std::vector<SafetensorsTensor>& tensors) {
  std::set<std::string_view> names;
  for (const SafetensorsTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      return invalid_argument(fmt::format("tensor {} is given twice", in_quotes(tensor.name)));
    }
    if (tensor.name == "__metadata__") {
      return invalid_argument("a tensor cannot be named '__metadata__': the format reserves it");
    }
    if (safetensors_dtype_name(tensor.dtype) == nullptr) {
      return invalid_argument(fmt::format("tensor {} has dtype code {}, which the format lacks",
                                          in_quotes(tensor.name), tensor.dtype));
    }
  }
  return {};
}

Status append_data(AtomicFile* file, const SafetensorsTensor& tensor) {
  GR_ASSIGN(const uint64_t bytes, safetensors_bytes(tensor.dtype, tensor.shape));
  if (bytes == 0) return {};
  GR_CHECK(tensor.data != nullptr);
  if constexpr (std::endian::native == std::endian::little) {
    return file->append(tensor.data, bytes);
  }
  std::vector<std::byte> copy(bytes);
  std::memcpy(copy.data(), tensor.data, bytes);
  reverse_elements(copy, static_cast<size_t>(gr_dtype_bytes(tensor.dtype)));
  return file->append(copy.data(), bytes);
}

struct OpenedHeader {
  SafetensorsHeader header;
  uint64_t offset = 0;  // where the data begins
  uint64_t data_bytes = 0;
};

Result<OpenedHeader> open_header(const Input& input, const std::string& path) {
  GR_ASSIGN(const uint64_t file_bytes, size_of(input, path));
  GR_ASSIGN(const std::string text, read_header(input, path, file_bytes));
  OpenedHeader opened;
  opened.offset = kLengthBytes + text.size();
  opened.data_bytes = file_bytes - opened.offset;
  GR_ASSIGN(opened.header, parse_safetensors_header(text, opened.data_bytes));
  return opened;
}

// A bad file is a fault of the file, whatever part found it, never of the configuration.
Status fault_of(const std::string& path, const Status& status) {
  const std::string& text = status.message();
  const int32_t code = status.code() == GR_INVALID_ARGUMENT ? int32_t{GR_IO} : status.code();
  return Status(code, text.find(path) == std::string::npos ? path + ": " + text : text);
}

}  // namespace

Result<TextMap> safetensors_metadata(const std::string& path) {
  const Input input(path);
  if (input.descriptor() < 0) return file_error("read", path, errno);
  Result<OpenedHeader> opened = open_header(input, path);
  if (!opened.ok()) return fault_of(path, opened.status());
  return std::move(opened->header.metadata);
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  const Input input(path);
  if (input.descriptor() < 0) return file_error("read", path, errno);
  Result<OpenedHeader> opened = open_header(input, path);
  if (!opened.ok()) return fault_of(path, opened.status());
  Result<std::unique_ptr<std::byte[]>> data =
      read_data(input, path, opened->offset, opened->data_bytes);
  if (!data.ok()) return fault_of(path, data.status());
  SafetensorsHeader* const header = &opened->header;

  SafetensorsFile file;
  file.path_ = path;
  file.entries_ = std::move(header->entries);
  file.metadata_ = std::move(header->metadata);
  file.data_ = std::move(*data);
  for (size_t k = 0; k < file.entries_.size(); ++k) {
    const SafetensorsEntry& entry = file.entries_[k];
    file.index_.emplace(entry.name, k);
    if constexpr (std::endian::native == std::endian::big) {
      reverse_elements({file.data_.get() + entry.begin, entry.end - entry.begin},
                       static_cast<size_t>(gr_dtype_bytes(entry.dtype)));
    }
  }
  return file;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &entries_[at->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const SafetensorsEntry& entry) const {
  return {data_.get() + entry.begin, entry.end - entry.begin};
}

Status SafetensorsFile::copy_to(std::string_view name, gr_dtype_t dtype,
                                std::span<const int64_t> shape, void* out) const {
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const SafetensorsEntry& other : entries_) names.push_back(other.name);
    return not_found(fmt::format("{}: no tensor '{}'{}", path_, name, did_you_mean(name, names)));
  }
  if (entry->dtype != dtype ||
      !std::equal(shape.begin(), shape.end(), entry->shape.begin(), entry->shape.end())) {
    const char* wanted = safetensors_dtype_name(dtype);
    return invalid_argument(
        fmt::format("{}: tensor '{}' is {} [{}], wanted {} [{}]", path_, name,
                    safetensors_dtype_name(entry->dtype), fmt::join(entry->shape, ", "),
                    wanted != nullptr ? wanted : "another dtype", fmt::join(shape, ", ")));
  }
  if (entry->end > entry->begin) std::memcpy(out, bytes(*entry).data(), entry->end - entry->begin);
  return {};
}

Status write_safetensors(const std::string& path, std::vector<SafetensorsTensor> tensors,
                         const TextMap& metadata, const Writing& how) {
  GR_TRY(check_tensors(tensors).with_context(path));
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    const int64_t wide_a = gr_dtype_bytes(a.dtype);
    const int64_t wide_b = gr_dtype_bytes(b.dtype);
    return wide_a != wide_b ? wide_a > wide_b : a.name < b.name;
  });
  const Result<std::string> header = compose_safetensors_header(tensors, metadata);
  if (!header.ok()) return header.status().with_context(path);
  GR_ASSIGN(AtomicFile file, AtomicFile::create(path, how));
  GR_TRY(file.append(*header));
  for (const SafetensorsTensor& tensor : tensors) GR_TRY(append_data(&file, tensor));
  return file.commit();
}

void reverse_elements(std::span<std::byte> bytes, size_t element_bytes) {
  for (size_t at = 0; at + element_bytes <= bytes.size(); at += element_bytes) {
    std::reverse(bytes.data() + at, bytes.data() + at + element_bytes);
  }
}

}  // namespace gradrack
