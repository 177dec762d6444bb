//===- VerifyLog.cpp - copy logs of two programs --------------------------===//
#include "VerifyLog.h"
#include "optiml/Emulator/CopyRecord.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <cstring>
#include <map>

using namespace optiml;
using emu::CopyRecord;

llvm::Expected<CopyLogFile> optiml::readCopyLog(const std::string &path) {
  CopyLogFile log;
  if (!llvm::sys::fs::exists(path))
    return log;
  llvm::Expected<std::string> file = readFile(path);
  if (!file)
    return file.takeError();
  llvm::StringRef rest = *file;
  auto take = [&](uint64_t n) {
    llvm::StringRef part = rest.take_front(n);
    rest = rest.drop_front(part.size());
    return part;
  };
  while (rest.size() >= sizeof(CopyRecord)) {
    CopyRecord r;
    memcpy(&r, take(sizeof r).data(), sizeof r);
    uint64_t left = rest.size();
    if (r.magic != CopyRecord::expectedMagic || r.kernelBytes > left || r.bufferBytes > left || r.dataBytes > left ||
        r.twins > left / sizeof(ShadowRecord) ||
        uint64_t(r.kernelBytes) + r.bufferBytes + r.dataBytes + r.twins * sizeof(ShadowRecord) > left) {
      log.cut = true; // the program ended while it wrote
      return log;
    }
    std::string kernel = take(r.kernelBytes).str(), buffer = take(r.bufferBytes).str();
    if (r.kind == CopyRecord::Cut)
      log.cut = true;
    else if (r.kind == CopyRecord::Fresh)
      log.freshInputs.push_back(r.offset);
    else {
      LoggedCopy c;
      c.kernel = kernel;
      c.offset = r.offset;
      c.content.name = buffer;
      c.content.bytes = take(r.dataBytes).str();
      c.content.setCells(take(r.twins * sizeof(ShadowRecord)));
      log.copies.push_back(std::move(c));
    }
  }
  std::sort(log.freshInputs.begin(), log.freshInputs.end());
  return log;
}

void optiml::shareErrors(CopyLogFile &log) {
  std::map<std::pair<std::string, std::string>, std::pair<double, double>> worst;
  for (bool collect : {true, false})
    for (LoggedCopy &c : log.copies) {
      auto &w = worst[{c.kernel, c.content.name}];
      if (collect) {
        w.first = std::max(w.first, c.content.ownError4);
        w.second = std::max(w.second, c.content.ownError8);
      } else {
        c.content.ownError4 = w.first;
        c.content.ownError8 = w.second;
      }
    }
}

void optiml::markUnstable(CopyLogFile &log, const CopyLogFile &other) {
  for (size_t i = 0; i < log.copies.size() && i < other.copies.size(); ++i)
    if (log.copies[i].content.bytes.size() == other.copies[i].content.bytes.size())
      log.copies[i].content.markUnstable(other.copies[i].content.bytes);
}

/// The element type of a copied buffer: from its cells, or four-byte integers.
static ElementType elementOf(const BufferReference &r) {
  if (!r.cells.empty())
    return {r.cells.front().bytes == 8 ? ElementKind::Double : ElementKind::Float, r.cells.front().bytes, false};
  return {ElementKind::Integer, 4, false};
}

std::optional<Difference> optiml::compareLogs(const CopyLogFile &original, const CopyLogFile &changed, FloatMode mode) {
  size_t at = 0;
  for (const LoggedCopy &c : original.copies) {
    size_t match = at;
    while (match < changed.copies.size() && changed.copies[match].content.bytes.size() != c.content.bytes.size())
      ++match;
    std::string kernel = c.kernel.empty() ? "(none)" : demangled(c.kernel);
    if (match == changed.copies.size()) {
      Difference d;
      d.kernel = kernel;
      d.buffer = c.content.name;
      d.expected = "a copy of " + std::to_string(c.content.bytes.size()) + " bytes to the host";
      d.actual = "no such copy";
      return d;
    }
    BufferReference reference = c.content;
    reference.element = elementOf(reference);
    std::optional<Difference> d = compareBuffer(reference, changed.copies[match].content.bytes, mode);
    if (d) {
      d->kernel = kernel;
      d->index += c.offset / reference.element.bytes;
      return d;
    }
    at = match + 1;
  }
  return std::nullopt;
}
