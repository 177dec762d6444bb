//===- ApiTest.cpp - the CUDA runtime API on the CPU ----------------------===//
#include "HandModule.h"
#include <cstring>

using namespace hand;

static void scale(ThreadContext *c, void **args) { at(args, 0, globalId(c)) *= 2; }

TEST(Api, CopiesAndLaunches) {
  const void *k = addKernel("scale", ModePlain, scale, 1);
  float host[64], *device;
  for (int i = 0; i < 64; ++i)
    host[i] = float(i);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void **>(&device), sizeof host), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(launch(k, 2, 32, {device}), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(host[i], 2.0f * float(i));
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaErrorInvalidValue) << "a double free is refused";
  cudaGetLastError();
}

TEST(Api, FreshMemoryIsPoisoned) {
  unsigned char *p;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void **>(&p), 100), cudaSuccess);
  EXPECT_EQ(p[0], 0xCC);
  EXPECT_EQ(p[99], 0xCC);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 256, 0u);
  cudaFree(p);
}

TEST(Api, RefusesBadGeometry) {
  const void *k = addKernel("geometry", ModePlain, scale, 1);
  EXPECT_EQ(launch(k, 1, 1025, {nullptr}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(launch(k, 0, 1, {nullptr}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(k, dim3(1, 65536), 1, {nullptr}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(k, 1, dim3(1, 1, 65), {nullptr}), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(k, 1, 1, {nullptr}, 64 << 10), cudaErrorInvalidValue) << "more than 48 KiB needs an attribute";
  EXPECT_EQ(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10), cudaErrorInvalidValue);
  EXPECT_EQ(launch(nullptr, 1, 1, {}), cudaErrorInvalidDeviceFunction);
  cudaGetLastError();
}

TEST(Api, RefusesCopiesOutsideAllocations) {
  char *p, host[32];
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void **>(&p), 16), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(p, host, 17, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, p + 8, 9, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, host + 16, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(p, 0, 17), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(p, 7, 16), cudaSuccess);
  EXPECT_EQ(p[15], 7);
  cudaFree(p);
  EXPECT_EQ(cudaMemset(p, 0, 16), cudaErrorInvalidValue) << "after cudaFree";
  cudaGetLastError();
}

TEST(Api, Copies2D) {
  char *device, host[6] = {1, 2, 3, 4, 5, 6}, back[6] = {};
  size_t pitch;
  ASSERT_EQ(cudaMallocPitch(reinterpret_cast<void **>(&device), &pitch, 3, 2), cudaSuccess);
  ASSERT_GE(pitch, 3u);
  ASSERT_EQ(cudaMemcpy2D(device, pitch, host, 3, 3, 2, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(device[pitch], 4);
  ASSERT_EQ(cudaMemcpy2D(back, 3, device, pitch, 3, 2, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(memcmp(host, back, 6), 0);
  EXPECT_EQ(cudaMemcpy2D(back, 2, device, pitch, 3, 2, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
  cudaFree(device);
  cudaGetLastError();
}

TEST(Api, EventsMeasureTime) {
  cudaEvent_t a, b;
  ASSERT_EQ(cudaEventCreate(&a), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&b), cudaSuccess);
  float ms = -1;
  EXPECT_EQ(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle) << "not recorded";
  cudaEventRecord(a, nullptr);
  cudaEventRecord(b, nullptr);
  EXPECT_EQ(cudaEventElapsedTime(&ms, a, b), cudaSuccess);
  EXPECT_GE(ms, 0);
  EXPECT_LT(ms, 1000);
  EXPECT_EQ(cudaEventDestroy(a), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(a), cudaErrorInvalidResourceHandle);
  cudaEventDestroy(b);
  cudaGetLastError();
}

TEST(Api, DeviceIsAnH200) {
  cudaDeviceProp p;
  ASSERT_EQ(cudaGetDeviceProperties(&p, 0), cudaSuccess);
  EXPECT_EQ(p.major, 9);
  EXPECT_EQ(p.multiProcessorCount, 132);
  EXPECT_EQ(p.sharedMemPerBlockOptin, 227u << 10);
  EXPECT_EQ(cudaGetDeviceProperties(&p, 1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  const void *k = addKernel("occupancy", ModePlain, scale, 1);
  int blocks = 0;
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 256, 0), cudaSuccess);
  EXPECT_EQ(blocks, 8);
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 256, 100 << 10), cudaSuccess);
  EXPECT_EQ(blocks, 2);
  cudaGetLastError();
}

TEST(Api, GraphsAreRefusedClearly) {
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorNotSupported);
  EXPECT_STREQ(cudaGetErrorString(cudaGetLastError()), "operation not supported");
}
