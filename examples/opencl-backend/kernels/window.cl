// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools over three spatial axes (missing ones in front have size 1).
//
// Output position o with kernel position k meets input position o * stride + k * dilation - pad.
// One work-item for one element of the result, one sum in ACC in a fixed order: gradients gather
// what meets their element instead of scattering. LARGEST is a NaN-keeping "a is the better maximum".
#define WINDOW const int in0, const int in1, const int in2, const int out0, const int out1, \
  const int out2, const int k0, const int k1, const int k2, const int s0, const int s1, \
  const int s2, const int d0, const int d1, const int d2, const int p0, const int p1, const int p2
#define IN_PLANE ((IDX)in0 * in1 * in2)
#define OUT_PLANE ((IDX)out0 * out1 * out2)
#define TAPS ((IDX)k0 * k1 * k2)
// Loops over kernel positions; `tap` counts them in row-major order.
#define FOR_TAPS IDX tap = 0; for (int a0 = 0; a0 < k0; ++a0) for (int a1 = 0; a1 < k1; ++a1) \
  for (int a2 = 0; a2 < k2; ++a2, ++tap)
// Takes a plane's linear place apart.
#define TAKE_APART(i, o0, o1, o2, n1, n2) \
  const int o2 = (i) % n2, o1 = (i) / n2 % n1, o0 = (i) / n2 / n1;
// The input position of window (o0, o1, o2) and tap (a0, a1, a2); `inside` says if it exists.
#define MEET \
  const int q0 = o0 * s0 + a0 * d0 - p0, q1 = o1 * s1 + a1 * d1 - p1, q2 = o2 * s2 + a2 * d2 - p2; \
  const bool inside = q0 >= 0 && q0 < in0 && q1 >= 0 && q1 < in1 && q2 >= 0 && q2 < in2; \
  const IDX at = ((IDX)q0 * in1 + q1) * in2 + q2;
// The window that meets input (q0, q1, q2) with tap (a0, a1, a2), if there is one.
#define MEET_BACK \
  const int r0 = q0 + p0 - a0 * d0, r1 = q1 + p1 - a1 * d1, r2 = q2 + p2 - a2 * d2; \
  const int o0 = r0 / s0, o1 = r1 / s1, o2 = r2 / s2; \
  const bool meets = r0 >= 0 && r1 >= 0 && r2 >= 0 && r0 % s0 == 0 && r1 % s1 == 0 && \
    r2 % s2 == 0 && o0 < out0 && o1 < out1 && o2 < out2; \
  const IDX from = ((IDX)o0 * out1 + o1) * out2 + o2;
#define BETTER(a, b) ((a) > (b) || (isnan(a) && !isnan(b)))

// x [N, C, in], w [M, C/group, kernel], y [N, M, out]; ci = C/group, mo = M/group.
kernel void conv(STATUS, BUFFER(y), BUFFER(x), BUFFER(w), BUFFER(bias), const int has_bias,
                 const IDX n, const int channels, const int filters, const int ci, const int mo,
                 WINDOW) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  const IDX place = i % OUT_PLANE, plane = i / OUT_PLANE;
  const int m = plane % filters;
  const IDX sample = plane / filters;
  TAKE_APART(place, o0, o1, o2, out1, out2)
  global const T* x = AT(const T, x) + (sample * channels + m / mo * ci) * IN_PLANE;
  global const T* w = AT(const T, w) + (IDX)m * ci * TAPS;
  ACC sum = has_bias ? (ACC)AT(const T, bias)[m] : (ACC)0;
  FOR_TAPS {
    MEET
    if (!inside) continue;
    for (int c = 0; c < ci; ++c) sum += (ACC)x[c * IN_PLANE + at] * (ACC)w[c * TAPS + tap];
  }
  AT(T, y)[i] = (T)sum;
}

kernel void conv_input_grad(STATUS, BUFFER(gx), BUFFER(gy), BUFFER(w), const IDX n,
                            const int channels, const int filters, const int ci, const int mo,
                            WINDOW) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  const IDX place = i % IN_PLANE, plane = i / IN_PLANE;
  const int channel = plane % channels, c = channel % ci, first = channel / ci * mo;
  const IDX sample = plane / channels;
  TAKE_APART(place, q0, q1, q2, in1, in2)
  global const T* gy = AT(const T, gy) + (sample * filters + first) * OUT_PLANE;
  global const T* w = AT(const T, w) + ((IDX)first * ci + c) * TAPS;
  ACC sum = 0;
  FOR_TAPS {
    MEET_BACK
    if (!meets) continue;
    for (int m = 0; m < mo; ++m) {
      sum += (ACC)gy[m * OUT_PLANE + from] * (ACC)w[(IDX)m * ci * TAPS + tap];
    }
  }
  AT(T, gx)[i] = (T)sum;
}

