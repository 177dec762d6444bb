// Box chemistry for an air quality model: HOx/NOx/O3 cycle in every grid cell,
// integrated with a semi-implicit Gauss-Seidel scheme over a table of time steps.
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
constexpr int N_REACTIONS = 8;

struct Grid {
    int nx, ny, nz;
    __host__ __device__ size_t cells() const { return (size_t)nx * ny * nz; }
    __host__ __device__ size_t index(int i, int j, int k) const { return ((size_t)k * ny + j) * nx + i; }
};

struct State {                 // device pointers, concentrations in molecules/cm3
    double* conc[N_SPECIES];
    double* temperature;
    double* rates;             // [reaction][cell]
};

// Photolysis depends on the sun, everything else is Arrhenius.
class Mechanism {
public:
    Mechanism()
    {
        set(0, 8.0e-3, 0.0, true);      // NO2 + hv  -> NO + O3
        set(1, 1.4e-12, -1310, false);  // NO + O3   -> NO2
        set(2, 2.0e-6, 0.0, true);      // O3 + hv   -> 2 OH
        set(3, 2.4e-13, 0.0, false);    // CO + OH   -> HO2
        set(4, 3.3e-12, 270, false);    // HO2 + NO  -> OH + NO2
        set(5, 3.0e-13, 460, false);    // HO2 + HO2 -> products
        set(6, 1.1e-11, 0.0, false);    // OH + NO2  -> HNO3
        set(7, 1.0e-14, -490, false);   // HO2 + O3  -> OH
    }
    __device__ double rate(int r, double T, double sun) const
    {
        if (photolytic_[r]) return factor_[r] * sun;
        return factor_[r] * exp(exponent_[r] / T);
    }

private:
    void set(int r, double a, double e, bool hv) { factor_[r] = a; exponent_[r] = e; photolytic_[r] = hv; }
    double factor_[N_REACTIONS];
    double exponent_[N_REACTIONS];
    bool photolytic_[N_REACTIONS];
};

__global__ void computeRates(Grid grid, Mechanism mech, State st, double sun)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z;
    if (i >= grid.nx || j >= grid.ny || k >= grid.nz) return;
    size_t c = grid.index(i, j, k);
    for (int r = 0; r < N_REACTIONS; ++r)
        st.rates[r * grid.cells() + c] = mech.rate(r, st.temperature[c], sun);
}

// Traffic emissions go into the lowest layer.
__global__ void addEmissions(Grid grid, State st, double dt)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= grid.nx || j >= grid.ny) return;
    size_t c = grid.index(i, j, 0);
    double strength = 0.5 + 0.5 * ((i / 8 + j / 8) % 3);
    st.conc[NO][c] += dt * 4.0e6 * strength;
    st.conc[CO][c] += dt * 3.0e7 * strength;
}

__device__ double implicitStep(double old, double production, double loss, double dt)
{
    return (old + dt * production) / (1.0 + dt * loss);
}

__global__ void advance(Grid grid, State st, double dt)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z;
    if (i >= grid.nx || j >= grid.ny || k >= grid.nz) return;
    size_t c = grid.index(i, j, k), n = grid.cells();
    const double* q = st.rates + c;

    double old[N_SPECIES], x[N_SPECIES];
    for (int s = 0; s < N_SPECIES; ++s) old[s] = x[s] = st.conc[s][c];

    for (int sweep = 0; sweep < 2; ++sweep) {
        x[OH] = implicitStep(old[OH],
                             2.0 * q[2 * n] * x[O3] + q[4 * n] * x[HO2] * x[NO] + q[7 * n] * x[HO2] * x[O3],
                             q[3 * n] * x[CO] + q[6 * n] * x[NO2], dt);
        x[HO2] = implicitStep(old[HO2], q[3 * n] * x[CO] * x[OH],
                              q[4 * n] * x[NO] + 2.0 * q[5 * n] * x[HO2] + q[7 * n] * x[O3], dt);
        x[NO] = implicitStep(old[NO], q[0] * x[NO2], q[1 * n] * x[O3] + q[4 * n] * x[HO2], dt);
        x[NO2] = implicitStep(old[NO2], q[1 * n] * x[NO] * x[O3] + q[4 * n] * x[HO2] * x[NO],
                              q[0] + q[6 * n] * x[OH], dt);
        x[O3] = implicitStep(old[O3], q[0] * x[NO2], q[1 * n] * x[NO] + q[2 * n] + q[7 * n] * x[HO2], dt);
        x[CO] = implicitStep(old[CO], 0.0, q[3 * n] * x[OH], dt);
    }
    for (int s = 0; s < N_SPECIES; ++s) st.conc[s][c] = x[s];
}

