// Box chemistry for an air quality model, tuned version: cells do not interact, so
// one kernel integrates all time steps with concentrations and Arrhenius constants
// in registers; the step table sits in constant memory. The six divisions of a
// sweep stay, but the common products are formed once.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_OK(x)                                                              \
    if (cudaError_t e_ = (x)) {                                                 \
        fprintf(stderr, "CUDA error '%s' at line %d\n", cudaGetErrorString(e_), __LINE__); \
        exit(2);                                                                \
    }

enum Species { O3, NO, NO2, CO, HO2, OH, N_SPECIES };

constexpr int NX = 64, NY = 48, NZ = 24;
constexpr int N_CELLS = NX * NY * NZ;
constexpr int N_STEPS = 120;

struct Step { double dt, sun; };
__constant__ Step cSteps[N_STEPS];

// a/b through a float seed, two Newton steps and a correction. b is 1 + dt*loss here, so it is
// always a normal number well inside the float range.
__device__ __forceinline__ double quotient(double a, double b)
{
    double r = (double)__frcp_rn((float)b);
    r = fma(r, fma(-b, r, 1.0), r);
    r = fma(r, fma(-b, r, 1.0), r);
    double q = a * r;
    return fma(r, fma(-b, q, a), q);
}

__global__ void __launch_bounds__(64)
integrate(double* __restrict__ conc, const double* __restrict__ temperature)
{
    const int c = blockIdx.x * 64 + threadIdx.x;
    if (c >= N_CELLS) return;

    const double invT = 1.0 / temperature[c];
    const double k1 = 1.4e-12 * exp(-1310 * invT);
    const double k3 = 2.4e-13;
    const double k4 = 3.3e-12 * exp(270 * invT);
    const double k5x2 = 2.0 * (3.0e-13 * exp(460 * invT));
    const double k6 = 1.1e-11;
    const double k7 = 1.0e-14 * exp(-490 * invT);

    double emitNO = 0.0, emitCO = 0.0;
    if (c < NX * NY) {                      // lowest layer
        const int i = c % NX, j = c / NX;
        const double strength = 0.5 + 0.5 * ((i / 8 + j / 8) % 3);
        emitNO = 4.0e6 * strength;
        emitCO = 3.0e7 * strength;
    }

    double o3 = conc[O3 * N_CELLS + c], no = conc[NO * N_CELLS + c], no2 = conc[NO2 * N_CELLS + c];
    double co = conc[CO * N_CELLS + c], ho2 = conc[HO2 * N_CELLS + c], oh = conc[OH * N_CELLS + c];

    for (int s = 0; s < N_STEPS; ++s) {
        const double dt = cSteps[s].dt;
        const double j0 = 8.0e-3 * cSteps[s].sun;
        const double j2 = 2.0e-6 * cSteps[s].sun;
        no = fma(dt, emitNO, no);
        co = fma(dt, emitCO, co);

        const double o3Old = o3, noOld = no, no2Old = no2, coOld = co, ho2Old = ho2, ohOld = oh;
#pragma unroll
        for (int sweep = 0; sweep < 2; ++sweep) {
            const double k7o3 = k7 * o3;
            const double k3co = k3 * co;
            const double k4no = k4 * no;
            oh = quotient(ohOld + dt * (2.0 * j2 * o3 + ho2 * (k4no + k7o3)),
                          1.0 + dt * (k3co + k6 * no2));
            ho2 = quotient(ho2Old + dt * (k3co * oh),
                           1.0 + dt * (k4no + k5x2 * ho2 + k7o3));
            const double k4ho2 = k4 * ho2;
            const double k1o3 = k1 * o3;
            const double sink = k1o3 + k4ho2;
            no = quotient(noOld + dt * (j0 * no2), 1.0 + dt * sink);
            no2 = quotient(no2Old + dt * (no * sink), 1.0 + dt * (j0 + k6 * oh));
            o3 = quotient(o3Old + dt * (j0 * no2), 1.0 + dt * (k1 * no + j2 + k7 * ho2));
            co = quotient(coOld, 1.0 + dt * (k3 * oh));
        }
    }
    conc[O3 * N_CELLS + c] = o3;
    conc[NO * N_CELLS + c] = no;
    conc[NO2 * N_CELLS + c] = no2;
    conc[CO * N_CELLS + c] = co;
    conc[HO2 * N_CELLS + c] = ho2;
    conc[OH * N_CELLS + c] = oh;
}

int main()
{
    const char* names[N_SPECIES] = {"O3", "NO", "NO2", "CO", "HO2", "OH"};
    const double initial[N_SPECIES] = {1.0e12, 2.0e10, 5.0e10, 2.5e12, 1.0e8, 1.0e6};

    std::vector<Step> steps(N_STEPS);
    double t = 0.0;
    for (int s = 0; s < N_STEPS; ++s) {
        steps[s].dt = s < 60 ? 0.5 * pow(1.08, s) : 60.0;
        t += steps[s].dt;
        steps[s].sun = sin(3.14159265358979 * (0.3 + 0.2 * t / 5000.0));
    }

    std::vector<double> temperature(N_CELLS), conc((size_t)N_SPECIES * N_CELLS);
    unsigned seed = 12345u;
    for (int k = 0; k < NZ; ++k)
        for (int j = 0; j < NY; ++j)
            for (int i = 0; i < NX; ++i) {
                int c = (k * NY + j) * NX + i;
                temperature[c] = 298.0 - 1.5 * k + 2.0 * sin(0.1 * i) * cos(0.15 * j);
                for (int s = 0; s < N_SPECIES; ++s) {
                    seed = seed * 1664525u + 1013904223u;
                    conc[(size_t)s * N_CELLS + c] = initial[s] * (0.75 + 0.5 * (seed >> 8) / 16777216.0);
                }
            }

    double *dConc, *dTemp;
    CUDA_OK(cudaMalloc(&dConc, conc.size() * sizeof(double)));
    CUDA_OK(cudaMalloc(&dTemp, N_CELLS * sizeof(double)));
    CUDA_OK(cudaMemcpy(dConc, conc.data(), conc.size() * sizeof(double), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(dTemp, temperature.data(), N_CELLS * sizeof(double), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpyToSymbol(cSteps, steps.data(), N_STEPS * sizeof(Step)));

    integrate<<<(N_CELLS + 63) / 64, 64>>>(dConc, dTemp);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaMemcpy(conc.data(), dConc, conc.size() * sizeof(double), cudaMemcpyDeviceToHost));

    for (int s = 0; s < N_SPECIES; ++s) {
        double sum = 0.0, top = 0.0;
        for (int c = 0; c < N_CELLS; ++c) {
            double v = conc[(size_t)s * N_CELLS + c];
            sum += v;
            top = v > top ? v : top;
        }
        printf("%-4s mean %.6g max %.6g\n", names[s], sum / N_CELLS, top);
    }
    printf("O3 at (10,20,0) %.6g, NO2 at (50,40,12) %.6g\n",
           conc[(size_t)O3 * N_CELLS + 20 * NX + 10],
           conc[(size_t)NO2 * N_CELLS + (12 * NY + 40) * NX + 50]);

    CUDA_OK(cudaFree(dConc));
    CUDA_OK(cudaFree(dTemp));
    return 0;
}
