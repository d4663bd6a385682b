// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD library that lets the Nth call of one kind fail, on paths that hold a given text.
//
//   IO_FAULT_PATH=/tmp/x/out IO_FAULT_CALL=write IO_FAULT_N=7 IO_FAULT_ERRNO=28 [IO_FAULT_STAY=1]
//
// STAY: every call from the Nth on fails. Without N nothing fails and IO_FAULT_COUNT names a file
// that gets the number of calls at exit. A write that fails writes half of its bytes first, as a
// full disk does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int fails(const char* call, const char* path) {
  const char* wanted = getenv("IO_FAULT_CALL");
  const char* folder = getenv("IO_FAULT_PATH");
  if (wanted == NULL || folder == NULL || strcmp(wanted, call) != 0) return 0;
  if (path == NULL || strstr(path, folder) == NULL) return 0;
  const long number = atomic_fetch_add(&calls, 1) + 1;
  const char* n = getenv("IO_FAULT_N");
  if (n == NULL) return 0;
  const int hit = getenv("IO_FAULT_STAY") != NULL ? number >= atol(n) : number == atol(n);
  if (hit) errno = atoi(getenv("IO_FAULT_ERRNO"));
  return hit;
}

static int fd_fails(const char* call, int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return fails(call, path);
}

__attribute__((destructor)) static void count(void) {
  const char* file = getenv("IO_FAULT_COUNT");
  if (file == NULL) return;
  FILE* out = fopen(file, "we");
  if (out == NULL) return;
  fprintf(out, "%ld\n", atomic_load(&calls));
  fclose(out);
}

ssize_t write(int fd, const void* data, size_t bytes) {
  if (fd_fails("write", fd)) {
    const int error = errno;
    const ssize_t half = bytes > 1 ? REAL(write)(fd, data, bytes / 2) : 0;
    (void)half;
    errno = error;
    return -1;
  }
  return REAL(write)(fd, data, bytes);
}

int fsync(int fd) { return fd_fails("fsync", fd) ? -1 : REAL(fsync)(fd); }

int close(int fd) {
  if (!fd_fails("close", fd)) return REAL(close)(fd);
  const int error = errno;
  REAL(close)(fd);
  errno = error;
  return -1;
}

int rename(const char* from, const char* to) {
  return fails("rename", to) ? -1 : REAL(rename)(from, to);
}

int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) {
  return fails("rename", to) ? -1 : REAL(renameat2)(from_fd, from, to_fd, to, flags);
}

int mkdir(const char* path, mode_t mode) {
  return fails("mkdir", path) ? -1 : REAL(mkdir)(path, mode);
}

int unlinkat(int fd, const char* path, int flags) {
  return fd_fails("unlink", fd) ? -1 : REAL(unlinkat)(fd, path, flags);
}

static int open_any(int (*real)(const char*, int, ...), const char* path, int flags, mode_t mode) {
  return fails("open", path) ? -1 : real(path, flags, mode);
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_any(REAL(open), path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_any(REAL(open64), path, flags, mode);
}
