//===- CopyLogs.cpp - copy logs of two programs --------------------------===//
#include "CopyLogs.h"
#include "optiml/Emulator/CopyRecord.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

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
    else if (r.kind == CopyRecord::Input) {
      log.inputs.push_back(r.offset);
      log.inputTypes += buffer + "\n";
    } else if (r.kind == CopyRecord::Streams) {
      log.usesStreams = true;
    } else {
      LoggedCopy c;
      c.kernel = kernel;
      c.offset = r.offset;
      c.sequence = r.sequence;
      c.allocation = r.allocation;
      c.content.name = buffer;
      if (r.element != CopyRecord::Other)
        c.content.element = {r.element == CopyRecord::Half ? ElementKind::Half : ElementKind::BFloat16, 2};
      c.content.bytes = take(r.dataBytes).str();
      c.content.setCells(take(r.twins * sizeof(ShadowRecord)));
      (r.kind == CopyRecord::Fresh ? log.fresh : log.copies).push_back(std::move(c));
    }
  }
  std::sort(log.inputs.begin(), log.inputs.end());
  std::stable_sort(log.copies.begin(), log.copies.end(),
                   [](const LoggedCopy &a, const LoggedCopy &b) { return a.sequence < b.sequence; });
  return log;
}

void optiml::shareErrors(CopyLogFile &log) {
  std::map<std::pair<std::string, std::string>, std::vector<BufferReference *>> buffers;
  for (LoggedCopy &c : log.copies)
    buffers[{c.kernel, c.content.name}].push_back(&c.content);
  for (const auto &[name, copies] : buffers)
    setErrors(copies);
}

/// Of each copy in `log`, and what another run of the same program had there.
static void forEachPair(CopyLogFile &log, const CopyLogFile &other,
                        llvm::function_ref<void(BufferReference &, llvm::StringRef)> mark) {
  auto each = [&](std::vector<LoggedCopy> &mine, const std::vector<LoggedCopy> &others) {
    for (size_t i = 0; i < mine.size() && i < others.size(); ++i)
      if (mine[i].content.bytes.size() == others[i].content.bytes.size())
        mark(mine[i].content, others[i].content.bytes);
  };
  each(log.copies, other.copies);
  each(log.fresh, other.fresh);
}

void optiml::markUnstable(CopyLogFile &log, const CopyLogFile &other) {
  forEachPair(log, other, [](BufferReference &mine, llvm::StringRef bytes) { mine.markUnstable(bytes); });
}

void optiml::markWhereRoundingDecides(CopyLogFile &log, const CopyLogFile &other) {
  bool changesIntegers = false;
  forEachPair(log, other, [&](BufferReference &mine, llvm::StringRef bytes) {
    changesIntegers |= !mine.element.isFloat16() && mine.differBesideCells(mine.bytes, bytes);
  });
  forEachPair(log, other, [&](BufferReference &mine, llvm::StringRef bytes) {
    changesIntegers ? mine.markIfRoundingDecides(bytes) : mine.markJumps(bytes);
  });
}

/// The element type of a copied buffer: from its cells, or four-byte integers, where it is not said.
static ElementType elementOf(const BufferReference &r) {
  if (r.element.isFloat16())
    return r.element;
  if (!r.cells.empty() && r.cells.front().bytes > 2)
    return {r.cells.front().bytes == 8 ? ElementKind::Double : ElementKind::Float, r.cells.front().bytes, false};
  return {ElementKind::Integer, 4, false};
}

static std::optional<Difference> compareCopy(const LoggedCopy &want, const LoggedCopy &have, const FloatRule &rule) {
  BufferReference reference = want.content;
  reference.element = elementOf(reference);
  std::optional<Difference> d = compareBuffer(reference, have.content.bytes, rule);
  if (d) {
    d->kernel = want.kernel.empty() ? "(none)" : demangled(want.kernel);
    d->index += want.offset / reference.element.bytes;
  }
  return d;
}

