// nbody: one time step of n bodies that attract each other: every thread adds up the softened attraction of all bodies
// on one, and a second kernel moves them.
//
//   nbody [n]      default 16384, large 65536
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t status_ = (call);                                                                                      \
    if (status_ != cudaSuccess) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                                 \
      exit(EXIT_FAILURE);                                                                                              \
    }                                                                                                                  \
  } while (0)

struct Vec3 {
  float x, y, z;
};

struct Body {
  Vec3 position;
  Vec3 velocity;
  float mass;
};

__global__ void accelerate(const Body *bodies, Vec3 *acceleration, int n, float softening2) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;

  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int j = 0; j < n; j++) {
    float dx = bodies[j].position.x - bodies[i].position.x;
    float dy = bodies[j].position.y - bodies[i].position.y;
    float dz = bodies[j].position.z - bodies[i].position.z;
    float r2 = dx * dx + dy * dy + dz * dz + softening2;
    float inverse = 1.0f / sqrtf(r2);
    float strength = bodies[j].mass * inverse * inverse * inverse;
    ax += strength * dx;
    ay += strength * dy;
    az += strength * dz;
  }
  acceleration[i].x = ax;
  acceleration[i].y = ay;
  acceleration[i].z = az;
}

__global__ void advance(Body *bodies, const Vec3 *acceleration, int n, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    bodies[i].velocity.x += acceleration[i].x * dt;
    bodies[i].velocity.y += acceleration[i].y * dt;
    bodies[i].velocity.z += acceleration[i].z * dt;
    bodies[i].position.x += bodies[i].velocity.x * dt;
    bodies[i].position.y += bodies[i].velocity.y * dt;
    bodies[i].position.z += bodies[i].velocity.z * dt;
  }
}

static unsigned state = 2718;

static float uniform(float low, float high) {
  state = state * 1664525u + 1013904223u;
  return low + (high - low) * ((float)(state >> 8) / 16777216.0f);
}

// Is a component of the acceleration within `bound`, and are velocity and position as it makes them? False for NaN.
static bool right(double acceleration, double bound, float gotAcceleration, float v, float p, float gotV, float gotP,
                  float dt) {
  double velocity = v + acceleration * dt, position = p + velocity * dt;
  return fabs(gotAcceleration - acceleration) <= bound &&
         fabs(gotV - velocity) <= bound * dt + 2e-7 * (fabs(v) + fabs(velocity)) &&
         fabs(gotP - position) <= bound * dt * dt + 2e-7 * (fabs(p) + fabs(velocity) * dt);
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 16384;
  if (argc > 2 || n < 1 || n > 10000000) {
    fprintf(stderr, "usage: %s [n]   with 1 <= n <= 1e7\n", argv[0]);
    return EXIT_FAILURE;
  }
  const float softening2 = 1e-3f, dt = 0.01f;

  std::vector<Body> start(n), end(n);
  std::vector<Vec3> acceleration(n);
  for (Body &body : start) {
    body.position.x = uniform(-1.0f, 1.0f);
    body.position.y = uniform(-1.0f, 1.0f);
    body.position.z = uniform(-1.0f, 1.0f);
    body.velocity.x = uniform(-0.5f, 0.5f);
    body.velocity.y = uniform(-0.5f, 0.5f);
    body.velocity.z = uniform(-0.5f, 0.5f);
    body.mass = uniform(0.5f, 1.5f) / n;
  }

  Body *dBodies;
  Vec3 *dAcceleration;
  CUDA_CHECK(cudaMalloc(&dBodies, n * sizeof(Body)));
  CUDA_CHECK(cudaMalloc(&dAcceleration, n * sizeof(Vec3)));
  CUDA_CHECK(cudaMemcpy(dBodies, start.data(), n * sizeof(Body), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(dAcceleration, 0xff, n * sizeof(Vec3))); // NaN, so that an element that is not written shows

  const int threads = 256;
  const int blocks = (n + threads - 1) / threads;
  accelerate<<<blocks, threads>>>(dBodies, dAcceleration, n, softening2);
  CUDA_CHECK(cudaGetLastError());
  advance<<<blocks, threads>>>(dBodies, dAcceleration, n, dt);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(acceleration.data(), dAcceleration, n * sizeof(Vec3), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(end.data(), dBodies, n * sizeof(Body), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(dBodies));
  CUDA_CHECK(cudaFree(dAcceleration));

  // All bodies, or of many the first, the last and others anywhere. The rounding of a sum one after the other is
  // relative to the sum of the absolute terms and grows with the root of their number.
  const double relative = 3e-6 + FLT_EPSILON * sqrt((double)n);
  const int checked = std::min(n, std::max(1000, 20000000 / n));
  int wrong = 0;
  for (int s = 0; s < checked; s++) {
    int i = checked == n || s == 0 ? s : s == 1 ? n - 1 : (int)(uniform(0.0f, 1.0f) * (double)n);
    const Body &body = start[i];
    double ax = 0, ay = 0, az = 0, sx = 0, sy = 0, sz = 0;
    for (int j = 0; j < n; j++) {
      double dx = (double)start[j].position.x - body.position.x, dy = (double)start[j].position.y - body.position.y;
      double dz = (double)start[j].position.z - body.position.z;
      double r2 = dx * dx + dy * dy + dz * dz + softening2, strength = start[j].mass / (r2 * sqrt(r2));
      ax += strength * dx;
      ay += strength * dy;
      az += strength * dz;
      sx += fabs(strength * dx);
      sy += fabs(strength * dy);
      sz += fabs(strength * dz);
    }
    const Vec3 &a = acceleration[i];
    bool good =
        right(ax, relative * sx, a.x, body.velocity.x, body.position.x, end[i].velocity.x, end[i].position.x, dt) &&
        right(ay, relative * sy, a.y, body.velocity.y, body.position.y, end[i].velocity.y, end[i].position.y, dt) &&
        right(az, relative * sz, a.z, body.velocity.z, body.position.z, end[i].velocity.z, end[i].position.z, dt) &&
        end[i].mass == body.mass;
    if (!good && wrong++ < 3)
      fprintf(stderr, "body %d: acceleration %g %g %g, want %g %g %g (or its new velocity or position is wrong)\n", i,
              a.x, a.y, a.z, ax, ay, az);
  }
  printf("%s nbody n=%d\n", wrong ? "FAIL" : "PASS", n);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
