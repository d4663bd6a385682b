// SPDX-License-Identifier: Apache-2.0
// gradrack.Dropout: Philox4x32-10, key = seed, counter = (element / 4, stream, step, microbatch).
//
// The numbers are part of the operator's meaning: the same mask on every device (philox.h of the
// SDK). One work-item makes four. Keeping is decided by integers: the upper 24 bits >= threshold.
inline uint4 philox(uint4 c, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const uint high0 = mul_hi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
    const uint high1 = mul_hi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
    c = (uint4)(high1 ^ c.y ^ key.x, low1, high0 ^ c.w ^ key.y, low0);
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}

kernel void dropout(STATUS, BUFFER(y), BUFFER(x), BUFFER(rng), BUFFER(mask), const IDX n,
                    const IDX quads, const uint stream, const uint threshold, const ACC kept,
                    const int has_mask) {
  const IDX q = get_global_id(0);
  if (q >= quads || STOPPED) return;
  global const long* rng = AT(const long, rng);
  const uint2 key = (uint2)((uint)rng[0], (uint)((ulong)rng[0] >> 32));
  const uint4 drawn = philox((uint4)((uint)q, stream, (uint)rng[1], (uint)rng[2]), key);
  const uint lanes[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
  for (int lane = 0; lane < 4 && q * 4 + lane < n; ++lane) {
    const IDX i = q * 4 + lane;
    const int keep = (lanes[lane] >> 8) >= threshold;
    AT(T, y)[i] = keep ? (T)((ACC)AT(const T, x)[i] / kept) : (T)0;
    if (has_mask) AT(uchar, mask)[i] = (uchar)keep;
  }
}
