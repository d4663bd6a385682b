// SPDX-License-Identifier: Apache-2.0
// Checks that run before an operator: the first bad index or zero divisor goes to the status.
//
// One group of work-items; INDEX is the type of what is checked. The record's layout is that of
// StatusRecord (src/stream.hpp): int launch, int what, long position, value, limit. What is kept
// already stays: the first error wins. The smallest position is reported, whatever the group's size.
#define RECORD(launch, what, at, value, limit) \
  { \
    global long* wide = (global long*)status; \
    wide[1] = (at); \
    wide[2] = (value); \
    wide[3] = (limit); \
    status[1] = (what); \
    status[0] = (launch); \
  }

// The least of all work-items' `mine`.
long least(local long* found, long mine) {
  const int me = get_local_id(0);
  found[me] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  long best = found[0];
  for (int k = 1; k < (int)get_local_size(0); ++k) best = min(best, found[k]);
  return best;
}

kernel void check_index(global int* status, BUFFER(x), const int launch, const IDX n,
                        const IDX size, const int what) {
  local long found[GROUP];
  global const INDEX* x = AT(const INDEX, x);
  long mine = n;
  for (IDX k = get_local_id(0); k < n && mine == n; k += get_local_size(0)) {
    const long value = x[k];
    if (value < -(long)size || value >= (long)size) mine = k;
  }
  const long first = least(found, mine);
  if (get_local_id(0) == 0 && first < n && status[0] == 0) {
    RECORD(launch, what, first, x[first], size)
  }
}

kernel void check_zero(global int* status, BUFFER(x), const int launch, const IDX n,
                       const int what) {
  local long found[GROUP];
  global const INDEX* x = AT(const INDEX, x);
  long mine = n;
  for (IDX k = get_local_id(0); k < n && mine == n; k += get_local_size(0)) {
    if (x[k] == 0) mine = k;
  }
  const long first = least(found, mine);
  if (get_local_id(0) == 0 && first < n && status[0] == 0) RECORD(launch, what, first, 0, 0)
}
