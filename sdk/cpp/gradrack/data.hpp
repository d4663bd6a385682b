// SPDX-License-Identifier: Apache-2.0
// Data<T>: the factory of a data source class. See plugin.hpp for the constants.
//
// T needs:  const gr_data_info_t& info() const;                                           // [any]
//           int64_t rows(const gr_batch_request_t& request) const;                        // [any]
//           void batch(const gr_batch_request_t& request,
//                      std::span<DLTensor* const> outputs) const;                         // [exec]
// and, for text, both of
//           std::vector<int64_t> encode(std::string_view text) const;                     // [any]
//           std::string decode(std::span<const int64_t> ids) const;                       // [any]
// Optional: a base class Batches<T>, for batches that differ in objectives or sizes; and
//           const void* get_extension(const char* id) noexcept;                           // [any]
//           static constexpr bool kConcurrent = true;  // batch and describe: by many threads
// Invariant: a batch is a pure function of (options, seed, split, index).
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gradrack/data.h"
#include "gradrack/plugin.hpp"

namespace gradrack::sdk {

/// Row `row` of a dense output, as elements of type E; `elements` of them. [exec]
template <typename E>
std::span<E> row_of(const DLTensor& tensor, int64_t row) {
  int64_t elements = 1;
  for (int32_t k = 1; k < tensor.ndim; ++k) elements *= tensor.shape[k];
  return {static_cast<E*>(tensor.data) + row * elements, static_cast<size_t>(elements)};
}

/// A uniform index below `n` from a draw of gr_philox4x32: floor(u * n / 2^64), u its first 64
/// bits.
inline uint64_t scale_draw(const uint32_t draw[4], uint64_t n) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t u = draw[0] | static_cast<uint64_t>(draw[1]) << 32;
  return static_cast<uint64_t>((static_cast<Wide>(u) * n) >> 64);
}

/// Base of a T that offers the extension gr.batch/1. T needs:
///   const gr_batch_info_t& batch_info() const;                                             //
///   [any] void describe(const gr_batch_request_t& request, gr_batch_description_t& out) const;  //
///   [exec]
template <typename T>
class Batches {
 public:
  Batches() : table_{sizeof table_, 0, static_cast<T*>(this), info, describe_batch} {}
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;
  const gr_batch_t* batch_table() const { return &table_; }

 private:
  static int32_t info(void* self, gr_batch_info_t* out, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      const uint32_t size = std::min(out->struct_size, static_cast<uint32_t>(sizeof *out));
      std::memcpy(out, &static_cast<const T*>(self)->batch_info(), size);
      out->struct_size = size;
    });
  }
  static int32_t describe_batch(void* self, const gr_batch_request_t* request,
                                gr_batch_description_t* out, gr_error_t* err) noexcept {
    return guarded(err, [&] { static_cast<const T*>(self)->describe(*request, *out); });
  }

  gr_batch_t table_;
};

template <typename T>
class Data : public Factory<Data<T>, T, gr_data_t> {
  using Base = Factory<Data<T>, T, gr_data_t>;

 public:
  static constexpr const char* kKind = "data";
  static void fill(gr_data_t& table) {
    if constexpr (requires { T::kConcurrent; }) {
      if (T::kConcurrent) table.flags |= GR_DATA_CONCURRENT;
    }
    table.info = info;
    table.rows = rows;
    table.batch = batch;
    if constexpr (requires { &T::encode; }) {
      table.encode = encode;
      table.decode = decode;
    }
    constexpr bool own = requires(T & t) { t.get_extension(""); };
    if constexpr (own || std::is_base_of_v<Batches<T>, T>) table.get_extension = get_extension;
  }

 private:
  static int32_t info(void* self, gr_data_info_t* out, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      const uint32_t size = std::min(out->struct_size, static_cast<uint32_t>(sizeof *out));
      std::memcpy(out, &Base::instance(self).info(), size);
      out->struct_size = size;
    });
  }
  static int32_t rows(void* self, const gr_batch_request_t* request, int64_t* out,
                      gr_error_t* err) noexcept {
    return guarded(err, [&] { *out = Base::instance(self).rows(*request); });
  }
  static int32_t batch(void* self, const gr_batch_request_t* request, DLTensor* const* outputs,
                       uint32_t output_count, gr_error_t* err) noexcept {
    return guarded(err, [&] { Base::instance(self).batch(*request, {outputs, output_count}); });
  }
  static const void* get_extension(void* self, const char* id) noexcept {
    T& instance = Base::instance(self);
    if constexpr (std::is_base_of_v<Batches<T>, T>) {
      if (std::string_view(id) == GR_EXT_BATCH) return instance.batch_table();
    }
    if constexpr (requires { instance.get_extension(id); }) {
      static_assert(noexcept(instance.get_extension(id)));
      return instance.get_extension(id);
    }
    return nullptr;
  }
  static int32_t encode(void* self, const char* input, uint64_t bytes, int64_t* ids,
                        uint64_t capacity, uint64_t* count, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      const std::vector<int64_t> all = Base::instance(self).encode({input, bytes});
      std::copy_n(all.begin(), std::min<uint64_t>(capacity, all.size()), ids);
      *count = all.size();
    });
  }
  static int32_t decode(void* self, const int64_t* ids, uint64_t count, char* out,
                        uint64_t capacity, uint64_t* bytes, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      const std::string all = Base::instance(self).decode({ids, count});
      std::copy_n(all.begin(), std::min<uint64_t>(capacity, all.size()), out);
      *bytes = all.size();
    });
  }
};

}  // namespace gradrack::sdk
