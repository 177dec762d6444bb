// transpose: out[x][y] = in[y][x] for float and int matrices, as one template.
//
//   transpose [rows cols]
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

inline void cuda(cudaError_t status) {
  if (status != cudaSuccess)
    throw std::runtime_error(cudaGetErrorString(status));
}

template <typename T> __global__ void transpose(const T *in, T *out, size_t rows, size_t cols) {
  const size_t x = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t y = size_t(blockIdx.y) * blockDim.y + threadIdx.y;
  if (x < cols && y < rows)
    out[x * rows + y] = in[y * cols + x];
}

// An array on the device that goes with its scope.
template <typename T> class DeviceArray {
public:
  explicit DeviceArray(size_t count) : count(count) { cuda(cudaMalloc(&data, count * sizeof(T))); }
  ~DeviceArray() { cudaFree(data); }
  DeviceArray(const DeviceArray &) = delete;
  void upload(const std::vector<T> &from) { cuda(cudaMemcpy(data, from.data(), count * sizeof(T), cudaMemcpyDefault)); }
  std::vector<T> download() const {
    std::vector<T> to(count);
    cuda(cudaMemcpy(to.data(), data, count * sizeof(T), cudaMemcpyDefault));
    return to;
  }
  T *get() { return data; }

private:
  T *data = nullptr;
  size_t count;
};

template <typename T> bool run(size_t rows, size_t cols, const char *typeName) {
  std::vector<T> input(rows * cols);
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = T((i * 2654435761u) % 1000003);

  DeviceArray<T> in(input.size()), out(input.size());
  in.upload(input);
  cuda(cudaMemset(out.get(), 0xff, input.size() * sizeof(T)));

  const dim3 block(32, 8);
  const dim3 grid(unsigned((cols + block.x - 1) / block.x), unsigned((rows + block.y - 1) / block.y));
  transpose<T><<<grid, block>>>(in.get(), out.get(), rows, cols);
  cuda(cudaGetLastError());
  cuda(cudaDeviceSynchronize());

  const std::vector<T> output = out.download();
  for (size_t y = 0; y < rows; ++y)
    for (size_t x = 0; x < cols; ++x) {
      const double got = double(output[x * rows + y]), want = double(input[y * cols + x]);
      if (!(got == want)) { // true for NaN too
        std::cerr << typeName << " out[" << x << "][" << y << "] = " << got << ", want " << want << "\n";
        return false;
      }
    }
  return true;
}

int main(int argc, char **argv) {
  try {
    const long rows = argc > 2 ? std::stol(argv[1]) : 512;
    const long cols = argc > 2 ? std::stol(argv[2]) : 384;
    if (rows < 1 || cols < 1)
      throw std::invalid_argument("rows and cols must be at least 1");
    const bool good = run<float>(rows, cols, "float") && run<int>(rows, cols, "int");
    std::cout << (good ? "PASS" : "FAIL") << " transpose rows=" << rows << " cols=" << cols << std::endl;
    return good ? 0 : 1;
  } catch (const std::exception &error) {
    std::cerr << argv[0] << ": " << error.what() << " (usage: transpose [rows cols])\n";
    return 2;
  }
}
