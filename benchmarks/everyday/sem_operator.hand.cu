// Matrix-free spectral-element Laplacian on a deformed hexahedral mesh
// (order 7, GLL quadrature, continuous global numbering), used inside a few
// explicit diffusion steps:  u <- u - tau * mask * M^-1 * (K u).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define SEM_CHECK(x) do { cudaError_t err_ = (x); if (err_ != cudaSuccess) { \
    std::fprintf(stderr, "CUDA error %s (%s:%d)\n", cudaGetErrorString(err_), __FILE__, __LINE__); \
    std::exit(EXIT_FAILURE); } } while (0)

constexpr int NQ     = 8;                     // nodes per direction
constexpr int NE1    = 16;                    // elements per direction
constexpr int NELEM  = NE1 * NE1 * NE1;
constexpr int NN1    = NE1 * (NQ - 1) + 1;    // global nodes per direction
constexpr int NNODES = NN1 * NN1 * NN1;
constexpr int NSTEPS = 5;

// metric terms of one quadrature point, quadrature weight and Jacobian included
template <typename T>
struct Metric { T rr, rs, rt, ss, st, tt; };

template <typename T>
struct DeviceMesh {
    int        nelem;
    int        nnodes;
    int*       l2g;      // [nelem][Q*Q*Q]
    Metric<T>* metric;   // [nelem][Q*Q*Q]
    T*         D;        // [Q][Q] differentiation matrix
    T*         minv;     // [nnodes] masked inverse lumped mass
};

// ------------------------------------------------------------------ kernels

// One element per block of Q x Q threads. A thread owns the column (i, j, :):
// its nodal values and its share of the result stay in registers, the planes
// of constant k go through shared memory. Gather, gradient, metric, divergence
// and scatter are one kernel; nothing local goes to memory.
template <typename T, int Q>
__global__ void __launch_bounds__(Q * Q, 8)
laplacianKernel(const int* __restrict__ l2g, const Metric<T>* __restrict__ metric,
                const T* __restrict__ Dg, const T* __restrict__ u, T* __restrict__ w)
{
    static_assert(sizeof(Metric<T>) == 6 * sizeof(T), "packed metric expected");
    static_assert(sizeof(T) == 8, "metric is fetched as double2");
    __shared__ T sD[Q][Q + 1];
    __shared__ T su[Q][Q];
    __shared__ T sr[Q][Q];
    __shared__ T ss[Q][Q];

    const int i = threadIdx.x, j = threadIdx.y;
    const int ij = j * Q + i;
    const size_t base = (size_t)blockIdx.x * (Q * Q * Q) + ij;

    sD[j][i] = Dg[ij];

    int g[Q];
    T ru[Q], rw[Q];
#pragma unroll
    for (int k = 0; k < Q; ++k) g[k] = __ldg(l2g + base + k * Q * Q);
#pragma unroll
    for (int k = 0; k < Q; ++k) {
        ru[k] = u[g[k]];
        rw[k] = 0;
    }
    __syncthreads();

    T Di[Q], Dj[Q];
#pragma unroll
    for (int m = 0; m < Q; ++m) {
        Di[m] = sD[i][m];
        Dj[m] = sD[j][m];
    }

#pragma unroll
    for (int k = 0; k < Q; ++k) {
        const double2* mp = reinterpret_cast<const double2*>(metric + base + k * Q * Q);
        const double2 m0 = __ldcs(mp), m1 = __ldcs(mp + 1), m2 = __ldcs(mp + 2);

        su[j][i] = ru[k];
        T t = 0;
#pragma unroll
        for (int m = 0; m < Q; ++m) t += sD[k][m] * ru[m];
        __syncthreads();

        T r = 0, s = 0;
#pragma unroll
        for (int m = 0; m < Q; ++m) {
            r += Di[m] * su[j][m];
            s += Dj[m] * su[m][i];
        }
        sr[j][i] = m0.x * r + m0.y * s + m1.x * t;
        ss[j][i] = m0.y * r + m1.y * s + m2.x * t;
        const T gt = m1.x * r + m2.x * s + m2.y * t;
#pragma unroll
        for (int m = 0; m < Q; ++m) rw[m] += sD[k][m] * gt;
        __syncthreads();

        T sum = 0;
#pragma unroll
        for (int m = 0; m < Q; ++m) {
            sum += sD[m][i] * sr[j][m];
            sum += sD[m][j] * ss[m][i];
        }
        rw[k] += sum;
        // su is rewritten next, read before the barrier above; sr and ss are
        // rewritten after the first barrier of the next plane.
    }
#pragma unroll
    for (int k = 0; k < Q; ++k) atomicAdd(w + g[k], rw[k]);
}