kernel void conv_weight_grad(STATUS, BUFFER(gw), BUFFER(gy), BUFFER(x), const IDX n,
                             const IDX samples, const int channels, const int filters,
                             const int ci, const int mo, WINDOW) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  const IDX place = i % TAPS, pair = i / TAPS;
  const int c = pair % ci, m = pair / ci;
  TAKE_APART(place, a0, a1, a2, k1, k2)
  ACC sum = 0;
  for (IDX sample = 0; sample < samples; ++sample) {
    global const T* gy = AT(const T, gy) + (sample * filters + m) * OUT_PLANE;
    global const T* x = AT(const T, x) + (sample * channels + m / mo * ci + c) * IN_PLANE;
    IDX from = 0;
    for (int o0 = 0; o0 < out0; ++o0) for (int o1 = 0; o1 < out1; ++o1)
      for (int o2 = 0; o2 < out2; ++o2, ++from) {
        MEET
        if (inside) sum += (ACC)gy[from] * (ACC)x[at];
      }
  }
  AT(T, gw)[i] = (T)sum;
}

// The place of the first maximum of a window in plane x; -1 when it is all padding.
#define FIRST_MAXIMUM(best) \
  IDX best = -1; \
  { FOR_TAPS { MEET if (inside && (best < 0 || BETTER(x[at], x[best]))) best = at; } }

kernel void max_pool(STATUS, BUFFER(y), BUFFER(x), const IDX n, WINDOW) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  const IDX place = i % OUT_PLANE;
  TAKE_APART(place, o0, o1, o2, out1, out2)
  global const T* x = AT(const T, x) + i / OUT_PLANE * IN_PLANE;
  FIRST_MAXIMUM(best)
  AT(T, y)[i] = best >= 0 ? x[best] : -(T)INFINITY;
}

kernel void max_pool_grad(STATUS, BUFFER(gx), BUFFER(gy), BUFFER(xs), const IDX n, WINDOW) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  const IDX place = i % IN_PLANE, plane = i / IN_PLANE;
  TAKE_APART(place, q0_, q1_, q2_, in1, in2)
  global const T* x = AT(const T, xs) + plane * IN_PLANE;
  global const T* gy = AT(const T, gy) + plane * OUT_PLANE;
  ACC sum = 0;
  // Windows from last to first tap come in row-major order of the windows.
  for (int b0 = k0 - 1; b0 >= 0; --b0) for (int b1 = k1 - 1; b1 >= 0; --b1)
    for (int b2 = k2 - 1; b2 >= 0; --b2) {
      const int r0 = q0_ + p0 - b0 * d0, r1 = q1_ + p1 - b1 * d1, r2 = q2_ + p2 - b2 * d2;
      const int o0 = r0 / s0, o1 = r1 / s1, o2 = r2 / s2;
      if (r0 < 0 || r1 < 0 || r2 < 0 || r0 % s0 || r1 % s1 || r2 % s2) continue;
      if (o0 >= out0 || o1 >= out1 || o2 >= out2) continue;
      FIRST_MAXIMUM(best)
      if (best == place) sum += (ACC)gy[((IDX)o0 * out1 + o1) * out2 + o2];
    }
  AT(T, gx)[i] = (T)sum;
}

// Elements that a window's sum is divided by; `e` is the padding behind the input.
#define DIVISOR(count) \
  int count = 0; \
  { FOR_TAPS { \
      MEET \
      if (count_padding ? q0 < in0 + e0 && q1 < in1 + e1 && q2 < in2 + e2 : inside) ++count; \
    } } \
  count = max(count, 1);

kernel void average_pool(STATUS, BUFFER(y), BUFFER(x), const IDX n, const int count_padding,
                         const int e0, const int e1, const int e2, WINDOW) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  const IDX place = i % OUT_PLANE;
  TAKE_APART(place, o0, o1, o2, out1, out2)
  global const T* x = AT(const T, x) + i / OUT_PLANE * IN_PLANE;
  ACC sum = 0;
  FOR_TAPS {
    MEET
    if (inside) sum += (ACC)x[at];
  }
  DIVISOR(count)
  AT(T, y)[i] = (T)(sum / (ACC)count);
}

kernel void average_pool_grad(STATUS, BUFFER(gx), BUFFER(gy), const IDX n,
                              const int count_padding, const int e0, const int e1, const int e2,
                              WINDOW) {
  const IDX i = get_global_id(0);
  if (i >= n || STOPPED) return;
  const IDX place = i % IN_PLANE;
  TAKE_APART(place, q0_, q1_, q2_, in1, in2)
  global const T* gy = AT(const T, gy) + i / IN_PLANE * OUT_PLANE;
  ACC sum = 0;
  for (int b0 = k0 - 1; b0 >= 0; --b0) for (int b1 = k1 - 1; b1 >= 0; --b1)
    for (int b2 = k2 - 1; b2 >= 0; --b2) {
      const int r0 = q0_ + p0 - b0 * d0, r1 = q1_ + p1 - b1 * d1, r2 = q2_ + p2 - b2 * d2;
      const int o0 = r0 / s0, o1 = r1 / s1, o2 = r2 / s2;
      if (r0 < 0 || r1 < 0 || r2 < 0 || r0 % s0 || r1 % s1 || r2 % s2) continue;
      if (o0 >= out0 || o1 >= out1 || o2 >= out2) continue;
      DIVISOR(count)
      sum += (ACC)gy[((IDX)o0 * out1 + o1) * out2 + o2] / (ACC)count;
    }
  AT(T, gx)[i] = (T)sum;
}