bool optiml::sameInDoublePrecision(CopyLogFile &original, const CopyLogFile &changed) {
  // A sixteenth of a float's rounding: two orders of a computation on the twins differ by less, even with exp of
  // millions, and what is lost or doubled in a version shows unless the general tolerance hides it anyway.
  constexpr double tolerance = 0x1p-28;
  auto same = [&](const ShadowRecord &a, const ShadowRecord &b) {
    if (!std::isfinite(a.value) || !std::isfinite(b.value))
      return std::isnan(a.value) ? std::isnan(b.value) : a.value == b.value;
    return std::fabs(a.value - b.value) <= tolerance * std::max(a.magnitude, b.magnitude);
  };
  size_t at = 0;
  for (LoggedCopy &c : original.copies) {
    while (at < changed.copies.size() && changed.copies[at].content.bytes.size() != c.content.bytes.size())
      ++at;
    if (at == changed.copies.size())
      return false;
    const std::vector<ShadowRecord> &mine = c.content.cells, &theirs = changed.copies[at++].content.cells;
    auto other = theirs.begin();
    for (const ShadowRecord &cell : mine) {
      while (other != theirs.end() && other->offset < cell.offset)
        ++other;
      if (other == theirs.end() || other->offset != cell.offset || other->bytes != cell.bytes)
        continue;
      if (c.content.synthetic && (!std::isfinite(cell.value) || isUndefined(c.content, cell)))
        continue;
      if (!same(cell, *other)) {
        if (cell.bytes == 8) // a double's twin has no more digits than it
          continue;
        return false;
      }
      if (c.content.synthetic && std::isfinite(cell.value))
        c.content.sameTwins.insert(cell.offset);
    }
  }
  return true;
}

std::optional<Difference> optiml::compareLogs(const CopyLogFile &original, const CopyLogFile &changed,
                                              const FloatRule &rule) {
  size_t at = 0;
  for (const LoggedCopy &c : original.copies) {
    size_t match = at;
    while (match < changed.copies.size() && changed.copies[match].content.bytes.size() != c.content.bytes.size())
      ++match;
    if (match == changed.copies.size()) {
      Difference d;
      d.kernel = c.kernel.empty() ? "(none)" : demangled(c.kernel);
      d.buffer = c.content.name;
      d.expected = "a copy of " + std::to_string(c.content.bytes.size()) + " bytes to the host";
      d.actual = "no such copy";
      return d;
    }
    if (std::optional<Difference> d = compareCopy(c, changed.copies[match], rule))
      return d;
    at = match + 1;
  }
  return std::nullopt;
}

std::optional<Difference> optiml::compareFresh(const CopyLogFile &original, const CopyLogFile &changed,
                                               const FloatRule &rule, unsigned &compared) {
  // The n-th result of a kernel's argument on equal inputs with the n-th; on others there is nothing to compare.
  using Key = std::tuple<std::string, std::string, uint64_t>;
  auto keyOf = [](const LoggedCopy &c) { return Key(c.kernel, c.content.name, c.offset); };
  std::map<Key, std::vector<const LoggedCopy *>> theirs;
  for (const LoggedCopy &c : changed.fresh)
    theirs[keyOf(c)].push_back(&c);
  std::set<uint32_t> readBack;
  for (const LoggedCopy &c : original.copies)
    readBack.insert(c.allocation);
  std::map<Key, size_t> next;
  for (const LoggedCopy &c : original.fresh) {
    const size_t n = next[keyOf(c)]++;
    const std::vector<const LoggedCopy *> &same = theirs[keyOf(c)];
    if (!readBack.count(c.allocation) || n >= same.size())
      continue;
    ++compared;
    LoggedCopy want = c;
    want.offset = 0;
    if (std::optional<Difference> d = compareCopy(want, *same[n], rule))
      return d;
  }
  return std::nullopt;
}

bool optiml::sameBytes(const CopyLogFile &one, const CopyLogFile &other) {
  auto same = [](const LoggedCopy &a, const LoggedCopy &b) { return a.content.bytes == b.content.bytes; };
  return std::equal(one.copies.begin(), one.copies.end(), other.copies.begin(), other.copies.end(), same) &&
         std::equal(one.fresh.begin(), one.fresh.end(), other.fresh.begin(), other.fresh.end(), same);
}
