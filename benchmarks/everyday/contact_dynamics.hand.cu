// Contact analysis of a molecular dynamics trajectory of a protein: for every residue pair, how often it is
// in van der Waals contact and how often the contact forms or breaks; for every frame, the number of
// contacts and the number of contacts of the first frame that are still present.  Hand-tuned version.
//
// The lanes of a warp are 32 consecutive frames of ONE residue pair: the trajectory is transposed so that
// frames are contiguous, all control flow is warp-uniform, and a ballot gives 32 frames' contact bits at once.
// Bounding spheres of the residues reject most pairs, and most atoms of the remaining ones.  A second pass
// gets all statistics from the bit words by population counts.
// Device memory: about 75 MB.  Estimated kernel time on an H200: about 0.12 ms in total (4 launches).
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
    std::exit(1);
}

constexpr int kElements = 4;  // C, N, O, S
struct Atom {
    float x, y, z;
};

constexpr unsigned kFull = 0xffffffffu;
constexpr int kFrames = 600;
constexpr int kWords = (kFrames + 31) / 32;
constexpr int kPadded = kWords * 32;  // frames, padded with copies of the last one
constexpr int kMaxAtoms = 16;         // atoms per residue
constexpr float kMargin = 2e-3f;      // makes the sphere tests safe against rounding

struct Topology {
    int residues;
    int atoms;
    const int* firstAtom;  // residues + 1 entries
    const float* radius;   // per atom
};

// rows = frames, columns = 3 * atoms  ->  rows = 3 * atoms, columns = padded frames
__global__ void __launch_bounds__(256) transposeTrajectory(const float* __restrict__ in, int columns,
                                                           float* __restrict__ out) {
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x;
    int frame0 = blockIdx.y * 32;
#pragma unroll
    for (int k = threadIdx.y; k < 32; k += 8)
        if (column < columns) tile[k][threadIdx.x] = in[(size_t)min(frame0 + k, kFrames - 1) * columns + column];
    __syncthreads();
#pragma unroll
    for (int k = threadIdx.y; k < 32; k += 8) {
        int row = blockIdx.x * 32 + k;
        if (row < columns) out[(size_t)row * kPadded + frame0 + threadIdx.x] = tile[threadIdx.x][k];
    }
}

// Sphere around the van der Waals surface of every residue in every frame.
__global__ void __launch_bounds__(128) boundingSpheres(const float* __restrict__ coords, Topology top,
                                                       float4* __restrict__ spheres) {
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y;
    if (f >= kPadded) return;
    int first = top.firstAtom[r], last = top.firstAtom[r + 1];
    float sx = 0.0f, sy = 0.0f, sz = 0.0f;
    for (int a = first; a < last; a++) {
        const float* p = coords + (size_t)a * 3 * kPadded + f;
        sx += p[0];
        sy += p[kPadded];
        sz += p[2 * kPadded];
    }
    float inv = 1.0f / (last - first);
    sx *= inv;
    sy *= inv;
    sz *= inv;
    float reach = 0.0f;
    for (int a = first; a < last; a++) {
        const float* p = coords + (size_t)a * 3 * kPadded + f;
        float dx = p[0] - sx, dy = p[kPadded] - sy, dz = p[2 * kPadded] - sz;
        reach = fmaxf(reach, sqrtf(dx * dx + dy * dy + dz * dz) + top.radius[a]);
    }
    spheres[(size_t)r * kPadded + f] = make_float4(sx, sy, sz, reach);
}

// Bit k of the result: atom first + k comes near the sphere in some frame of this warp.
__device__ __forceinline__ unsigned nearbyAtoms(const float* __restrict__ coords, const float* __restrict__ radius,
                                                int first, int count, float4 sphere, float tolerance) {
    unsigned mask = 0;
#pragma unroll 4
    for (int k = 0; k < count; k++) {
        const float* p = coords + (size_t)(first + k) * 3 * kPadded;
        float dx = p[0] - sphere.x, dy = p[kPadded] - sphere.y, dz = p[2 * kPadded] - sphere.z;
        float reach = sphere.w + __ldg(radius + first + k) + tolerance + kMargin;
        if (__any_sync(kFull, dx * dx + dy * dy + dz * dz < reach * reach)) mask |= 1u << k;
    }
    return mask;
}

