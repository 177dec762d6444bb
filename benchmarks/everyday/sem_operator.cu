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

template <typename T, int Q>
__global__ void gradientKernel(DeviceMesh<T> mesh, const T* u, T* ur, T* us, T* ut)
{
    constexpr int Q3 = Q * Q * Q;
    int gid = blockIdx.x * blockDim.x + threadIdx.x;
    if (gid >= mesh.nelem * Q3) return;
    int e = gid / Q3;
    int n = gid % Q3;
    int i = n % Q, j = (n / Q) % Q, k = n / (Q * Q);
    const int* map = mesh.l2g + e * Q3;

    T r = 0, s = 0, t = 0;
    for (int m = 0; m < Q; ++m) {
        r += mesh.D[i * Q + m] * u[map[(k * Q + j) * Q + m]];
        s += mesh.D[j * Q + m] * u[map[(k * Q + m) * Q + i]];
        t += mesh.D[k * Q + m] * u[map[(m * Q + j) * Q + i]];
    }
    ur[gid] = r;
    us[gid] = s;
    ut[gid] = t;
}

template <typename T, int Q>
__global__ void metricKernel(DeviceMesh<T> mesh, T* ur, T* us, T* ut)
{
    int gid = blockIdx.x * blockDim.x + threadIdx.x;
    if (gid >= mesh.nelem * Q * Q * Q) return;
    Metric<T> g = mesh.metric[gid];
    T r = ur[gid], s = us[gid], t = ut[gid];
    ur[gid] = g.rr * r + g.rs * s + g.rt * t;
    us[gid] = g.rs * r + g.ss * s + g.st * t;
    ut[gid] = g.rt * r + g.st * s + g.tt * t;
}

template <typename T, int Q>
__global__ void divergenceKernel(DeviceMesh<T> mesh, const T* ur, const T* us, const T* ut, T* w)
{
    constexpr int Q3 = Q * Q * Q;
    int gid = blockIdx.x * blockDim.x + threadIdx.x;
    if (gid >= mesh.nelem * Q3) return;
    int e = gid / Q3;
    int n = gid % Q3;
    int i = n % Q, j = (n / Q) % Q, k = n / (Q * Q);
    int base = e * Q3;

    T sum = 0;
    for (int m = 0; m < Q; ++m) {
        sum += mesh.D[m * Q + i] * ur[base + (k * Q + j) * Q + m];
        sum += mesh.D[m * Q + j] * us[base + (k * Q + m) * Q + i];
        sum += mesh.D[m * Q + k] * ut[base + (m * Q + j) * Q + i];
    }
    atomicAdd(&w[mesh.l2g[gid]], sum);
}

template <typename T>
__global__ void updateKernel(DeviceMesh<T> mesh, T* u, const T* w, T tau)
{
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g < mesh.nnodes)
        u[g] -= tau * mesh.minv[g] * w[g];
}

// ------------------------------------------------------------------ solver

template <typename T, int Q>
void diffuse(const DeviceMesh<T>& mesh, T* u, T* w, T tau, int steps, cudaStream_t stream)
{
    const int nloc = mesh.nelem * Q * Q * Q;
    T *ur, *us, *ut;
    SEM_CHECK(cudaMalloc(&ur, nloc * sizeof(T)));
    SEM_CHECK(cudaMalloc(&us, nloc * sizeof(T)));
    SEM_CHECK(cudaMalloc(&ut, nloc * sizeof(T)));

    const int block = 256;
    const int gridLoc = (nloc + block - 1) / block;
    const int gridGlob = (mesh.nnodes + block - 1) / block;
    for (int it = 0; it < steps; ++it) {
        SEM_CHECK(cudaMemsetAsync(w, 0, mesh.nnodes * sizeof(T), stream));
        gradientKernel<T, Q><<<gridLoc, block, 0, stream>>>(mesh, u, ur, us, ut);
        metricKernel<T, Q><<<gridLoc, block, 0, stream>>>(mesh, ur, us, ut);
        divergenceKernel<T, Q><<<gridLoc, block, 0, stream>>>(mesh, ur, us, ut, w);
        updateKernel<T><<<gridGlob, block, 0, stream>>>(mesh, u, w, tau);
    }
    SEM_CHECK(cudaGetLastError());
    SEM_CHECK(cudaStreamSynchronize(stream));
    SEM_CHECK(cudaFree(ur));
    SEM_CHECK(cudaFree(us));
    SEM_CHECK(cudaFree(ut));
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
