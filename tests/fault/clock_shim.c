// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD library in which the time of day goes backwards, an hour at each question.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

static atomic_long hours;

int clock_gettime(clockid_t clock, struct timespec* now) {
  int (*real)(clockid_t, struct timespec*) =
      (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int done = real(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec -= 3600 * (atomic_fetch_add(&hours, 1) % 1000);
  return done;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
