//===- GpuCopies.cpp - what two programs copy to the host -----------------===//
#include "GpuProgram.h"
#include "optiml/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <cstring>
#include <future>

using namespace optiml;

// Sums of lengths in another order, or results of multiplications that are contracted elsewhere, over many steps. An
// element may be near zero: then that of the greatest counts.
static constexpr double singleError = 1e-5, doubleError = 1e-13;

/// The copies of a run, each its bytes.
static llvm::Expected<std::vector<std::string>> copiesOf(const SearchTask &task, const CopyingProgram &program,
                                                         int &exitCode) {
  std::string file = program.copies;
  exitCode = program.exitCode;
  if (file.empty()) {
    file = program.executable + ".copies";
    auto run = timeGpuProgram(task, program.executable, file);
    if (!run)
      return run.takeError();
    exitCode = run->exitCode;
  }
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (program.copies.empty())
    llvm::sys::fs::remove(file);
  if (!buffer)
    return makeError("what the program copies to the host is not known");
  std::vector<std::string> copies;
  for (llvm::StringRef rest = (*buffer)->getBuffer(); !rest.empty();) {
    uint64_t bytes = 0;
    if (rest.size() < sizeof bytes)
      return makeError("what the program copies to the host was not written as a whole");
    memcpy(&bytes, rest.data(), sizeof bytes);
    rest = rest.drop_front(sizeof bytes);
    if (rest.size() < bytes)
      return makeError("what the program copies to the host was not written as a whole");
    copies.push_back(rest.take_front(bytes).str());
    rest = rest.drop_front(bytes);
  }
  return copies;
}

/// The first element that differs by more than rounding; none: they are the same.
template <typename T>
static std::optional<size_t> firstDifference(const std::string &a, const std::string &b, double error) {
  double greatest = 0;
  for (size_t at = 0; at + sizeof(T) <= a.size(); at += sizeof(T)) {
    T x;
    memcpy(&x, a.data() + at, sizeof x);
    if (std::isfinite(x))
      greatest = std::max(greatest, std::abs(double(x)));
  }
  for (size_t at = 0; at + sizeof(T) <= a.size(); at += sizeof(T)) {
    T x, y;
    memcpy(&x, a.data() + at, sizeof x);
    memcpy(&y, b.data() + at, sizeof y);
    const bool same = memcmp(&x, &y, sizeof x) == 0 ||
                      std::abs(double(x) - double(y)) <= error * std::max(std::abs(double(x)), 0.1 * greatest);
    if (!same)
      return at / sizeof(T);
  }
  return std::nullopt;
}

llvm::Expected<std::string> optiml::compareGpuCopies(const SearchTask &task, const CopyingProgram &original,
                                                     const CopyingProgram &changed, unsigned floatBytes) {
  int codes[2] = {0, 0};
  // Nothing is timed: both at once.
  auto other = std::async(std::launch::async, [&] { return copiesOf(task, original, codes[0]); });
  auto after = copiesOf(task, changed, codes[1]);
  auto before = other.get();
  if (!before || !after)
    return llvm::joinErrors(before ? llvm::Error::success() : before.takeError(),
                            after ? llvm::Error::success() : after.takeError());
  if (codes[0] != codes[1])
    return makeError("the rewritten program ends with exit code {0} instead of {1}", codes[1], codes[0]);
  if (before->empty())
    return makeError("the program copies nothing to the host");
  if (before->size() != after->size())
    return makeError("the rewritten program copies {0} times to the host instead of {1}", after->size(),
                     before->size());
  uint64_t bytes = 0;
  for (size_t i = 0; i < before->size(); ++i) {
    const std::string &a = (*before)[i], &b = (*after)[i];
    bytes += a.size();
    if (a.size() != b.size())
      return makeError("copy {0} to the host has {1} bytes instead of {2}", i + 1, b.size(), a.size());
    if (a == b)
      continue;
    const bool fits = floatBytes && a.size() % floatBytes == 0;
    auto at = !fits             ? std::optional<size_t>(0)
              : floatBytes == 4 ? firstDifference<float>(a, b, singleError)
                                : firstDifference<double>(a, b, doubleError);
    if (at)
      return makeError("copy {0} to the host is another{1}", i + 1,
                       fits ? llvm::formatv(" at element {0}", *at).str() : std::string());
  }
  return llvm::formatv("{0} bytes that the program copies to the host compared with the original's, on the GPU", bytes)
      .str();
}