// update and clear w for the next step
template <typename T, bool kClear>
__global__ void __launch_bounds__(256)
updateKernel(const T* __restrict__ minv, T* __restrict__ u, T* __restrict__ w, T tau, int n)
{
    int g = blockIdx.x * 256 + threadIdx.x;
    if (g < n) {
        u[g] -= tau * minv[g] * w[g];
        if (kClear) w[g] = 0;
    }
}

// ------------------------------------------------------------------ solver

template <typename T, int Q>
void diffuse(const DeviceMesh<T>& mesh, T* u, T* w, T tau, int steps, cudaStream_t stream)
{
    const int n = mesh.nnodes;
    const int grid = (n + 255) / 256;
    SEM_CHECK(cudaMemsetAsync(w, 0, n * sizeof(T), stream));
    for (int it = 0; it < steps; ++it) {
        laplacianKernel<T, Q><<<mesh.nelem, dim3(Q, Q), 0, stream>>>(mesh.l2g, mesh.metric, mesh.D, u, w);
        if (it + 1 < steps)
            updateKernel<T, true><<<grid, 256, 0, stream>>>(mesh.minv, u, w, tau, n);
        else
            updateKernel<T, false><<<grid, 256, 0, stream>>>(mesh.minv, u, w, tau, n);
    }
    SEM_CHECK(cudaGetLastError());
    SEM_CHECK(cudaStreamSynchronize(stream));
}

// ------------------------------------------------------------------ host

static uint32_t rngState = 2463534242u;
static double rnd()
{
    rngState ^= rngState << 13;
    rngState ^= rngState >> 17;
    rngState ^= rngState << 5;
    return rngState * (1.0 / 4294967296.0);
}

static double legendre(int n, double x, double* prev)
{
    double p0 = 1.0, p1 = x;
    for (int k = 2; k <= n; ++k) {
        double p2 = ((2 * k - 1) * x * p1 - (k - 1) * p0) / k;
        p0 = p1;
        p1 = p2;
    }
    *prev = p0;
    return p1;
}

// Gauss-Lobatto-Legendre nodes, weights and differentiation matrix
static void gll(double* x, double* w, double* D)
{
    const int N = NQ - 1;
    double L[NQ];
    for (int i = 0; i < NQ; ++i) {
        double z = -std::cos(M_PI * i / N), pm;
        for (int it = 0; it < 50; ++it) {
            double p = legendre(N, z, &pm);
            z -= (z * p - pm) / (NQ * p);
        }
        x[i] = z;
        L[i] = legendre(N, z, &pm);
        w[i] = 2.0 / (N * (N + 1) * L[i] * L[i]);
    }
    for (int i = 0; i < NQ; ++i)
        for (int j = 0; j < NQ; ++j) {
            if (i != j)                D[i * NQ + j] = L[i] / (L[j] * (x[i] - x[j]));
            else if (i == 0)           D[i * NQ + j] = -0.25 * N * (N + 1);
            else if (i == N)           D[i * NQ + j] = 0.25 * N * (N + 1);
            else                       D[i * NQ + j] = 0.0;
        }
}