int main()
{
    const Grid grid = {64, 48, 24};
    const size_t n = grid.cells();
    const char* names[N_SPECIES] = {"O3", "NO", "NO2", "CO", "HO2", "OH"};
    const double initial[N_SPECIES] = {1.0e12, 2.0e10, 5.0e10, 2.5e12, 1.0e8, 1.0e6};

    // Short steps while the radicals spin up, then up to a minute each.
    std::vector<double> dt, sun;
    double t = 0.0;
    for (int s = 0; s < 120; ++s) {
        dt.push_back(s < 60 ? 0.5 * pow(1.08, s) : 60.0);
        t += dt.back();
        sun.push_back(sin(3.14159265358979 * (0.3 + 0.2 * t / 5000.0)));
    }

    std::vector<double> temperature(n);
    std::vector<std::vector<double>> conc(N_SPECIES, std::vector<double>(n));
    unsigned seed = 12345u;
    for (int k = 0; k < grid.nz; ++k)
        for (int j = 0; j < grid.ny; ++j)
            for (int i = 0; i < grid.nx; ++i) {
                size_t c = grid.index(i, j, k);
                temperature[c] = 298.0 - 1.5 * k + 2.0 * sin(0.1 * i) * cos(0.15 * j);
                for (int s = 0; s < N_SPECIES; ++s) {
                    seed = seed * 1664525u + 1013904223u;
                    conc[s][c] = initial[s] * (0.75 + 0.5 * (seed >> 8) / 16777216.0);
                }
            }

    State st;
    for (int s = 0; s < N_SPECIES; ++s) {
        CUDA_OK(cudaMalloc(&st.conc[s], n * sizeof(double)));
        CUDA_OK(cudaMemcpy(st.conc[s], conc[s].data(), n * sizeof(double), cudaMemcpyHostToDevice));
    }
    CUDA_OK(cudaMalloc(&st.temperature, n * sizeof(double)));
    CUDA_OK(cudaMemcpy(st.temperature, temperature.data(), n * sizeof(double), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMalloc(&st.rates, N_REACTIONS * n * sizeof(double)));

    Mechanism mech;
    dim3 block(32, 4);
    dim3 blocks((grid.nx + 31) / 32, (grid.ny + 3) / 4, grid.nz);
    dim3 surface(blocks.x, blocks.y);
    for (size_t s = 0; s < dt.size(); ++s) {
        computeRates<<<blocks, block>>>(grid, mech, st, sun[s]);
        addEmissions<<<surface, block>>>(grid, st, dt[s]);
        advance<<<blocks, block>>>(grid, st, dt[s]);
    }
    CUDA_OK(cudaGetLastError());

    for (int s = 0; s < N_SPECIES; ++s) {
        CUDA_OK(cudaMemcpy(conc[s].data(), st.conc[s], n * sizeof(double), cudaMemcpyDeviceToHost));
        double sum = 0.0, top = 0.0;
        for (double v : conc[s]) { sum += v; top = v > top ? v : top; }
        printf("%-4s mean %.6g max %.6g\n", names[s], sum / n, top);
    }
    printf("O3 at (10,20,0) %.6g, NO2 at (50,40,12) %.6g\n",
           conc[O3][grid.index(10, 20, 0)], conc[NO2][grid.index(50, 40, 12)]);

    for (int s = 0; s < N_SPECIES; ++s) CUDA_OK(cudaFree(st.conc[s]));
    CUDA_OK(cudaFree(st.temperature));
    CUDA_OK(cudaFree(st.rates));
    return 0;
}
