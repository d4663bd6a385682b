// SPDX-License-Identifier: Apache-2.0
// Backend<T>: the factory of a device backend class. See plugin.hpp for the constants.
//
// T has types Stream, Event and Kernel of its own, and these members. [plan] ones may throw:
//   gr_device_info_t device_info() const;            // struct_size may stay 0
//   void* allocate(int64_t bytes);                   // NULL: out of memory
//   void release(void* memory) noexcept;
//   std::unique_ptr<Stream> make_stream();
//   std::unique_ptr<Event> make_event();
//   void claim(const Node& node, gr_claim_t& claim); // comes as "yes, alone"; say refuse(claim,
//   ..)
//     or, to form groups: void claim(const Nodes& nodes, std::span<gr_claim_t> claims);
//   std::unique_ptr<Kernel> prepare(const Group& group, gr_kernel_info_t& info);
// [exec] ones run in every step: noexcept, they answer a status and fill `err` with gr_fail:
//   int32_t copy(const DLTensor& to, const DLTensor& from, Stream& stream, gr_error_t* err);
//   int32_t synchronize(Stream& stream, gr_error_t* err);      // and of an Event
//   int32_t record(Event& event, Stream& stream, gr_error_t* err);
//   int32_t wait(Stream& stream, Event& event, gr_error_t* err);
//   int32_t launch(Kernel& kernel, const DLTensor* const* inputs, DLTensor* const* outputs,
//                  const DLTensor* workspace, Stream& stream, gr_error_t* err);
// Destructors of Stream, Event and Kernel end them. Optional: get_extension(id) noexcept, and a
// constant kFlags of GR_BACKEND_* bits (since 1.1).
// Invariant: the way of a launch adds nothing: no allocation, no lock, no catch.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gradrack/backend.h"
#include "gradrack/node.hpp"
#include "gradrack/plugin.hpp"

namespace gradrack::sdk {

/// Makes `claim` a no whose reason names what is in the way; the text is cut to fit. [plan]
inline void refuse(gr_claim_t& claim, const std::string& reason) {
  claim.verdict = GR_CLAIM_NO;
  (void)std::snprintf(claim.reason, sizeof claim.reason, "%s", reason.c_str());
}

template <typename T>
class Backend : public Factory<Backend<T>, T, gr_backend_t> {
  using Base = Factory<Backend<T>, T, gr_backend_t>;

 public:
  static constexpr const char* kKind = "backend";
  static void fill(gr_backend_t& table) {
    table.device_info = device_info;
    table.allocate = allocate;
    table.release = release;
    table.copy = copy;
    table.stream_create = stream_create;
    table.stream_destroy = [](void*, gr_stream_t* stream) noexcept { delete stream_of(stream); };
    table.stream_synchronize = stream_synchronize;
    table.event_create = event_create;
    table.event_destroy = [](void*, gr_event_t* event) noexcept { delete event_of(event); };
    table.event_record = event_record;
    table.stream_wait = stream_wait;
    table.event_synchronize = event_synchronize;
    table.claim = claim;
    table.prepare = prepare;
    table.kernel_destroy = [](void*, gr_kernel_t* kernel) noexcept { delete kernel_of(kernel); };
    table.launch = launch;
    if constexpr (requires(T & t) { t.get_extension(""); }) table.get_extension = get_extension;
    if constexpr (requires { T::kFlags; }) table.flags = T::kFlags;
  }

 private:
  // The host's handles are the addresses of T's own objects.
  static auto* stream_of(gr_stream_t* s) noexcept {
    return reinterpret_cast<typename T::Stream*>(s);
  }
  static auto* event_of(gr_event_t* e) noexcept { return reinterpret_cast<typename T::Event*>(e); }
  static auto* kernel_of(gr_kernel_t* k) noexcept {
    return reinterpret_cast<typename T::Kernel*>(k);
  }

  /// Writes as much of `from` as the host's struct of `to->struct_size` bytes has room for.
  template <typename Struct>
  static void give(Struct from, Struct* to) {
    from.struct_size = std::min(to->struct_size, static_cast<uint32_t>(sizeof from));
    std::memcpy(to, &from, from.struct_size);
  }

  static int32_t device_info(void* self, gr_device_info_t* out, gr_error_t* err) noexcept {
    return guarded(err, [&] { give(Base::instance(self).device_info(), out); });
  }

