#define CUDA_CHECK(call)                                                                   \
  do {                                                                                     \
    cudaError_t status_ = (call);                                                          \
    if (status_ != cudaSuccess) {                                                          \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));     \
      exit(EXIT_FAILURE);                                                                  \
    }                                                                                      \
  } while (0)
