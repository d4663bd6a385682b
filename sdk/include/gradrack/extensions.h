// SPDX-License-Identifier: Apache-2.0
// Extensions of the host: tables that a plugin asks for by id, and may have to do without.
//
// `host->get_extension(host->context, GR_EXT_CANCEL)` gives the table or NULL. An id is
// "gr.area.name/REVISION" for the project's own and "com.acme.name/REVISION" for anybody's; an id
// never changes its meaning. Invariant: a plugin works without every extension.
#ifndef GRADRACK_EXTENSIONS_H_
#define GRADRACK_EXTENSIONS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Has the run been asked to end? A call that takes longer than a second (reading a corpus, tuning
/// kernels) asks now and then, and returns GR_CANCELLED with nothing half done.
#define GR_EXT_CANCEL "gr.cancel/1"
typedef struct gr_cancel {
  uint32_t struct_size;
  uint32_t flags;
  void* context;
  /// 1: give up. Cheap. [any]
  int32_t (*cancelled)(void* context);
} gr_cancel_t;

/// Where a plugin may keep files that it can make again at any time, such as a corpus in tokens.
/// Anybody may remove them between two runs. A plugin names a file after all that decides its
/// content, checks what it reads there, and writes aside and renames.
#define GR_EXT_CACHE "gr.cache/1"
typedef struct gr_cache {
  uint32_t struct_size;
  uint32_t flags;
  void* context;
  /// Path of a folder that is there and that nobody but the user can write; NULL: keep nothing.
  /// Lives as long as the process. [main]
  const char* (*folder)(void* context);
} gr_cache_t;

/// Thread roles, the tags of every function of these headers:
///   [main] set-up and end; [plan] while plans are made; [exec] inside a step; [any] any of them,
///   and threads of the plugin's own. One call at a time per instance within the first three, on
///   whatever thread of the operating system; but for a backend with GR_BACKEND_CONCURRENT: [exec]
///   comes once at a time per stream, on different streams at once, and beside one [plan] call;
///   and but for a data source with GR_DATA_CONCURRENT: [exec] comes from several threads at once.
enum { GR_THREAD_MAIN = 1, GR_THREAD_PLAN = 2, GR_THREAD_EXEC = 4 };

/// Which roles the calling thread plays now: for a plugin's own checks.
#define GR_EXT_THREAD_CHECK "gr.thread_check/1"
typedef struct gr_thread_check {
  uint32_t struct_size;
  uint32_t flags;
  void* context;
  /// GR_THREAD_* or-ed; 0 on a thread that the host does not know. [any]
  uint32_t (*roles)(void* context);
} gr_thread_check_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_EXTENSIONS_H_
