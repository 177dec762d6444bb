//===- ApiErrors.cpp - errors: state, names, texts ------------------------===//
#include "Api.h"
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

using namespace optiml::emu;

static thread_local cudaError_t lastError = cudaSuccess;

cudaError_t optiml::emu::result(cudaError_t error) {
  if (error != cudaSuccess)
    lastError = error;
  return error;
}

cudaError_t optiml::emu::unsupported(const char *function) {
  static std::mutex mutex;
  static auto *said = new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (said->insert(function).second)
    fprintf(stderr, "optiml: error: %s is not supported by the CPU emulator; it returns cudaErrorNotSupported\n",
            function);
  return result(cudaErrorNotSupported);
}

namespace {
struct ErrorText {
  cudaError_t code;
  const char *name, *text;
};
} // namespace

static const ErrorText errorTexts[] = {
#define CUDA_ERROR(name, text) {name, #name, text},
#include "Errors.def"
};

static const char *textOf(cudaError_t error, const char *ErrorText::*member) {
  for (const ErrorText &e : errorTexts)
    if (e.code == error)
      return e.*member;
  return "unrecognized error code";
}

extern "C" {

cudaError_t cudaGetLastError(void) {
  cudaError_t e = lastError;
  lastError = cudaSuccess;
  return e;
}

cudaError_t cudaPeekAtLastError(void) { return lastError; }

const char *cudaGetErrorName(cudaError_t error) { return textOf(error, &ErrorText::name); }

const char *cudaGetErrorString(cudaError_t error) { return textOf(error, &ErrorText::text); }
}