// One warp: residue i, 32 residues j, 32 frames.  bits[(i * kWords + word) * residues + j]
__global__ void __launch_bounds__(256) contactBits(const float* __restrict__ coords,
                                                   const float4* __restrict__ spheres, Topology top,
                                                   int minSeparation, float tolerance, unsigned* __restrict__ bits) {
    int lane = threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int word = blockIdx.z;
    int jBegin = blockIdx.x * 32;
    int jEnd = min(jBegin + 32, top.residues);
    if (i >= top.residues || jEnd <= i + minSeparation) return;

    int f = word * 32 + lane;
    float4 si = spheres[(size_t)i * kPadded + f];
    int firstI = top.firstAtom[i], countI = top.firstAtom[i + 1] - firstI;
    const float* frameCoords = coords + f;

    // First all sphere tests (independent loads), then only the candidates.
    unsigned candidates = 0;
#pragma unroll 8
    for (int k = 0; k < 32; k++) {
        float4 sj = spheres[(size_t)min(jBegin + k, top.residues - 1) * kPadded + f];
        float dx = si.x - sj.x, dy = si.y - sj.y, dz = si.z - sj.z;
        float reach = si.w + sj.w + tolerance + kMargin;
        if (__any_sync(kFull, dx * dx + dy * dy + dz * dz < reach * reach)) candidates |= 1u << k;
    }
    int jFirst = max(jBegin, i + minSeparation);
    candidates &= kFull << (jFirst - jBegin);
    if (jEnd - jBegin < 32) candidates &= (1u << (jEnd - jBegin)) - 1u;

    unsigned mine = 0;  // lane k keeps the word of residue jBegin + k
    while (candidates) {
        int k = __ffs(candidates) - 1;
        candidates &= candidates - 1;
        int j = jBegin + k;
        int firstJ = top.firstAtom[j], countJ = top.firstAtom[j + 1] - firstJ;
        float4 sj = spheres[(size_t)j * kPadded + f];
        unsigned nearI = nearbyAtoms(frameCoords, top.radius, firstI, countI, sj, tolerance);
        if (!nearI) continue;
        unsigned nearJ = nearbyAtoms(frameCoords, top.radius, firstJ, countJ, si, tolerance);
        bool contact = false;
        for (; nearI; nearI &= nearI - 1) {
            int a = firstI + __ffs(nearI) - 1;
            const float* p = frameCoords + (size_t)a * 3 * kPadded;
            float ax = p[0], ay = p[kPadded], az = p[2 * kPadded];
            float ra = __ldg(top.radius + a) + tolerance;
            for (unsigned rest = nearJ; rest; rest &= rest - 1) {
                int b = firstJ + __ffs(rest) - 1;
                const float* q = frameCoords + (size_t)b * 3 * kPadded;
                float dx = ax - q[0], dy = ay - q[kPadded], dz = az - q[2 * kPadded];
                float reach = ra + __ldg(top.radius + b);
                contact |= dx * dx + dy * dy + dz * dz < reach * reach;
            }
            if (__all_sync(kFull, contact)) break;
        }
        unsigned w = __ballot_sync(kFull, contact);
        if (lane == k) mine = w;
    }
    if (jBegin + lane < jEnd) bits[((size_t)i * kWords + word) * top.residues + jBegin + lane] = mine;
}

__global__ void __launch_bounds__(256) statistics(const unsigned* __restrict__ bits, int residues, int minSeparation,
                                                  int* __restrict__ occupancy, int* __restrict__ transitions,
                                                  int* __restrict__ contactsInFrame, int* __restrict__ nativeInFrame) {
    __shared__ int histogram[2][kPadded];
    int lane = threadIdx.x, tid = threadIdx.y * 32 + lane;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * 32 + lane;
    for (int k = tid; k < kPadded; k += 256) histogram[0][k] = histogram[1][k] = 0;

    unsigned x[kWords];
    unsigned any = 0, carry = 0;
    int occupied = 0, changes = 0;
    bool inside = i < residues && j < residues;
    bool active = inside && j >= i + minSeparation;
#pragma unroll
    for (int w = 0; w < kWords; w++) {
        unsigned valid = (w == kWords - 1 && kFrames % 32) ? (1u << (kFrames % 32)) - 1u : kFull;
        x[w] = active ? bits[((size_t)i * kWords + w) * residues + j] & valid : 0u;
        occupied += __popc(x[w]);
        unsigned flips = (x[w] ^ ((x[w] << 1) | carry)) & valid;
        if (w == 0) flips &= ~1u;
        changes += __popc(flips);
        carry = x[w] >> 31;
        any |= x[w];
    }
    if (inside) {
        occupancy[(size_t)i * residues + j] = occupied;
        transitions[(size_t)i * residues + j] = changes;
    }
    __syncthreads();

    // Sums over pairs for each frame: lanes become frames, pairs with contacts are taken one by one.
    unsigned pairs = __ballot_sync(kFull, any != 0);
    unsigned reference = __ballot_sync(kFull, x[0] & 1u);
    if (pairs) {
        int count[kWords], native[kWords];
#pragma unroll
        for (int w = 0; w < kWords; w++) count[w] = native[w] = 0;
        for (; pairs; pairs &= pairs - 1) {
            int k = __ffs(pairs) - 1;
            int isNative = (reference >> k) & 1u;
#pragma unroll
            for (int w = 0; w < kWords; w++) {
                int bit = (__shfl_sync(kFull, x[w], k) >> lane) & 1u;
                count[w] += bit;
                native[w] += bit & isNative;
            }
        }
#pragma unroll
        for (int w = 0; w < kWords; w++) {
            if (count[w]) atomicAdd(&histogram[0][w * 32 + lane], count[w]);
            if (native[w]) atomicAdd(&histogram[1][w * 32 + lane], native[w]);
        }
    }
    __syncthreads();
    for (int k = tid; k < kFrames; k += 256) {
        if (histogram[0][k]) atomicAdd(contactsInFrame + k, histogram[0][k]);
        if (histogram[1][k]) atomicAdd(nativeInFrame + k, histogram[1][k]);
    }
}

