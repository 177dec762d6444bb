// Contact analysis of a molecular dynamics trajectory of a protein: for every residue pair, how often it is
// in van der Waals contact and how often the contact forms or breaks; for every frame, the number of
// contacts and the number of contacts of the first frame that are still present.
// Device memory: about 29 MB.  Estimated kernel time on an H200: about 7 ms in total (600 launches).
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
__constant__ float c_vdwRadius[kElements];

struct Atom {
    float x, y, z;
};

struct Topology {
    int residues;
    int atoms;
    const int* firstAtom;  // residues + 1 entries
    const int* element;    // per atom
};

class ContactCriterion {
public:
    explicit ContactCriterion(float tolerance) : tolerance_(tolerance) {}

    __device__ bool operator()(const Atom& a, int elementA, const Atom& b, int elementB) const {
        float dx = a.x - b.x;
        float dy = a.y - b.y;
        float dz = a.z - b.z;
        float distance = sqrtf(dx * dx + dy * dy + dz * dz);
        return distance - c_vdwRadius[elementA] - c_vdwRadius[elementB] < tolerance_;
    }

private:
    float tolerance_;
};

struct PairStatistics {
    int* occupancy;            // residues x residues
    int* transitions;          // residues x residues
    unsigned char* previous;   // contact state in the previous frame
    unsigned char* reference;  // contact state in frame 0
    int* contactsInFrame;
    int* nativeInFrame;
};

__device__ bool residuesTouch(const Atom* frame, const Topology& top, int i, int j, ContactCriterion touches) {
    for (int a = top.firstAtom[i]; a < top.firstAtom[i + 1]; a++)
        for (int b = top.firstAtom[j]; b < top.firstAtom[j + 1]; b++)
            if (touches(frame[a], top.element[a], frame[b], top.element[b])) return true;
    return false;
}

__global__ void analyzeFrame(const Atom* trajectory, int frameIndex, Topology top, int minSeparation,
                             ContactCriterion touches, PairStatistics stats) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= top.residues || j >= top.residues) return;
    if (j < i + minSeparation) return;

    const Atom* frame = trajectory + (size_t)frameIndex * top.atoms;
    bool contact = residuesTouch(frame, top, i, j, touches);

    size_t pair = (size_t)i * top.residues + j;
    if (frameIndex == 0) {
        stats.reference[pair] = contact;
    } else if (contact != (bool)stats.previous[pair]) {
        stats.transitions[pair]++;
    }
    stats.previous[pair] = contact;
    if (contact) {
        stats.occupancy[pair]++;
        atomicAdd(&stats.contactsInFrame[frameIndex], 1);
        if (stats.reference[pair]) atomicAdd(&stats.nativeInFrame[frameIndex], 1);
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
    const int residues = 420, frames = 600, minSeparation = 3;
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

    const size_t pairs = (size_t)residues * residues;
    Atom* dTrajectory;
    int *dFirst, *dElement;
    PairStatistics stats;
    check(cudaMalloc(&dTrajectory, trajectory.size() * sizeof(Atom)), "malloc");
    check(cudaMalloc(&dFirst, firstAtom.size() * sizeof(int)), "malloc");
    check(cudaMalloc(&dElement, element.size() * sizeof(int)), "malloc");
    check(cudaMalloc(&stats.occupancy, pairs * sizeof(int)), "malloc");
    check(cudaMalloc(&stats.transitions, pairs * sizeof(int)), "malloc");
    check(cudaMalloc(&stats.previous, pairs), "malloc");
    check(cudaMalloc(&stats.reference, pairs), "malloc");
    check(cudaMalloc(&stats.contactsInFrame, frames * sizeof(int)), "malloc");
    check(cudaMalloc(&stats.nativeInFrame, frames * sizeof(int)), "malloc");
    check(cudaMemcpy(dTrajectory, trajectory.data(), trajectory.size() * sizeof(Atom), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(dFirst, firstAtom.data(), firstAtom.size() * sizeof(int), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(dElement, element.data(), element.size() * sizeof(int), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpyToSymbol(c_vdwRadius, radii, sizeof(radii)), "symbol");
    check(cudaMemset(stats.occupancy, 0, pairs * sizeof(int)), "memset");
    check(cudaMemset(stats.transitions, 0, pairs * sizeof(int)), "memset");
    check(cudaMemset(stats.contactsInFrame, 0, frames * sizeof(int)), "memset");
    check(cudaMemset(stats.nativeInFrame, 0, frames * sizeof(int)), "memset");

    Topology top{residues, atoms, dFirst, dElement};
    ContactCriterion criterion(0.6f);
    dim3 block(16, 16);
    dim3 grid((residues + 15) / 16, (residues + 15) / 16);
    for (int f = 0; f < frames; f++)
        analyzeFrame<<<grid, block>>>(dTrajectory, f, top, minSeparation, criterion, stats);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "sync");

    std::vector<int> occupancy(pairs), transitions(pairs), contacts(frames), native(frames);
    check(cudaMemcpy(occupancy.data(), stats.occupancy, pairs * sizeof(int), cudaMemcpyDeviceToHost), "copy");
    check(cudaMemcpy(transitions.data(), stats.transitions, pairs * sizeof(int), cudaMemcpyDeviceToHost), "copy");
    check(cudaMemcpy(contacts.data(), stats.contactsInFrame, frames * sizeof(int), cudaMemcpyDeviceToHost), "copy");
    check(cudaMemcpy(native.data(), stats.nativeInFrame, frames * sizeof(int), cudaMemcpyDeviceToHost), "copy");
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
    for (void* ptr : {(void*)dTrajectory, (void*)dFirst, (void*)dElement, (void*)stats.occupancy,
                      (void*)stats.transitions, (void*)stats.previous, (void*)stats.reference,
                      (void*)stats.contactsInFrame, (void*)stats.nativeInFrame})
        check(cudaFree(ptr), "free");
    return 0;
}
