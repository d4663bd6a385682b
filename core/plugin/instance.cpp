// SPDX-License-Identifier: Apache-2.0
// Making an instance: see instance.hpp.
#include "core/plugin/instance.hpp"

#include <cstring>

namespace gradrack {
namespace {

using AnyFunction = void (*)();

AnyFunction slot_at(const void* table, size_t offset) {
  AnyFunction function = nullptr;
  std::memcpy(&function, static_cast<const char*>(table) + offset, sizeof function);
  return function;
}

// Every kind's table begins the same way.
struct TableHead {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  void (*destroy)(void* self);
};
static_assert(offsetof(gr_model_t, destroy) == offsetof(TableHead, destroy));
static_assert(offsetof(gr_backend_t, destroy) == offsetof(TableHead, destroy));

constexpr unsigned char kGuard = 0xa5;

// Guard bytes up to and including the last one that was written.
size_t overrun(const unsigned char* guard) {
  size_t bytes = kTableGuardBytes;
  while (bytes > 0 && guard[bytes - 1] == kGuard) --bytes;
  return bytes;
}

}  // namespace

Status create_table(const Factory& factory, const OptionValues& options, const KindInfo& info,
                    void* table) {
  const std::string who = factory.text();
  GR_TRY(plugins_still_run().with_context(who));
  if (!may_call("gr_factory_t.create", GR_THREAD_MAIN, who)) {
    return internal_error(who + ": create was called on a thread that does not play main");
  }
  auto* const guard = static_cast<unsigned char*>(table) + info.table_bytes;
  std::memset(guard, kGuard, kTableGuardBytes);
  gr_error_t err = {};
  int32_t code = GR_OK;
  try {
    code = factory.create(factory.host, &options.abi(), table, &err);
  } catch (...) {
    return internal_error(who + ": create threw an exception across the C interface");
  }
  if (const size_t bytes = overrun(guard); bytes > 0) {
    return invalid_argument(who + ": create wrote " + std::to_string(bytes) +
                            " bytes past the end of its table: struct_size says how much of it is "
                            "there, " +
                            std::to_string(info.table_bytes) + " bytes here; fill no more")
        .in_area(Area::kPlugin);
  }
  if (code < GR_OK || code > GR_INTERNAL) {
    return internal_error(who + ": create returned the unknown status " + std::to_string(code));
  }
  if (code != GR_OK) return status_from(code, err).with_context(who);
  TableHead head;
  std::memcpy(&head, table, sizeof head);
  for (const Slot& slot : info.required) {
    const size_t end = slot.offset + sizeof(AnyFunction);
    if (head.struct_size < end) {
      // Not even destroy is known to be there.
      return invalid_argument(who + ": its table says that it has " +
                              std::to_string(head.struct_size) + " bytes, and '" + slot.name +
                              "' ends at " + std::to_string(end) +
                              ": let create set struct_size to what it fills")
          .in_area(Area::kPlugin);
    }
    if (slot_at(table, slot.offset) != nullptr) continue;
    if (head.destroy != nullptr) head.destroy(head.self);
    return invalid_argument(who + ": its function pointer '" + slot.name + "' is NULL, and every " +
                            factory.kind + " needs it")
        .in_area(Area::kPlugin);
  }
  return {};
}

}  // namespace gradrack
