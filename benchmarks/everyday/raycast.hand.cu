// Ray casting of spheres over a checkered floor, one sun, hard shadows, 2x2 supersampling.
#include <cstdio>
#include <cmath>
#include <vector>

struct Vec3 {
    float x, y, z;
    __host__ __device__ Vec3() {}
    __host__ __device__ Vec3(float a, float b, float c) : x(a), y(b), z(c) {}
    __host__ __device__ Vec3 operator+(const Vec3 &o) const { return Vec3(x + o.x, y + o.y, z + o.z); }
    __host__ __device__ Vec3 operator-(const Vec3 &o) const { return Vec3(x - o.x, y - o.y, z - o.z); }
    __host__ __device__ Vec3 operator*(float s) const { return Vec3(x * s, y * s, z * s); }
    __host__ __device__ Vec3 operator*(const Vec3 &o) const { return Vec3(x * o.x, y * o.y, z * o.z); }
};

__host__ __device__ inline float dot(const Vec3 &a, const Vec3 &b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__host__ __device__ inline float length(const Vec3 &a) { return sqrt(dot(a, a)); }
__host__ __device__ inline Vec3 normalize(const Vec3 &a) { return a * (1.0 / length(a)); }

class Sphere {
public:
    Vec3 center;
    float radius;
    Vec3 color;

};

const int WIDTH = 1920;
const int HEIGHT = 1080;
const int SAMPLES = 2;         // per axis
const int NUM_SPHERES = 48;
const float FLOOR_Y = -1.0371f;

// A block renders 16 x 16 pixels. It first keeps the spheres that its cone of primary rays can touch.
// For shadows the spheres are projected on the plane across the sun: a point is in shadow if it falls
// into a sphere's disc and not beyond it.
const int TILE = 16;
const int THREADS = TILE * TILE;
static_assert(NUM_SPHERES <= THREADS && WIDTH % TILE == 0, "tiling");

struct Frame { Vec3 sun, e1, e2; };
#define ORIGIN_Y 0.5f

__device__ __forceinline__ float dot3(float ax, float ay, float az, const Vec3 &b)
{
    return ax * b.x + ay * b.y + az * b.z;
}

__device__ __forceinline__ Vec3 primaryDir(float px, float py)
{
    float u = px * (2.0f / WIDTH) - 1.0f;
    float v = 1.0f - py * (2.0f / HEIGHT);
    Vec3 d(u * (1.2f * WIDTH / HEIGHT), v * 1.2f, -1.5f);
    return d * rsqrtf(dot(d, d));
}

__global__ void __launch_bounds__(THREADS)
render(const Sphere *__restrict__ spheres, unsigned char *__restrict__ image, Frame frame)
{
    __shared__ float4 sShadow[NUM_SPHERES];      // u, v, w in the sun's frame, r^2
    __shared__ float4 sList[NUM_SPHERES];        // origin - center, |origin - center|^2 - r^2
    __shared__ int sIndex[NUM_SPHERES];
    __shared__ int sCount;
    __shared__ unsigned sRow[TILE * TILE * 3 / 4];

    const int tid = threadIdx.x;
    const int x0 = blockIdx.x * TILE, y0 = blockIdx.y * TILE;
    if (tid == 0) sCount = 0;
    __syncthreads();
    if (tid < NUM_SPHERES) {
        const Sphere s = spheres[tid];
        const float r2 = s.radius * s.radius;
        sShadow[tid] = make_float4(dot(s.center, frame.e1), dot(s.center, frame.e2), dot(s.center, frame.sun), r2);

        const Vec3 axis = primaryDir(x0 + 0.5f * TILE, y0 + 0.5f * TILE);
        float cosTile = dot(axis, primaryDir(x0, y0));
        cosTile = fminf(cosTile, dot(axis, primaryDir(x0 + TILE, y0)));
        cosTile = fminf(cosTile, dot(axis, primaryDir(x0, y0 + TILE)));
        cosTile = fminf(cosTile, dot(axis, primaryDir(x0 + TILE, y0 + TILE)));
        const Vec3 co = s.center - Vec3(0, ORIGIN_Y, 0);
        const float d2 = dot(co, co);
        bool touch = true;
        if (d2 > r2) {
            const float invD = rsqrtf(d2);
            const float toAxis = acosf(fminf(fmaxf(dot(axis, co) * invD, -1.0f), 1.0f));
            touch = toAxis <= acosf(fminf(cosTile, 1.0f)) + asinf(fminf(s.radius * invD, 1.0f)) + 2e-3f;
        }
        if (touch) {
            const int slot = atomicAdd(&sCount, 1);
            sList[slot] = make_float4(-co.x, -co.y, -co.z, d2 - r2);
            sIndex[slot] = tid;
        }
    }
    __syncthreads();

    const int count = sCount;
    const int lx = tid % TILE, ly = tid / TILE;
    const int x = x0 + lx, y = y0 + ly;
    float sr = 0.0f, sg = 0.0f, sbl = 0.0f;
    if (y < HEIGHT) {
#pragma unroll 1
        for (int sample = 0; sample < SAMPLES * SAMPLES; sample++) {
            const float px = x + (sample % SAMPLES + 0.5f) / SAMPLES;
            const float py = y + (sample / SAMPLES + 0.5f) / SAMPLES;
            const Vec3 dir = primaryDir(px, py);

            float t = 1e20f;
            int hit = -1;
            for (int i = 0; i < count; i++) {
                const float4 s = sList[i];
                const float b = dot3(s.x, s.y, s.z, dir);
                const float disc = b * b - s.w;
                if (disc >= 0.0f) {
                    const float root = sqrtf(disc);
                    float ti = -b - root;
                    if (ti <= 0.001f) ti = -b + root;
                    if (ti > 0.001f && ti < t) {
                        t = ti;
                        hit = i;
                    }
                }
            }
            bool floorHit = false;
            if (dir.y < 0.0f) {
                const float tf = (FLOOR_Y - ORIGIN_Y) / dir.y;
                if (tf < t) {
                    t = tf;
                    floorHit = true;
                }
            }
            if (hit < 0 && !floorHit) {
                const float k = 0.5f * (dir.y + 1.0f);
                sr += 1.0f - 0.6f * k;
                sg += 1.0f - 0.4f * k;
                sbl += 1.0f;
                continue;
            }
            const Vec3 p(dir.x * t, ORIGIN_Y + dir.y * t, dir.z * t);
            Vec3 normal(0, 1, 0), color;
            if (floorHit) {
                const int check = (int)floorf(p.x) + (int)floorf(p.z);
                const float c = (check & 1) ? 0.8f : 0.25f;
                const float fog = __expf(-0.03f * t);
                color = Vec3(0.7f + (c - 0.7f) * fog, 0.75f + (c - 0.75f) * fog, 0.8f + (c - 0.8f) * fog);
            } else {
                const Sphere &s = spheres[sIndex[hit]];
                const Vec3 n = p - s.center;
                normal = n * rsqrtf(dot(n, n));
                color = s.color;
            }
            float diffuse = fmaxf(dot(normal, frame.sun), 0.0f);
            if (diffuse > 0.0f) {
                const Vec3 o = p + normal * 0.002f;
                const float ou = dot(o, frame.e1), ov = dot(o, frame.e2), ow = dot(o, frame.sun);
                for (int i = 0; i < NUM_SPHERES; i++) {
                    const float4 s = sShadow[i];
                    const float du = ou - s.x, dv = ov - s.y;
                    const float disc = s.w - du * du - dv * dv;
                    if (disc >= 0.0f && s.z - ow + sqrtf(disc) > 0.001f) {
                        diffuse = 0.0f;
                        break;
                    }
                }
            }
            const float light = 0.2f + 0.8f * diffuse;
            sr += color.x * light;
            sg += color.y * light;
            sbl += color.z * light;
        }
    }
    const float inv = 1.0f / (SAMPLES * SAMPLES);
    unsigned char *px = (unsigned char *)sRow + tid * 3;
    px[0] = (unsigned char)(255.0f * fminf(sqrtf(sr * inv), 1.0f) + 0.5f);
    px[1] = (unsigned char)(255.0f * fminf(sqrtf(sg * inv), 1.0f) + 0.5f);
    px[2] = (unsigned char)(255.0f * fminf(sqrtf(sbl * inv), 1.0f) + 0.5f);
    __syncthreads();

    // 16 rows of 48 bytes, written as words
    const int wordsPerRow = TILE * 3 / 4;
    if (tid < TILE * wordsPerRow) {
        const int r = tid / wordsPerRow, c = tid % wordsPerRow;
        if (y0 + r < HEIGHT)
            *(unsigned *)(image + ((size_t)(y0 + r) * WIDTH + x0) * 3 + c * 4) = sRow[tid];
    }
}

unsigned int seed = 11;
float frand()
{
    seed = seed * 214013u + 2531011u;
    return ((seed >> 16) & 0x7fff) / 32768.0f;
}

int main()
{
    std::vector<Sphere> spheres(NUM_SPHERES);
    for (auto &s : spheres) {
        s.radius = 0.2f + 0.5f * frand();
        float depth = 3.0f + 12.0f * frand();
        s.center = Vec3((frand() - 0.5f) * 1.6f * depth, FLOOR_Y + s.radius + 2.0f * frand() * frand(), -depth);
        s.color = Vec3(0.2f + 0.8f * frand(), 0.2f + 0.8f * frand(), 0.2f + 0.8f * frand());
    }
    Vec3 sun = normalize(Vec3(0.5f, 0.8f, 0.4f));

    Sphere *dSpheres;
    unsigned char *dImage;
    size_t bytes = (size_t)WIDTH * HEIGHT * 3;
    cudaMalloc(&dSpheres, NUM_SPHERES * sizeof(Sphere));
    cudaMalloc(&dImage, bytes);
    cudaMemcpy(dSpheres, spheres.data(), NUM_SPHERES * sizeof(Sphere), cudaMemcpyHostToDevice);

    Frame frame;
    frame.sun = sun;
    frame.e1 = normalize(Vec3(sun.y, -sun.x, 0.0f));
    frame.e2 = Vec3(sun.y * frame.e1.z - sun.z * frame.e1.y, sun.z * frame.e1.x - sun.x * frame.e1.z,
                    sun.x * frame.e1.y - sun.y * frame.e1.x);
    dim3 grid(WIDTH / TILE, (HEIGHT + TILE - 1) / TILE);
    render<<<grid, THREADS>>>(dSpheres, dImage, frame);

    std::vector<unsigned char> image(bytes);
    cudaError_t err = cudaMemcpy(image.data(), dImage, bytes, cudaMemcpyDeviceToHost);
    if (err != cudaSuccess) {
        printf("CUDA error %s\n", cudaGetErrorString(err));
        return 1;
    }
    double sum[3] = {0, 0, 0}, weighted = 0;
    for (size_t i = 0; i < bytes; i++) sum[i % 3] += image[i];
    for (size_t i = 0; i < bytes; i++) weighted += (double)image[i] * (1 + (i / 3) % 1000);
    printf("red %.3e green %.3e blue %.3e\n", sum[0], sum[1], sum[2]);
    printf("weighted %.3e\n", weighted);

    cudaFree(dSpheres);
    cudaFree(dImage);
    return 0;
}
