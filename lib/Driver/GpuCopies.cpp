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

void ElementsByAddress::add(const std::vector<LaunchImage> &launches) {
  for (const LaunchImage &launch : launches) {
    const std::vector<ElementType> types = bufferTypes(launch);
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      const BufferImage &buffer = launch.buffers[i];
      if (!buffer.symbol.empty() || types[i].kind == ElementKind::Unknown)
        continue;
      auto [known, isNew] = ranges.try_emplace(buffer.address, Range{buffer.bytes, types[i]});
      known->second.isClear &= known->second.type == types[i] && known->second.bytes == buffer.bytes;
    }
  }
}

ElementType ElementsByAddress::at(uint64_t address) const {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin())
    return {};
  const auto &[begin, range] = *std::prev(after);
  return range.isClear && address - begin < range.bytes ? range.type : ElementType();
}

namespace {
struct Copy {
  uint64_t from; ///< where it lay on the device; 0: not known
  std::string content;
};
} // namespace

/// The copies of a run.
static llvm::Expected<std::vector<Copy>> copiesOf(const SearchTask &task, const CopyingProgram &program,
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
  std::vector<Copy> copies;
  for (llvm::StringRef rest = (*buffer)->getBuffer(); !rest.empty();) {
    uint64_t head[2] = {0, 0}; // where it lay, and its bytes
    if (rest.size() < sizeof head)
      return makeError("what the program copies to the host was not written as a whole");
    memcpy(head, rest.data(), sizeof head);
    rest = rest.drop_front(sizeof head);
    if (rest.size() < head[1])
      return makeError("what the program copies to the host was not written as a whole");
    copies.push_back({head[0], rest.take_front(head[1]).str()});
    rest = rest.drop_front(head[1]);
  }
  return copies;
}

/// The first element that differs by more than rounding; none: they are the same. `ulp`: of a type whose numbers are
/// rounded coarsely, the relative distance of two that follow one another.
template <typename T, typename Value>
static std::optional<size_t> firstDifference(const std::string &a, const std::string &b, double error, double ulp,
                                             Value valueOf) {
  auto elementAt = [](const std::string &of, size_t at) {
    T element;
    memcpy(&element, of.data() + at, sizeof element);
    return element;
  };
  double greatest = 0;
  for (size_t at = 0; at + sizeof(T) <= a.size(); at += sizeof(T))
    if (const double x = valueOf(elementAt(a, at)); std::isfinite(x))
      greatest = std::max(greatest, std::abs(x));
  for (size_t at = 0; at + sizeof(T) <= a.size(); at += sizeof(T)) {
    if (memcmp(a.data() + at, b.data() + at, sizeof(T)) == 0)
      continue;
    const double x = valueOf(elementAt(a, at)), y = valueOf(elementAt(b, at));
    if (!(std::abs(x - y) <= error * std::max(std::abs(x), 0.1 * greatest) + ulp * std::abs(x)))
      return at / sizeof(T);
  }
  return std::nullopt;
}

static std::optional<size_t> firstDifference(const std::string &a, const std::string &b, const ElementType &type) {
  auto number = [](auto x) { return double(x); };
  auto ofFormat = [](Format16 format) { return [format](uint16_t bits) { return double(valueOf16(bits, format)); }; };
  switch (type.kind) {
  case ElementKind::Float: return firstDifference<float>(a, b, singleError, 0, number);
  case ElementKind::Double: return firstDifference<double>(a, b, doubleError, 0, number);
  case ElementKind::Half: return firstDifference<uint16_t>(a, b, singleError, 0x1p-10, ofFormat(Format16::Half));
  case ElementKind::BFloat16: return firstDifference<uint16_t>(a, b, singleError, 0x1p-7, ofFormat(Format16::Brain));
  case ElementKind::Integer:
  case ElementKind::Unknown: break;
  }
  return 0;
}

/// Of a copy of which nothing else is known.
static ElementType otherwise(std::optional<unsigned> floatBytes) {
  return floatBytes == 4u   ? ElementType{ElementKind::Float, 4}
         : floatBytes == 8u ? ElementType{ElementKind::Double, 8}
                            : ElementType();
}

llvm::Expected<std::string> optiml::compareGpuCopies(const SearchTask &task, const CopyingProgram &original,
                                                     const CopyingProgram &changed, const ElementsByAddress &elements,
                                                     std::optional<unsigned> floatBytes) {
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
    const std::string &a = (*before)[i].content, &b = (*after)[i].content;
    bytes += a.size();
    if (a.size() != b.size())
      return makeError("copy {0} to the host has {1} bytes instead of {2}", i + 1, b.size(), a.size());
    if (a == b)
      continue;
    // Another run's memory may lie elsewhere.
    ElementType type = original.copies.empty() ? ElementType() : elements.at((*before)[i].from);
    if (type.kind == ElementKind::Unknown)
      type = otherwise(floatBytes);
    const bool fits = type.isFloating() && a.size() % type.bytes == 0;
    if (auto at = fits ? firstDifference(a, b, type) : std::optional<size_t>(0))
      return makeError("copy {0} to the host is another{1}", i + 1,
                       fits ? llvm::formatv(" at element {0}", *at).str() : std::string());
  }
  return llvm::formatv("{0} bytes that the program copies to the host compared with the original's, on the GPU", bytes)
      .str();
}
