// SPDX-License-Identifier: Apache-2.0
// Reductions: one work-item for one part of one result, over consecutive elements in row-major order.
//
// T and F are the types written and read, ACC that of the accumulator. K_ is the space of results,
// R_ the space of what is summed away. Invariant: the order of a sum depends on shapes alone. Sums
// of floats on a device without doubles carry what rounding loses (Kahan), as good as a wide sum.
kernel void reduce(STATUS, BUFFER(y), BUFFER(x), const IDX n, const IDX parts, const IDX length,
                   const IDX count K_PARAMS R_PARAMS) {
  const IDX i = get_global_id(0);
  if (i >= n * parts || STOPPED) return;
  const IDX first = i % parts * length, end = min(first + length, count);
  K_INDEX(i / parts)
  global const F* x = AT(const F, x) + K_AT0;
  ACC sum = START;
#ifdef CARRY
  ACC lost = 0;
#endif
  R_INDEX(first)
  for (IDX j = first; j < end; ++j) {
    const ACC value = x[R_AT0];
#ifdef CARRY
    const ACC part = value - lost, total = sum + part;
    lost = isfinite(total) ? (total - sum) - part : 0;
    sum = total;
#else
    sum = JOIN(sum, value);
#endif
    R_NEXT
  }
  AT(T, y)[i] = (T)sum;
}

// The place of the largest of `count` elements that are `stride` apart; a NaN is the largest.
kernel void arg_max(STATUS, BUFFER(y), BUFFER(x), const IDX n, const IDX count, const IDX stride,
                    const int last K_PARAMS) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  K_INDEX(i)
  global const F* x = AT(const F, x) + K_AT0;
  IDX best = 0;
  for (IDX k = 1; k < count; ++k) {
    const F top = x[best * stride], value = x[k * stride];
    const bool wins = value != value ? top == top || last : value > top || (last && value == top);
    if (wins) best = k;
  }
  AT(long, y)[i] = best;
}
