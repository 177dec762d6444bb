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

#define THREAD_IJK                                                      \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                      \
    int j = blockIdx.y * blockDim.y + threadIdx.y;                      \
    int k = blockIdx.z * blockDim.z + threadIdx.z;

struct Fields {
    float *ex, *ey, *ez;
    float *hx, *hy, *hz;
    float *ce;   // dt / (eps * dx) of every cell
};

__global__ void updateEx(Fields f)
{
    THREAD_IJK
    if (i < 1 || j < 1 || k < 1 || i >= NX || j >= NY || k >= NZ) return;
    f.ex[IDX(i, j, k)] += f.ce[IDX(i, j, k)] *
        ((f.hz[IDX(i, j, k)] - f.hz[IDX(i, j - 1, k)]) - (f.hy[IDX(i, j, k)] - f.hy[IDX(i, j, k - 1)]));
}

__global__ void updateEy(Fields f)
{
    THREAD_IJK
    if (i < 1 || j < 1 || k < 1 || i >= NX || j >= NY || k >= NZ) return;
    f.ey[IDX(i, j, k)] += f.ce[IDX(i, j, k)] *
        ((f.hx[IDX(i, j, k)] - f.hx[IDX(i, j, k - 1)]) - (f.hz[IDX(i, j, k)] - f.hz[IDX(i - 1, j, k)]));
}

__global__ void updateEz(Fields f)
{
    THREAD_IJK
    if (i < 1 || j < 1 || k < 1 || i >= NX || j >= NY || k >= NZ) return;
    f.ez[IDX(i, j, k)] += f.ce[IDX(i, j, k)] *
        ((f.hy[IDX(i, j, k)] - f.hy[IDX(i - 1, j, k)]) - (f.hx[IDX(i, j, k)] - f.hx[IDX(i, j - 1, k)]));
}

__global__ void addSource(Fields f, float value)
{
    f.ez[IDX(NX / 2, NY / 2, NZ / 2)] += value;
}

__global__ void updateHx(Fields f, float ch)
{
    THREAD_IJK
    if (i >= NX - 1 || j >= NY - 1 || k >= NZ - 1) return;
    f.hx[IDX(i, j, k)] -= ch *
        ((f.ez[IDX(i, j + 1, k)] - f.ez[IDX(i, j, k)]) - (f.ey[IDX(i, j, k + 1)] - f.ey[IDX(i, j, k)]));
}

__global__ void updateHy(Fields f, float ch)
{
    THREAD_IJK
    if (i >= NX - 1 || j >= NY - 1 || k >= NZ - 1) return;
    f.hy[IDX(i, j, k)] -= ch *
        ((f.ex[IDX(i, j, k + 1)] - f.ex[IDX(i, j, k)]) - (f.ez[IDX(i + 1, j, k)] - f.ez[IDX(i, j, k)]));
}

__global__ void updateHz(Fields f, float ch)
{
    THREAD_IJK
    if (i >= NX - 1 || j >= NY - 1 || k >= NZ - 1) return;
    f.hz[IDX(i, j, k)] -= ch *
        ((f.ey[IDX(i + 1, j, k)] - f.ey[IDX(i, j, k)]) - (f.ex[IDX(i, j + 1, k)] - f.ex[IDX(i, j, k)]));
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

    dim3 block(8, 8, 8);
    dim3 grid((NX + 7) / 8, (NY + 7) / 8, (NZ + 7) / 8);
    for (int t = 0; t < STEPS; t++) {
        updateEx<<<grid, block>>>(f);
        updateEy<<<grid, block>>>(f);
        updateEz<<<grid, block>>>(f);
        addSource<<<1, 1>>>(f, 5.0f * sinf(0.3f * t));
        updateHx<<<grid, block>>>(f, 0.5f);
        updateHy<<<grid, block>>>(f, 0.5f);
        updateHz<<<grid, block>>>(f, 0.5f);
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
