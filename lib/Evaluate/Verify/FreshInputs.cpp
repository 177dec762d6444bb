//===- FreshInputs.cpp - fresh inputs for captured launches ---------------===//
#include "ReplayProcess.h"
#include "optiml/Support/Error.h"
#include "optiml/Workload/Blob.h"
#include "llvm/Support/FileOutputBuffer.h"

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
    if (b.bytes == 0)
      continue;
    const std::string file =
        directory + "/input" + std::to_string(seed) + std::string(nameOf(integers)) + "-" + std::to_string(i) + ".bin";
    auto fresh = llvm::FileOutputBuffer::create(file, b.bytes); // it may be large: made in its place
    if (!fresh)
      return fresh.takeError();
    char *data = reinterpret_cast<char *>((*fresh)->getBufferStart());
    std::string error;
    if (!readBlob(workload.directory, b.before, data, b.bytes, error))
      return makeError(error);
    const uint64_t own = seed * 1000003 + i;
    if (!(layout ? refreshRecords(data, b.bytes, *layout, own, floats)
                 : refreshElements(data, b.bytes, t, own, integers, floats)))
      continue;
    if (llvm::Error e = (*fresh)->commit())
      return std::move(e);
    result[i] = file;
  }
  return result;
}
