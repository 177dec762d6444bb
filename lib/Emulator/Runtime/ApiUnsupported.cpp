//===- ApiUnsupported.cpp - functions that programs often mention ---------===//
//
// Graphs, textures and arrays link, but say that they are not supported. What is not here at all fails at link, with
// its name.
//
//===----------------------------------------------------------------------===//
#include "Api.h"

using namespace optiml::emu;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return unsupported("cudaStreamBeginCapture");
}
OPTIML_PER_THREAD(cudaStreamBeginCapture, _ptsz);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *) { return unsupported("cudaStreamEndCapture"); }
OPTIML_PER_THREAD(cudaStreamEndCapture, _ptsz);
cudaError_t cudaGraphCreate(cudaGraph_t *, unsigned) { return unsupported("cudaGraphCreate"); }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *, cudaGraph_t, unsigned long long) {
  return unsupported("cudaGraphInstantiate");
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return unsupported("cudaGraphLaunch"); }
OPTIML_PER_THREAD(cudaGraphLaunch, _ptsz);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, size_t,
                                   const cudaKernelNodeParams *) {
  return unsupported("cudaGraphAddKernelNode");
}
cudaError_t cudaGraphDestroy(cudaGraph_t) { return unsupported("cudaGraphDestroy"); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return unsupported("cudaGraphExecDestroy"); }

cudaError_t cudaMallocArray(cudaArray_t *, const cudaChannelFormatDesc *, size_t, size_t, unsigned) {
  return unsupported("cudaMallocArray");
}
cudaError_t cudaMalloc3DArray(cudaArray_t *, const cudaChannelFormatDesc *, cudaExtent, unsigned) {
  return unsupported("cudaMalloc3DArray");
}
cudaError_t cudaFreeArray(cudaArray_t) { return unsupported("cudaFreeArray"); }
cudaError_t cudaMemcpy2DToArray(cudaArray_t, size_t, size_t, const void *, size_t, size_t, size_t, cudaMemcpyKind) {
  return unsupported("cudaMemcpy2DToArray");
}
OPTIML_PER_THREAD(cudaMemcpy2DToArray, _ptds);
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *, const cudaResourceDesc *, const cudaTextureDesc *,
                                    const cudaResourceViewDesc *) {
  return unsupported("cudaCreateTextureObject");
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t) { return unsupported("cudaDestroyTextureObject"); }
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *, const cudaResourceDesc *) {
  return unsupported("cudaCreateSurfaceObject");
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t) { return unsupported("cudaDestroySurfaceObject"); }
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *, void *) { return unsupported("cudaIpcGetMemHandle"); }
}
