// SPDX-License-Identifier: Apache-2.0
// Roles of threads: see thread_role.hpp.
#include "sdk/checked/thread_role.hpp"

#include <unistd.h>

namespace gradrack {
namespace {

uint32_t first_roles() {
  return gettid() == getpid() ? GR_THREAD_MAIN | GR_THREAD_PLAN | GR_THREAD_EXEC : 0;
}

uint32_t& roles_here() {
  thread_local uint32_t roles = first_roles();
  return roles;
}

uint32_t serve_roles(void*) { return current_roles(); }

}  // namespace

ThreadRole::ThreadRole(uint32_t roles) : before_(roles_here()) { roles_here() = roles; }

ThreadRole::~ThreadRole() { roles_here() = before_; }

uint32_t current_roles() { return roles_here(); }

std::string role_text(uint32_t roles) {
  const struct {
    uint32_t role;
    const char* name;
  } names[] = {{GR_THREAD_MAIN, "main"}, {GR_THREAD_PLAN, "plan"}, {GR_THREAD_EXEC, "exec"}};
  std::string text;
  for (const auto& [role, name] : names) {
    if ((roles & role) != 0) text += (text.empty() ? "" : "|") + std::string(name);
  }
  return text.empty() ? "none" : text;
}

const gr_thread_check_t* thread_check_extension() {
  static const gr_thread_check_t table = {sizeof table, 0, nullptr, serve_roles};
  return &table;
}

}  // namespace gradrack