int main()
{
    constexpr int Q3 = NQ * NQ * NQ;
    double x[NQ], wq[NQ], D[NQ * NQ];
    gll(x, wq, D);

    std::vector<int> l2g((size_t)NELEM * Q3);
    std::vector<Metric<double>> metric((size_t)NELEM * Q3);
    std::vector<double> mass(NNODES, 0.0), minv(NNODES), u(NNODES), w(NNODES);

    const double h = 1.0 / NE1;
    const double jac = h * h * h / 8.0, sc = 4.0 / (h * h);
    size_t at = 0;
    for (int ez = 0; ez < NE1; ++ez)
        for (int ey = 0; ey < NE1; ++ey)
            for (int ex = 0; ex < NE1; ++ex) {
                double a = 0.8 + 0.4 * rnd(), b = 0.8 + 0.4 * rnd(), c = 0.8 + 0.4 * rnd();
                double skew = 0.3 * (rnd() - 0.5);
                for (int k = 0; k < NQ; ++k)
                    for (int j = 0; j < NQ; ++j)
                        for (int i = 0; i < NQ; ++i, ++at) {
                            int gx = ex * (NQ - 1) + i, gy = ey * (NQ - 1) + j, gz = ez * (NQ - 1) + k;
                            int g = (gz * NN1 + gy) * NN1 + gx;
                            double f = wq[i] * wq[j] * wq[k] * jac;
                            double q = f * sc;
                            l2g[at] = g;
                            mass[g] += f;
                            metric[at] = {q * (a + 0.05 * x[j]), q * skew, q * 0.5 * skew * x[i],
                                          q * (b + 0.05 * x[k]), -q * skew * x[j], q * (c + 0.05 * x[i])};
                        }
            }
    for (int gz = 0; gz < NN1; ++gz)
        for (int gy = 0; gy < NN1; ++gy)
            for (int gx = 0; gx < NN1; ++gx) {
                int g = (gz * NN1 + gy) * NN1 + gx;
                bool bnd = gx == 0 || gy == 0 || gz == 0 || gx == NN1 - 1 || gy == NN1 - 1 || gz == NN1 - 1;
                minv[g] = bnd ? 0.0 : 1.0 / mass[g];
                u[g] = bnd ? 0.0 : rnd() + 2.0 * gx * (NN1 - 1 - gx) / (double)(NN1 * NN1);
            }

    DeviceMesh<double> mesh;
    double *d_u, *d_w;
    mesh.nelem = NELEM;
    mesh.nnodes = NNODES;
    SEM_CHECK(cudaMalloc(&mesh.l2g, l2g.size() * sizeof(int)));
    SEM_CHECK(cudaMalloc(&mesh.metric, metric.size() * sizeof(Metric<double>)));
    SEM_CHECK(cudaMalloc(&mesh.D, sizeof(D)));
    SEM_CHECK(cudaMalloc(&mesh.minv, NNODES * sizeof(double)));
    SEM_CHECK(cudaMalloc(&d_u, NNODES * sizeof(double)));
    SEM_CHECK(cudaMalloc(&d_w, NNODES * sizeof(double)));

    cudaStream_t stream;
    cudaEvent_t beg, end;
    SEM_CHECK(cudaStreamCreate(&stream));
    SEM_CHECK(cudaEventCreate(&beg));
    SEM_CHECK(cudaEventCreate(&end));
    SEM_CHECK(cudaMemcpyAsync(mesh.l2g, l2g.data(), l2g.size() * sizeof(int), cudaMemcpyHostToDevice, stream));
    SEM_CHECK(cudaMemcpyAsync(mesh.metric, metric.data(), metric.size() * sizeof(Metric<double>),
        cudaMemcpyHostToDevice, stream));
    SEM_CHECK(cudaMemcpyAsync(mesh.D, D, sizeof(D), cudaMemcpyHostToDevice, stream));
    SEM_CHECK(cudaMemcpyAsync(mesh.minv, minv.data(), NNODES * sizeof(double), cudaMemcpyHostToDevice, stream));
    SEM_CHECK(cudaMemcpyAsync(d_u, u.data(), NNODES * sizeof(double), cudaMemcpyHostToDevice, stream));

    SEM_CHECK(cudaEventRecord(beg, stream));
    diffuse<double, NQ>(mesh, d_u, d_w, 2.0e-7, NSTEPS, stream);
    SEM_CHECK(cudaEventRecord(end, stream));
    SEM_CHECK(cudaEventSynchronize(end));
    float ms = 0.0f;
    SEM_CHECK(cudaEventElapsedTime(&ms, beg, end));
    std::fprintf(stderr, "diffuse: %.3f ms\n", ms);

    SEM_CHECK(cudaMemcpyAsync(u.data(), d_u, NNODES * sizeof(double), cudaMemcpyDeviceToHost, stream));
    SEM_CHECK(cudaMemcpyAsync(w.data(), d_w, NNODES * sizeof(double), cudaMemcpyDeviceToHost, stream));
    SEM_CHECK(cudaStreamSynchronize(stream));

    double su = 0, wu = 0, sw = 0, ww = 0, wmax = 0;
    for (int g = 0; g < NNODES; ++g) {
        su += std::fabs(u[g]);
        wu += u[g] * u[g] * (1 + g % 29);
        sw += std::fabs(w[g]);
        ww += w[g] * w[g] * (1 + g % 23);
        wmax = std::fmax(wmax, std::fabs(w[g]));
    }
    const int mid = (NN1 / 2 * NN1 + NN1 / 2) * NN1 + NN1 / 2;
    std::printf("u: sum %.6e weighted square %.6e middle %.6e\n", su, wu, u[mid]);
    std::printf("Ku: sum %.6e weighted square %.6e max %.6e middle %.6e\n", sw, ww, wmax, w[mid]);

    SEM_CHECK(cudaFree(mesh.l2g));
    SEM_CHECK(cudaFree(mesh.metric));
    SEM_CHECK(cudaFree(mesh.D));
    SEM_CHECK(cudaFree(mesh.minv));
    SEM_CHECK(cudaFree(d_u));
    SEM_CHECK(cudaFree(d_w));
    SEM_CHECK(cudaEventDestroy(beg));
    SEM_CHECK(cudaEventDestroy(end));
    SEM_CHECK(cudaStreamDestroy(stream));
    return 0;
}