  static int32_t allocate(void* self, int64_t bytes, void** out, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      *out = Base::instance(self).allocate(bytes);
      require(*out != nullptr, GR_OUT_OF_MEMORY, "allocate", "no memory for ", bytes, " bytes");
    });
  }
  static void release(void* self, void* memory) noexcept { Base::instance(self).release(memory); }

  static int32_t copy(void* self, const DLTensor* to, const DLTensor* from, gr_stream_t* stream,
                      gr_error_t* err) noexcept {
    static_assert(noexcept(std::declval<T&>().copy(*to, *from, *stream_of(stream), err)),
                  "copy runs in every step: it must be noexcept and answer a status");
    return Base::instance(self).copy(*to, *from, *stream_of(stream), err);
  }

  static int32_t stream_create(void* self, gr_stream_t** out, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      *out = reinterpret_cast<gr_stream_t*>(Base::instance(self).make_stream().release());
    });
  }
  static int32_t stream_synchronize(void* self, gr_stream_t* stream, gr_error_t* err) noexcept {
    static_assert(noexcept(std::declval<T&>().synchronize(*stream_of(stream), err)),
                  "synchronize runs in every step: it must be noexcept and answer a status");
    return Base::instance(self).synchronize(*stream_of(stream), err);
  }

  static int32_t event_create(void* self, gr_event_t** out, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      *out = reinterpret_cast<gr_event_t*>(Base::instance(self).make_event().release());
    });
  }
  static int32_t event_record(void* self, gr_event_t* event, gr_stream_t* stream,
                              gr_error_t* err) noexcept {
    static_assert(noexcept(std::declval<T&>().record(*event_of(event), *stream_of(stream), err)),
                  "record runs in every step: it must be noexcept and answer a status");
    return Base::instance(self).record(*event_of(event), *stream_of(stream), err);
  }
  static int32_t stream_wait(void* self, gr_stream_t* stream, gr_event_t* event,
                             gr_error_t* err) noexcept {
    static_assert(noexcept(std::declval<T&>().wait(*stream_of(stream), *event_of(event), err)),
                  "wait runs in every step: it must be noexcept and answer a status");
    return Base::instance(self).wait(*stream_of(stream), *event_of(event), err);
  }
  static int32_t event_synchronize(void* self, gr_event_t* event, gr_error_t* err) noexcept {
    static_assert(noexcept(std::declval<T&>().synchronize(*event_of(event), err)),
                  "synchronize runs in every step: it must be noexcept and answer a status");
    return Base::instance(self).synchronize(*event_of(event), err);
  }

  static int32_t claim(void* self, const gr_node_view_t* nodes, uint32_t node_stride,
                       uint32_t count, gr_claim_t* claims, uint32_t claim_stride,
                       gr_error_t* err) noexcept {
    return guarded(err, [&] {
      const Nodes views(nodes, node_stride, count);
      gr_claim_t blank{};
      blank.verdict = GR_CLAIM_YES;
      blank.group = -1;
      std::vector<gr_claim_t> answers(count, blank);
      claim_all(Base::instance(self), views, answers);
      char* at = reinterpret_cast<char*>(claims);
      for (const gr_claim_t& answer : answers) {
        give(answer, reinterpret_cast<gr_claim_t*>(at));
        at += claim_stride;
      }
    });
  }
  static void claim_all(T& self, const Nodes& nodes, std::span<gr_claim_t> claims) {
    if constexpr (requires { self.claim(nodes, claims); }) {
      self.claim(nodes, claims);
    } else {
      for (uint32_t k = 0; k < nodes.size(); ++k) self.claim(nodes[k], claims[k]);
    }
  }

  static int32_t prepare(void* self, const gr_group_t* group, gr_kernel_t** out,
                         gr_kernel_info_t* info, gr_error_t* err) noexcept {
    return guarded(err, [&] {
      gr_kernel_info_t filled{};
      std::fill(std::begin(filled.in_place), std::end(filled.in_place), -1);
      auto kernel = Base::instance(self).prepare(Group(*group), filled);
      give(filled, info);
      *out = reinterpret_cast<gr_kernel_t*>(kernel.release());
    });
  }

  static int32_t launch(void* self, gr_kernel_t* kernel, const DLTensor* const* inputs,
                        DLTensor* const* outputs, const DLTensor* workspace, gr_stream_t* stream,
                        gr_error_t* err) noexcept {
    static_assert(noexcept(std::declval<T&>().launch(*kernel_of(kernel), inputs, outputs, workspace,
                                                     *stream_of(stream), err)),
                  "launch runs in every step: it must be noexcept and answer a status");
    return Base::instance(self).launch(*kernel_of(kernel), inputs, outputs, workspace,
                                       *stream_of(stream), err);
  }

  static const void* get_extension(void* self, const char* id) noexcept {
    if constexpr (requires(T & t) { t.get_extension(id); }) {
      static_assert(noexcept(std::declval<T&>().get_extension(id)));
      return Base::instance(self).get_extension(id);
    } else {
      return nullptr;
    }
  }
};

}  // namespace gradrack::sdk
