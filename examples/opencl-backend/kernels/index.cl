// SPDX-License-Identifier: Apache-2.0
// Picking and placing by index. Indices were checked by a kernel before (check.cl).
//
// ITEM is an element moved, INDEX the type of an index, ACC that of sums. Data is seen as [outer,
// size, inner] around the axis. Invariant: what is added to one place is added by one work-item, in
// the order of indices: no atomics, and one order on every device.
inline IDX index_of(global const INDEX* indices, const IDX k, const IDX size) {
  const long value = indices[k];
  return (IDX)(value < 0 ? value + size : value);
}

kernel void gather(STATUS, BUFFER(y), BUFFER(x), BUFFER(at), const IDX n, const IDX count,
                   const IDX size, const IDX inner) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  const IDX c = i % inner, row = i / inner;
  const IDX k = row % count, o = row / count;
  const IDX from = index_of(AT(const INDEX, at), k, size);
  AT(ITEM, y)[i] = AT(const ITEM, x)[(o * size + from) * inner + c];
}

// sum[o, index k, c] += gy[o, k, c] for k in order; one work-item for each column (o, c).
kernel void gather_grad(STATUS, BUFFER(sum), BUFFER(gy), BUFFER(at), const IDX n, const IDX count,
                        const IDX size, const IDX inner) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  const IDX c = i % inner, o = i / inner;
  global ACC* sum = AT(ACC, sum) + o * size * inner + c;
  global const ITEM* gy = AT(const ITEM, gy) + o * count * inner + c;
  for (IDX k = 0; k < count; ++k) {
    sum[index_of(AT(const INDEX, at), k, size) * inner] += (ACC)gy[k * inner];
  }
}

#ifdef S_AT0
// y[i] = x[place of i with the index as its coordinate on the axis].
kernel void gather_elements(STATUS, BUFFER(y), BUFFER(x), BUFFER(at), const IDX n, const IDX size,
                            const IDX stride S_PARAMS) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  S_INDEX(i)
  AT(ITEM, y)[i] = AT(const ITEM, x)[S_AT0 + index_of(AT(const INDEX, at), i, size) * stride];
}

// One work-item for each line along the axis: S_ walks the lines, in data and in the indices.
kernel void scatter_elements(STATUS, BUFFER(y), BUFFER(updates), BUFFER(at), const IDX n,
                             const IDX size, const IDX stride, const IDX length,
                             const IDX step S_PARAMS) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  S_INDEX(i)
  for (IDX k = 0; k < length; ++k) {
    const IDX from = S_AT1 + k * step;
    const IDX to = S_AT0 + index_of(AT(const INDEX, at), from, size) * stride;
#ifdef ADD
    AT(ACC, y)[to] += (ACC)AT(const ITEM, updates)[from];
#else
    AT(ACC, y)[to] = (ACC)AT(const ITEM, updates)[from];
#endif
  }
}
#endif
