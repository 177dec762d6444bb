//===- CopyLog.cpp - what a program reads back from the device ------------===//
#include "AroundLaunch.h"
#include "Queue.h"
#include "Settings.h"
#include "Twins.h"
#include "optiml/Emulator/CopyRecord.h"
#include "optiml/Workload/Signature.h"
#include <cstdio>
#include <cstring>

using namespace optiml;
using namespace optiml::emu;

namespace {

struct TwinRecord {
  uint64_t offset;
  uint32_t bytes, additions;
  double value, magnitude;
};
static_assert(sizeof(TwinRecord) == 32);

class CopyLog {
public:
  static CopyLog *get() {
    static CopyLog *log = settings().copyLog.empty() ? nullptr : new CopyLog;
    return log;
  }
  void write(CopyRecord record, const std::string &kernel, const std::string &buffer, const std::string &data,
             const std::vector<TwinRecord> &twins) {
    std::lock_guard lock(mutex);
    if (!file)
      return;
    constexpr uint64_t most = uint64_t(2) << 30;
    uint64_t size = data.size() + twins.size() * sizeof(TwinRecord);
    if (written + size > most) {
      record = {};
      record.kind = CopyRecord::Cut;
      fwrite(&record, sizeof record, 1, file);
      fclose(file);
      file = nullptr;
      return;
    }
    written += size;
    record.sequence = workNumber();
    record.kernelBytes = uint32_t(kernel.size());
    record.bufferBytes = uint32_t(buffer.size());
    record.dataBytes = data.size();
    record.twins = twins.size();
    fwrite(&record, sizeof record, 1, file);
    fwrite(kernel.data(), 1, kernel.size(), file);
    fwrite(buffer.data(), 1, buffer.size(), file);
    fwrite(data.data(), 1, data.size(), file);
    fwrite(twins.data(), sizeof(TwinRecord), twins.size(), file);
    fflush(file);
  }

private:
  CopyLog() {
    file = fopen(settings().copyLog.c_str(), "wbe");
    if (!file)
      fprintf(stderr, "optiml: error: cannot write '%s': %s\n", settings().copyLog.c_str(), strerror(errno));
    atexit(finishCopyLog);
  }
  std::mutex mutex;
  FILE *file = nullptr;
  uint64_t written = 0;
};

void logRows(const Allocation &from, CopyRecord::Kind kind, uint64_t address, uint64_t pitch, uint64_t width,
             uint64_t height) {
  std::string data;
  std::vector<TwinRecord> twins;
  for (uint64_t y = 0; y < height; ++y) {
    uint64_t row = address + y * pitch;
    data.append(reinterpret_cast<const char *>(row), width);
    forEachTwin(from, row - from.address, width, [&](uint64_t offset, const TwinCell &c) {
      twins.push_back({y * width + offset - (row - from.address), c.bytes, c.additions, c.value, c.magnitude});
    });
  }
  CopyRecord record;
  record.kind = kind;
  record.element = from.element;
  record.allocation = from.number;
  record.offset = address - from.address;
  CopyLog::get()->write(record, from.lastKernel ? from.lastKernel : "", from.describe(), data, twins);
}

CopyRecord::Element elementOf(const std::string &name) {
  ElementKind kind = elementType(name).kind;
  return kind == ElementKind::Half       ? CopyRecord::Half
         : kind == ElementKind::BFloat16 ? CopyRecord::BFloat16
                                         : CopyRecord::Other;
}

bool seenByHost(const Allocation &a) {
  return a.kind == MemoryKind::Managed || a.kind == MemoryKind::Host || a.kind == MemoryKind::Registered;
}

} // namespace

void optiml::emu::copyLogBefore(const Launch &l) {
  if (!CopyLog::get())
    return;
  std::vector<std::string> types = parameterTypes(l.kernel->symbol);
  const bool known = types.size() == l.kernel->numParams;
  for (const PointerDesc &p : pointersOf(*l.kernel)) {
    Allocation *a = pointedTo(l, p.parameter, p.offset);
    // A kernel that may only read it matters when no other had it.
    const bool reads = known && types[p.parameter].find(" const*") != std::string::npos;
    if (a && (!reads || !a->lastKernel)) {
      a->lastKernel = l.kernel->symbol;
      a->element = elementOf(p.pointee);
    }
  }
}

void optiml::emu::openCopyLog() { CopyLog::get(); }

void optiml::emu::logCopy(const Allocation &from, const void *src, size_t pitch, size_t width, size_t height) {
  if (CopyLog::get())
    logRows(from, CopyRecord::Copy, reinterpret_cast<uint64_t>(src), pitch, width, height);
}

void optiml::emu::logLastContent(const Allocation &a) {
  if (CopyLog::get() && seenByHost(a) && a.lastKernel)
    logRows(a, CopyRecord::Visible, a.address, a.bytes, a.bytes, 1);
}

void optiml::emu::logFreshResult(const Allocation &a, const char *kernel, const std::string &name,
                                 const std::string &element, uint64_t inputs) {
  if (!CopyLog::get())
    return;
  std::string data(reinterpret_cast<const char *>(a.address), a.bytes);
  std::vector<TwinRecord> twins;
  forEachTwin(a, 0, a.bytes, [&](uint64_t offset, const TwinCell &c) {
    twins.push_back({offset, c.bytes, c.additions, c.value, c.magnitude});
  });
  CopyRecord record;
  record.kind = CopyRecord::Fresh;
  record.element = elementOf(element);
  record.allocation = a.number;
  record.offset = inputs;
  CopyLog::get()->write(record, kernel, name, data, twins);
}

void optiml::emu::logInput(uint64_t contents, const std::string &line) {
  if (!CopyLog::get())
    return;
  CopyRecord record;
  record.kind = CopyRecord::Input;
  record.offset = contents;
  CopyLog::get()->write(record, "", line, "", {});
}

void optiml::emu::finishCopyLog() {
  if (!CopyLog::get())
    return;
  static std::atomic<bool> done{false};
  if (done.exchange(true))
    return;
  if (mayBeLate()) {
    CopyRecord record;
    record.kind = CopyRecord::Streams;
    CopyLog::get()->write(record, "", "", "", {});
  }
  for (Allocation *a : *Memory::get().liveTable())
    logLastContent(*a);
}
