//===- HarnessText.cpp - the text of a host program ------------------------===//
//
// The function is called three times: on some data, on other data, and on the other data again. So a version is found
// out that keeps results of an earlier call, or the places where they belong, or leaves out work when its inputs
// repeat. Everything is copied back, also what should only be read.
//
//===----------------------------------------------------------------------===//
#include "optiml/Evaluate/Harness/Harness.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace optiml;

// Floats lie in [-1, 1). Integers may serve as places in the other buffers.
static constexpr const char *head = R"(
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

namespace optiml_harness {

unsigned random_state = 1;

unsigned next() {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 8;
}

void must(cudaError_t error) {
  if (error == cudaSuccess)
    return;
  std::printf("%s\n", cudaGetErrorString(error));
  std::exit(3);
}

template <typename T> void fill(std::vector<unsigned char> &bytes, long long places) {
  auto *values = reinterpret_cast<T *>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    if constexpr (std::is_integral_v<T>)
      values[i] = static_cast<T>(next() % places);
    else
      values[i] = static_cast<T>(static_cast<float>(next() % 2048) / 1024.0f - 1.0f);
  }
}

template <typename T> struct Buffer {
  std::vector<unsigned char> bytes;
  bool onHost;
  T *data = nullptr;

  Buffer(long long count, long long places, bool onHost)
      : bytes(sizeof(T) * (count > 1 ? count : 1)), onHost(onHost) {
    if constexpr (std::is_arithmetic_v<T> || std::is_constructible_v<T, float>)
      fill<T>(bytes, places);
    else
      fill<float>(bytes, places);
    void *memory = nullptr;
    must(onHost ? cudaMallocHost(&memory, bytes.size()) : cudaMalloc(&memory, bytes.size()));
    data = static_cast<T *>(memory);
    write();
  }
  void write() {
    if (onHost)
      std::memcpy(data, bytes.data(), bytes.size());
    else
      must(cudaMemcpy(data, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  }
  void read() {
    std::vector<unsigned char> result(bytes.size());
    void *copy = data;
    if (onHost) { // by way of the device, as what other functions leave
      std::memcpy(result.data(), data, bytes.size());
      must(cudaMalloc(&copy, bytes.size()));
      must(cudaMemcpy(copy, result.data(), bytes.size(), cudaMemcpyHostToDevice));
    }
    must(cudaMemcpy(result.data(), copy, bytes.size(), cudaMemcpyDeviceToHost));
    if (onHost)
      must(cudaFree(copy));
  }
};

} // namespace optiml_harness
)";

static std::string argumentFor(const CallableParameter &parameter, unsigned &floats) {
  switch (parameter.kind) {
  case CallableParameter::Buffer:
  case CallableParameter::Integer: return parameter.name;
  case CallableParameter::Boolean: return "true";
  case CallableParameter::Floating: return llvm::formatv("{0}({1:F2})", parameter.type, 0.5 + 0.25 * floats++);
  case CallableParameter::Stream: return "optiml_stream";
  case CallableParameter::Unknown: break;
  }
  return "{}";
}

std::string optiml::harnessText(const Callable &callable, const CallSpec &spec) {
  std::string text = head;
  llvm::raw_string_ostream out(text);
  const auto integers = callable.of(CallableParameter::Integer), buffers = callable.of(CallableParameter::Buffer);
  out << "\n// Calls " << callable.name << ". Arguments:";
  for (const CallableParameter *p : integers)
    out << ' ' << p->name;
  out << "\nint main(int argc, char **argv) {\n";
  for (unsigned i = 0; i < integers.size(); ++i)
    out << llvm::formatv("  const auto {0} = static_cast<{1}>(argc > {2} ? std::atoll(argv[{2}]) : {3});\n",
                         integers[i]->name, integers[i]->type, i + 1, i < spec.sizes.size() ? spec.sizes[i] : 100);
  out << "  (void)argc, (void)argv;\n  long long optiml_places = 1 << 20;\n";
  for (const CallableParameter *p : integers)
    out << llvm::formatv("  if ({0} > 0 && static_cast<long long>({0}) < optiml_places)\n    optiml_places = {0};\n",
                         p->name);
  for (const char *set : {"first", "second"})
    for (const CallableParameter *p : buffers) {
      auto extent = spec.extents.find(p->name);
      out << llvm::formatv("  optiml_harness::Buffer<{0}> {1}_{2}({3}, optiml_places, {4});\n", p->type, set, p->name,
                           extent == spec.extents.end() ? "1" : extent->second, p->hostMemory ? "true" : "false");
    }
  const bool takesStream = !callable.of(CallableParameter::Stream).empty();
  if (takesStream)
    out << "  cudaStream_t optiml_stream;\n  optiml_harness::must(cudaStreamCreate(&optiml_stream));\n";

  std::vector<std::string> declarations, arguments;
  unsigned floats = 0;
  for (const CallableParameter *p : buffers)
    declarations.push_back(p->type + " *" + p->name);
  for (const CallableParameter &p : callable.parameters)
    arguments.push_back(argumentFor(p, floats));
  out << "  auto optiml_call = [&](" << llvm::join(declarations, ", ") << ") {\n    ::" << callable.name;
  if (callable.isKernel)
    out << llvm::formatv("<<<{0}, {1}, {2}>>>", spec.grid, spec.block, spec.shared.empty() ? "0" : spec.shared);
  out << "(" << llvm::join(arguments, ", ") << ");\n    optiml_harness::must(cudaGetLastError());\n";
  if (takesStream)
    out << "    optiml_harness::must(cudaStreamSynchronize(optiml_stream));\n";
  out << "  };\n";

  auto forEach = [&](llvm::StringRef set, llvm::StringRef method) {
    for (const CallableParameter *p : buffers)
      out << "  " << set << "_" << p->name << "." << method << "();\n";
  };
  auto call = [&](llvm::StringRef set) {
    std::vector<std::string> pointers;
    for (const CallableParameter *p : buffers)
      pointers.push_back((set + "_" + p->name + ".data").str());
    out << "  optiml_call(" << llvm::join(pointers, ", ") << ");\n";
  };
  call("first");
  call("second");
  forEach("first", "read");
  forEach("second", "read");
  out << "  // The same inputs again.\n";
  forEach("second", "write");
  call("second");
  forEach("second", "read");
  out << "  return 0;\n}\n";
  return text;
}
