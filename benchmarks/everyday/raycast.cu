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

struct Ray { Vec3 origin, dir; };

class Sphere {
public:
    Vec3 center;
    float radius;
    Vec3 color;

    __device__ bool intersect(const Ray &ray, float &t) const
    {
        Vec3 oc = ray.origin - center;
        float a = dot(ray.dir, ray.dir);
        float b = 2.0 * dot(oc, ray.dir);
        float c = dot(oc, oc) - radius * radius;
        float disc = b * b - 4.0 * a * c;
        if (disc < 0) return false;
        float root = sqrt(disc);
        t = (-b - root) / (2.0 * a);
        if (t > 0.001) return true;
        t = (-b + root) / (2.0 * a);
        return t > 0.001;
    }
};

const int WIDTH = 1920;
const int HEIGHT = 1080;
const int SAMPLES = 2;         // per axis
const int NUM_SPHERES = 48;
const float FLOOR_Y = -1.0371f;

__device__ int closestSphere(const Sphere *spheres, int n, const Ray &ray, float &tBest)
{
    int hit = -1;
    for (int i = 0; i < n; i++) {
        float t;
        if (spheres[i].intersect(ray, t) && t < tBest) {
            tBest = t;
            hit = i;
        }
    }
    return hit;
}

__device__ Vec3 trace(const Sphere *spheres, int n, const Ray &ray, Vec3 sun)
{
    float t = 1e20f;
    int hit = closestSphere(spheres, n, ray, t);
    Vec3 color, normal;
    if (ray.dir.y < 0) {
        float tFloor = (FLOOR_Y - ray.origin.y) / ray.dir.y;
        if (tFloor < t) {
            t = tFloor;
            hit = n;               // the floor
        }
    }
    if (hit < 0) {
        float k = 0.5 * (ray.dir.y + 1.0);
        return Vec3(1.0f, 1.0f, 1.0f) * (1.0f - k) + Vec3(0.4f, 0.6f, 1.0f) * k;
    }

    Vec3 p = ray.origin + ray.dir * t;
    if (hit == n) {
        normal = Vec3(0, 1, 0);
        int check = (int)floor(p.x) + (int)floor(p.z);
        color = (check & 1) ? Vec3(0.8f, 0.8f, 0.8f) : Vec3(0.25f, 0.25f, 0.25f);
        float fog = exp(-0.03 * t);
        color = color * fog + Vec3(0.7f, 0.75f, 0.8f) * (1.0f - fog);
    } else {
        normal = normalize(p - spheres[hit].center);
        color = spheres[hit].color;
    }

    Ray shadow;
    shadow.origin = p + normal * 0.002f;
    shadow.dir = sun;
    float ts = 1e20f;
    bool lit = closestSphere(spheres, n, shadow, ts) < 0;
    float diffuse = lit ? fmaxf(dot(normal, sun), 0.0f) : 0.0f;
    return color * (0.2f + 0.8f * diffuse);
}

__global__ void render(const Sphere *spheres, int n, unsigned char *image, int width, int height, Vec3 sun)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;

    Vec3 sum(0, 0, 0);
    for (int sy = 0; sy < SAMPLES; sy++)
        for (int sx = 0; sx < SAMPLES; sx++) {
            float u = (x + (sx + 0.5) / SAMPLES) / width * 2.0 - 1.0;
            float v = 1.0 - (y + (sy + 0.5) / SAMPLES) / height * 2.0;
            Ray ray;
            ray.origin = Vec3(0, 0.5f, 0);
            ray.dir = normalize(Vec3(u * 1.2f * width / height, v * 1.2f, -1.5f));
            sum = sum + trace(spheres, n, ray, sun);
        }
    sum = sum * (1.0f / (SAMPLES * SAMPLES));
    int o = (y * width + x) * 3;
    image[o + 0] = (unsigned char)(255.0f * fminf(sqrtf(sum.x), 1.0f) + 0.5f);
    image[o + 1] = (unsigned char)(255.0f * fminf(sqrtf(sum.y), 1.0f) + 0.5f);
    image[o + 2] = (unsigned char)(255.0f * fminf(sqrtf(sum.z), 1.0f) + 0.5f);
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

    dim3 block(8, 8);
    dim3 grid((WIDTH + block.x - 1) / block.x, (HEIGHT + block.y - 1) / block.y);
    render<<<grid, block>>>(dSpheres, NUM_SPHERES, dImage, WIDTH, HEIGHT, sun);

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
