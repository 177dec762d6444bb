//===- FreshInputs.cpp - fresh inputs for captured launches ---------------===//
#include "ReplayProcess.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/Blob.h"

using namespace optiml;

llvm::Expected<std::map<unsigned, std::string>> optiml::freshInputs(const Workload &workload, const LaunchImage &launch,
                                                                    uint64_t seed, FreshIntegers integers,
                                                                    const std::string &directory, FloatRange floats) {
  std::map<unsigned, std::string> result;
  std::vector<ElementType> types = bufferTypes(launch);
  for (unsigned i = 0; i < launch.buffers.size(); ++i) {
    const BufferImage &b = launch.buffers[i];
    const ElementType &t = types[i];
    const std::optional<RecordLayout> layout = recordLayout(b.element);
    if (!b.symbol.empty() || (t.kind == ElementKind::Unknown && !layout) ||
        (t.kind == ElementKind::Integer && integers == FreshIntegers::Keep))
      continue;
    std::string bytes(b.bytes, '\0'), error;
    if (!readBlob(workload.directory, b.before, bytes.data(), b.bytes, error))
      return makeError(error);
    const uint64_t own = seed * 1000003 + i;
    if (!(layout ? refreshRecords(bytes.data(), bytes.size(), *layout, own, floats)
                 : refreshElements(bytes.data(), bytes.size(), t, own, integers, floats)))
      continue;
    std::string name =
        "input" + std::to_string(seed) + std::string(nameOf(integers)) + "-" + std::to_string(i) + ".bin";
    if (!writeBlob(directory, name, bytes.data(), bytes.size(), error))
      return makeError(error);
    result[i] = directory + "/" + name;
  }
  return result;
}
