// Straight-line inline PTX is translated, predicates and carries included; branches are refused by name.
// RUN: optiml-run %s | FileCheck %s
// RUN: not optiml-run %s -DBRANCH 2>&1 | %check=BRANCH
#include <cstdint>
#include <cstdio>

__global__ void ptx(unsigned *out, float *f) {
  unsigned lane, a = 0xfffffff0u, b = 0x20u, lo, hi, r, s = 7;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("{ add.cc.u32 %0, %2, %3; addc.u32 %1, 0, 0; }" : "=r"(lo), "=r"(hi) : "r"(a), "r"(b));
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(5u), "r"(3u), "r"(8u));
  asm("{ .reg .pred p; setp.gt.u32 p, %1, 4; @p add.u32 %0, %0, 100; @!p add.u32 %0, %0, 1; }" : "+r"(s) : "r"(lane));
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(f + 2 * lane), "f"(lane * 1.0f), "f"(lane * 2.0f) : "memory");
  unsigned long long wide;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(wide) : "r"(a), "r"(b), "l"(1ull));
  unsigned field, permuted;
  asm("bfe.u32 %0, %1, 4, 8;" : "=r"(field) : "r"(0xabcdef12u));
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(permuted) : "r"(0x33221100u), "r"(0x77665544u), "r"(0x7531u));
#ifdef BRANCH
  asm("{ .reg .pred q; setp.eq.u32 q, %0, 3; @q bra over; mov.u32 %0, 9; over: }" : "+r"(s));
#endif
  if (lane == 5) {
    unsigned values[] = {lo, hi, r, s, unsigned(wide >> 32), unsigned(wide), field, permuted};
    for (int i = 0; i < 8; ++i)
      out[i] = values[i];
  } else if (lane == 4) {
    out[8] = s;
  }
}

int main() {
  unsigned *out, h[9];
  float *f, g[64];
  cudaMalloc(&out, sizeof h);
  cudaMalloc(&f, sizeof g);
  ptx<<<1, 32>>>(out, f);
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
  cudaMemcpy(g, f, sizeof g, cudaMemcpyDeviceToHost);
  for (unsigned v : h)
    printf("%x ", v);
  printf("%g %g\n", g[20], g[21]);
}
// CHECK: 10 1 e 6b 1f fffffe01 f1 77553311 8 10 20
// BRANCH: unsupported: the inline PTX instruction
// BRANCH: inline-ptx.cu:[[#]]