static uint64_t g_state = 88172645463325252ull;
static float rnd() {  // uniform in [0, 1)
    g_state ^= g_state << 13;
    g_state ^= g_state >> 7;
    g_state ^= g_state << 17;
    return (g_state >> 40) * (1.0f / 16777216.0f);
}

int main() {
    const int residues = 420, frames = kFrames, minSeparation = 3;
    const float tolerance = 0.6f;
    const float radii[kElements] = {1.70f, 1.55f, 1.52f, 1.80f};

    // A chain folded into a ball: residue centers, atoms around them, slow sway plus thermal noise.
    std::vector<int> firstAtom(residues + 1, 0);
    for (int r = 0; r < residues; r++) firstAtom[r + 1] = firstAtom[r] + 4 + (int)(rnd() * 11.0f);
    const int atoms = firstAtom[residues];
    std::vector<int> element(atoms);
    std::vector<Atom> offset(atoms), center(residues), sway(residues);
    Atom p{0.0f, 0.0f, 0.0f};
    for (int r = 0; r < residues; r++) {
        for (int attempt = 0;; attempt++) {
            float u = 2.0f * rnd() - 1.0f, phi = 6.2831853f * rnd(), s = std::sqrt(1.0f - u * u);
            Atom q{p.x + 3.8f * s * std::cos(phi), p.y + 3.8f * s * std::sin(phi), p.z + 3.8f * u};
            bool clash = q.x * q.x + q.y * q.y + q.z * q.z > 26.0f * 26.0f;
            for (int o = 0; o < r && !clash && attempt < 50; o++) {
                float dx = q.x - center[o].x, dy = q.y - center[o].y, dz = q.z - center[o].z;
                clash = dx * dx + dy * dy + dz * dz < 4.5f * 4.5f && o < r - 1;
            }
            if (clash) continue;
            p = center[r] = q;
            break;
        }
        sway[r] = Atom{4.0f * rnd() - 2.0f, 4.0f * rnd() - 2.0f, 4.0f * rnd() - 2.0f};
    }
    for (int a = 0; a < atoms; a++) {
        element[a] = rnd() < 0.62f ? 0 : 1 + (int)(rnd() * 3.0f);
        offset[a] = Atom{5.0f * rnd() - 2.5f, 5.0f * rnd() - 2.5f, 5.0f * rnd() - 2.5f};
    }
    std::vector<Atom> trajectory((size_t)frames * atoms);
    for (int f = 0; f < frames; f++)
        for (int r = 0; r < residues; r++) {
            float w = std::sin(0.021f * f * (1.0f + 0.01f * (r % 37)) + 0.3f * r);
            for (int a = firstAtom[r]; a < firstAtom[r + 1]; a++)
                trajectory[(size_t)f * atoms + a] = Atom{center[r].x + offset[a].x + w * sway[r].x + 0.4f * rnd(),
                                                         center[r].y + offset[a].y + w * sway[r].y + 0.4f * rnd(),
                                                         center[r].z + offset[a].z + w * sway[r].z + 0.4f * rnd()};
        }

    std::vector<float> atomRadius(atoms);
    for (int a = 0; a < atoms; a++) atomRadius[a] = radii[element[a]];
    for (int r = 0; r < residues; r++)
        if (firstAtom[r + 1] - firstAtom[r] > kMaxAtoms) return 1;

    const size_t pairs = (size_t)residues * residues;
    const int columns = 3 * atoms;
    float *dTrajectory, *dCoords, *dRadius;
    float4* dSpheres;
    int *dFirst, *dOccupancy, *dTransitions, *dContacts, *dNative;
    unsigned* dBits;
    check(cudaMalloc(&dTrajectory, trajectory.size() * sizeof(Atom)), "malloc");
    check(cudaMalloc(&dCoords, (size_t)columns * kPadded * sizeof(float)), "malloc");
    check(cudaMalloc(&dSpheres, (size_t)residues * kPadded * sizeof(float4)), "malloc");
    check(cudaMalloc(&dBits, pairs * kWords * sizeof(unsigned)), "malloc");
    check(cudaMalloc(&dFirst, firstAtom.size() * sizeof(int)), "malloc");
    check(cudaMalloc(&dRadius, atomRadius.size() * sizeof(float)), "malloc");
    check(cudaMalloc(&dOccupancy, pairs * sizeof(int)), "malloc");
    check(cudaMalloc(&dTransitions, pairs * sizeof(int)), "malloc");
    check(cudaMalloc(&dContacts, frames * sizeof(int)), "malloc");
    check(cudaMalloc(&dNative, frames * sizeof(int)), "malloc");
    check(cudaMemcpy(dTrajectory, trajectory.data(), trajectory.size() * sizeof(Atom), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(dFirst, firstAtom.data(), firstAtom.size() * sizeof(int), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(dRadius, atomRadius.data(), atomRadius.size() * sizeof(float), cudaMemcpyHostToDevice), "copy");
    check(cudaMemset(dContacts, 0, frames * sizeof(int)), "memset");
    check(cudaMemset(dNative, 0, frames * sizeof(int)), "memset");

    Topology top{residues, atoms, dFirst, dRadius};
    dim3 warps(32, 8);
    const int tiles = (residues + 31) / 32, rowGroups = (residues + 7) / 8;
    transposeTrajectory<<<dim3((columns + 31) / 32, kWords), warps>>>(dTrajectory, columns, dCoords);
    boundingSpheres<<<dim3((kPadded + 127) / 128, residues), 128>>>(dCoords, top, dSpheres);
    contactBits<<<dim3(tiles, rowGroups, kWords), warps>>>(dCoords, dSpheres, top, minSeparation, tolerance, dBits);
    statistics<<<dim3(tiles, rowGroups), warps>>>(dBits, residues, minSeparation, dOccupancy, dTransitions, dContacts,
                                                  dNative);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "sync");

    std::vector<int> occupancy(pairs), transitions(pairs), contacts(frames), native(frames);
    check(cudaMemcpy(occupancy.data(), dOccupancy, pairs * sizeof(int), cudaMemcpyDeviceToHost), "copy");
    check(cudaMemcpy(transitions.data(), dTransitions, pairs * sizeof(int), cudaMemcpyDeviceToHost), "copy");
    check(cudaMemcpy(contacts.data(), dContacts, frames * sizeof(int), cudaMemcpyDeviceToHost), "copy");
    check(cudaMemcpy(native.data(), dNative, frames * sizeof(int), cudaMemcpyDeviceToHost), "copy");
    double occupied = 0.0, weighted = 0.0, changes = 0.0, persistent = 0.0, nativeSum = 0.0;
    for (size_t k = 0; k < pairs; k++) {
        occupied += occupancy[k];
        weighted += (double)occupancy[k] * (k / residues + 2 * (k % residues));
        changes += transitions[k];
        persistent += occupancy[k] > frames / 2;
    }
    for (int f = 0; f < frames; f++) nativeSum += (double)native[f] / contacts[0];
    std::printf("contacts per frame     %.6g\n", occupied / frames);
    std::printf("weighted occupancy     %.6g\n", weighted / frames);
    std::printf("transitions            %.6g\n", changes);
    std::printf("persistent pairs       %.6g\n", persistent);
    std::printf("contacts, last frame   %d\n", contacts[frames - 1]);
    std::printf("native fraction, mean  %.6g\n", nativeSum / frames);
    for (void* ptr : {(void*)dTrajectory, (void*)dCoords, (void*)dSpheres, (void*)dBits, (void*)dFirst, (void*)dRadius,
                      (void*)dOccupancy, (void*)dTransitions, (void*)dContacts, (void*)dNative})
        check(cudaFree(ptr), "free");
    return 0;
}
