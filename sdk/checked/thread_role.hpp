// SPDX-License-Identifier: Apache-2.0
// ThreadRole: which of the ABI's thread roles the calling thread plays, as a scope.
//
// The host opens one around set-up (main|plan), each plan made and each step (exec); the checked
// tables compare it with the tags of the headers, and gr.thread_check/1 is served from it.
// Invariant: a scope changes its own thread alone and puts back what it found. The process's first
// thread plays every role until it opens a scope, so that a program with one thread needs none; any
// other thread plays none.
#pragma once

#include <cstdint>
#include <string>

#include "gradrack/extensions.h"

namespace gradrack {

/// While it lives, the calling thread plays exactly `roles` (GR_THREAD_* or-ed). [any]
class [[nodiscard]] ThreadRole {
 public:
  explicit ThreadRole(uint32_t roles);
  ~ThreadRole();
  ThreadRole(const ThreadRole&) = delete;
  ThreadRole& operator=(const ThreadRole&) = delete;

 private:
  uint32_t before_;
};

/// What the calling thread plays now; 0 on a thread that nobody gave a role. [any]
uint32_t current_roles();

/// "main|plan", "exec"; "none" for 0. [any]
std::string role_text(uint32_t roles);

/// The table behind gr.thread_check/1. Static. [any]
const gr_thread_check_t* thread_check_extension();

}  // namespace gradrack
