// 3-D FDTD (Yee grid): E and H field updates, point source in the middle.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

#define NX 192
#define NY 192
#define NZ 192
#define STEPS 20
#define IDX(i, j, k) (((size_t)(k) * NY + (j)) * NX + (i))

#define CUDA_OK(x)                                                      \
    if ((x) != cudaSuccess) {                                           \
        printf("CUDA problem at line %d\n", __LINE__);                  \
        exit(1);                                                        \
    }

struct Fields {
    float *ex, *ey, *ez;
    float *hx, *hy, *hz;
    float *ce;   // dt / (eps * dx) of every cell
};

// All three components in one kernel, four cells of a row per thread, marching along k so that the
// plane before (E) or behind (H) stays in registers.
#define BY 4
#define ZCHUNK 16
#define X4 (NX / 4)
static_assert(NX % 4 == 0 && NY % BY == 0 && NZ % ZCHUNK == 0, "tiling");

__device__ __forceinline__ float4 ld4(const float *p) { return *(const float4 *)p; }
__device__ __forceinline__ void st4(float *p, float4 v) { *(float4 *)p = v; }

// e + c * ((a - b) - (p - q))
__device__ __forceinline__ float upd(float e, float c, float a, float b, float p, float q)
{
    return e + c * ((a - b) - (p - q));
}

__global__ void __launch_bounds__(X4 * BY) updateE(Fields f, float src)
{
    const int i = 4 * threadIdx.x;
    const int j = blockIdx.x * BY + threadIdx.y;
    const int kEnd = (blockIdx.y + 1) * ZCHUNK;
    int k = blockIdx.y * ZCHUNK;
    if (j == 0) return;
    if (k == 0) k = 1;
    const size_t plane = (size_t)NX * NY;
    size_t c = IDX(i, j, k);
    float4 hxPrev = ld4(f.hx + c - plane), hyPrev = ld4(f.hy + c - plane);
    const bool first = i == 0;

    for (; k < kEnd; k++, c += plane) {
        const float4 hx = ld4(f.hx + c), hy = ld4(f.hy + c), hz = ld4(f.hz + c);
        const float4 hxJ = ld4(f.hx + c - NX), hzJ = ld4(f.hz + c - NX);
        const float hyI = first ? 0.0f : f.hy[c - 1];
        const float hzI = first ? 0.0f : f.hz[c - 1];
        const float4 ce = ld4(f.ce + c);
        float4 ex = ld4(f.ex + c), ey = ld4(f.ey + c), ez = ld4(f.ez + c);

        if (!first) {
            ex.x = upd(ex.x, ce.x, hz.x, hzJ.x, hy.x, hyPrev.x);
            ey.x = upd(ey.x, ce.x, hx.x, hxPrev.x, hz.x, hzI);
            ez.x = upd(ez.x, ce.x, hy.x, hyI, hx.x, hxJ.x);
        }
        ex.y = upd(ex.y, ce.y, hz.y, hzJ.y, hy.y, hyPrev.y);
        ey.y = upd(ey.y, ce.y, hx.y, hxPrev.y, hz.y, hz.x);
        ez.y = upd(ez.y, ce.y, hy.y, hy.x, hx.y, hxJ.y);
        ex.z = upd(ex.z, ce.z, hz.z, hzJ.z, hy.z, hyPrev.z);
        ey.z = upd(ey.z, ce.z, hx.z, hxPrev.z, hz.z, hz.y);
        ez.z = upd(ez.z, ce.z, hy.z, hy.y, hx.z, hxJ.z);
        ex.w = upd(ex.w, ce.w, hz.w, hzJ.w, hy.w, hyPrev.w);
        ey.w = upd(ey.w, ce.w, hx.w, hxPrev.w, hz.w, hz.z);
        ez.w = upd(ez.w, ce.w, hy.w, hy.z, hx.w, hxJ.w);

        if (k == NZ / 2 && j == NY / 2 && i == (NX / 2) / 4 * 4) {
            const int o = (NX / 2) % 4;
            if (o == 0) ez.x += src;
            if (o == 1) ez.y += src;
            if (o == 2) ez.z += src;
            if (o == 3) ez.w += src;
        }
        st4(f.ex + c, ex);
        st4(f.ey + c, ey);
        st4(f.ez + c, ez);
        hxPrev = hx;
        hyPrev = hy;
    }
}

__global__ void __launch_bounds__(X4 * BY) updateH(Fields f, float ch)
{
    const int i = 4 * threadIdx.x;
    const int j = blockIdx.x * BY + threadIdx.y;
    int k = blockIdx.y * ZCHUNK;
    const int kEnd = min(k + ZCHUNK, NZ - 1);
    if (j == NY - 1) return;
    const size_t plane = (size_t)NX * NY;
    size_t c = IDX(i, j, k);
    float4 ex = ld4(f.ex + c), ey = ld4(f.ey + c);
    const bool last = i == NX - 4;
    const float m = -ch;

    for (; k < kEnd; k++, c += plane) {
        const float4 exK = ld4(f.ex + c + plane), eyK = ld4(f.ey + c + plane);
        const float4 ez = ld4(f.ez + c);
        const float4 ezJ = ld4(f.ez + c + NX), exJ = ld4(f.ex + c + NX);
        const float ezI = last ? 0.0f : f.ez[c + 4];
        const float eyI = last ? 0.0f : f.ey[c + 4];
        float4 hx = ld4(f.hx + c), hy = ld4(f.hy + c), hz = ld4(f.hz + c);

        hx.x = upd(hx.x, m, ezJ.x, ez.x, eyK.x, ey.x);
        hy.x = upd(hy.x, m, exK.x, ex.x, ez.y, ez.x);
        hz.x = upd(hz.x, m, ey.y, ey.x, exJ.x, ex.x);
        hx.y = upd(hx.y, m, ezJ.y, ez.y, eyK.y, ey.y);
        hy.y = upd(hy.y, m, exK.y, ex.y, ez.z, ez.y);
        hz.y = upd(hz.y, m, ey.z, ey.y, exJ.y, ex.y);
        hx.z = upd(hx.z, m, ezJ.z, ez.z, eyK.z, ey.z);
        hy.z = upd(hy.z, m, exK.z, ex.z, ez.w, ez.z);
        hz.z = upd(hz.z, m, ey.w, ey.z, exJ.z, ex.z);
        if (!last) {
            hx.w = upd(hx.w, m, ezJ.w, ez.w, eyK.w, ey.w);
            hy.w = upd(hy.w, m, exK.w, ex.w, ezI, ez.w);
            hz.w = upd(hz.w, m, eyI, ey.w, exJ.w, ex.w);
        }
        st4(f.hx + c, hx);
        st4(f.hy + c, hy);
        st4(f.hz + c, hz);
        ex = exK;
        ey = eyK;
    }
}

static unsigned int rnd_state = 42;
static float rnd()
{
    rnd_state = rnd_state * 1664525u + 1013904223u;
    return (rnd_state >> 8) * (1.0f / 16777216.0f);
}

static float *makeField(const std::vector<float> &h)
{
    float *d;
    CUDA_OK(cudaMalloc(&d, h.size() * sizeof(float)));
    CUDA_OK(cudaMemcpy(d, h.data(), h.size() * sizeof(float), cudaMemcpyHostToDevice));
    return d;
}

static double energy(const float *d, std::vector<float> &h)
{
    CUDA_OK(cudaMemcpy(h.data(), d, h.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double s = 0.0;
    for (size_t n = 0; n < h.size(); n++) s += (double)h[n] * h[n];
    return s;
}

int main()
{
    size_t cells = (size_t)NX * NY * NZ;
    std::vector<float> h(cells);
    Fields f;

    for (auto &v : h) v = 0.1f * (rnd() - 0.5f);
    f.ex = makeField(h);
    for (auto &v : h) v = 0.1f * (rnd() - 0.5f);
    f.ey = makeField(h);
    for (auto &v : h) v = 0.1f * (rnd() - 0.5f);
    f.ez = makeField(h);
    for (auto &v : h) v = 0.0f;
    f.hx = makeField(h);
    f.hy = makeField(h);
    f.hz = makeField(h);
    for (int k = 0; k < NZ; k++)
        for (int j = 0; j < NY; j++)
            for (int i = 0; i < NX; i++) {
                bool slab = (k > NZ / 3 && k < NZ / 2);
                h[IDX(i, j, k)] = 0.5f / (slab ? 4.0f : 1.0f + 0.1f * rnd());
            }
    f.ce = makeField(h);

    dim3 block(X4, BY);
    dim3 grid(NY / BY, NZ / ZCHUNK);
    for (int t = 0; t < STEPS; t++) {
        updateE<<<grid, block>>>(f, 5.0f * sinf(0.3f * t));
        updateH<<<grid, block>>>(f, 0.5f);
    }
    CUDA_OK(cudaDeviceSynchronize());

    double ex = energy(f.ex, h), ey = energy(f.ey, h), ez = energy(f.ez, h);
    double hx = energy(f.hx, h), hy = energy(f.hy, h), hz = energy(f.hz, h);
    printf("E energy %.3e %.3e %.3e\n", ex, ey, ez);
    printf("H energy %.3e %.3e %.3e\n", hx, hy, hz);

    cudaFree(f.ex); cudaFree(f.ey); cudaFree(f.ez);
    cudaFree(f.hx); cudaFree(f.hy); cudaFree(f.hz); cudaFree(f.ce);
    return 0;
}
