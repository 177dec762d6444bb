//===- Capture.cpp - recording a program's launches as a workload ---------===//
#include "Capture.h"
#include "Reachable.h"
#include "Settings.h"
#include "optiml/Workload/Blob.h"
#include "optiml/Workload/Workload.h"
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace optiml;
using namespace optiml::emu;

namespace {

struct LaunchClass {
  uint64_t count = 0;
  std::vector<uint64_t> kept; ///< sequence numbers, oldest first
  std::string name;
};

class Capture {
public:
  static Capture &get() {
    static Capture *c = new Capture;
    return *c;
  }
  bool enabled() const { return on; }
  void before(const Launch &launch);
  void after();
  void finish();

private:
  Capture();
  bool wanted(LaunchClass &c) const;
  bool store(const Allocation &a, std::string &name);
  void drop(uint64_t sequence);
  void release(const std::string &blob);
  void stop(const std::string &why);

  std::mutex mutex; ///< from before() to after() when a launch is being recorded
  bool on = false, failed = false;
  Workload workload;
  std::map<std::string, LaunchClass> classes;
  std::map<std::string, unsigned> uses; ///< of blobs
  std::map<std::string, uint64_t> sizes;
  uint64_t stored = 0;
  // The launch being recorded.
  std::atomic<bool> active = false;
  LaunchImage current;
  std::vector<Allocation *> buffers;
  LaunchClass *currentClass = nullptr;
};

std::vector<std::string> commandLine() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');)
    words.push_back(word);
  if (!words.empty())
    words.erase(words.begin());
  return words;
}

bool makeFolders(const std::string &path) {
  for (size_t i = 1; i <= path.size(); ++i)
    if (i == path.size() || path[i] == '/')
      if (mkdir(path.substr(0, i).c_str(), 0777) != 0 && errno != EEXIST)
        return false;
  return true;
}

Capture::Capture() {
  if (settings().captureDir.empty())
    return;
  workload.directory = settings().captureDir;
  workload.programArguments = commandLine();
  on = true;
  if (makeFolders(workload.directory))
    atexit(finishCapture);
  else
    stop("cannot create '" + workload.directory + "': " + strerror(errno));
}

void Capture::stop(const std::string &why) {
  fprintf(stderr, "optiml: error: the workload is not recorded any further: %s\n", why.c_str());
  on = active = false;
  failed = true;
}

/// Sizes of integers matter, not their values: 1000 and 1023 are one class, 1000 and 2000 are not.
std::string sizeClass(const char *value, uint32_t bytes) {
  uint64_t v = 0;
  memcpy(&v, value, bytes);
  if (bytes == 4 && int32_t(v) < 0)
    v = uint64_t(-int64_t(int32_t(v)));
  if (bytes == 8 && int64_t(v) < 0)
    v = uint64_t(-int64_t(v));
  return std::to_string(std::bit_width(v));
}

std::string classOf(const Launch &l) {
  std::string s = l.kernel->symbol;
  for (uint32_t v : {l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.dynamicShared})
    s += "," + std::to_string(v);
  for (uint32_t i = 0; i < l.kernel->numParams; ++i) {
    const ParamDesc &p = l.kernel->params[i];
    if (p.isPointer) {
      uint64_t value;
      memcpy(&value, l.args[i], 8);
      Allocation *a = Memory::get().find(value);
      s += ",b" + std::to_string(a ? a->bytes : 0);
    } else if (p.size == 4 || p.size == 8) {
      s += ",s" + sizeClass(static_cast<const char *>(l.args[i]), p.size);
    }
  }
  return s;
}

bool Capture::wanted(LaunchClass &c) const {
  unsigned perClass = settings().capturePerClass;
  return perClass == 0 || c.count == 1 || (perClass > 1 && std::has_single_bit(c.count));
}

bool Capture::store(const Allocation &a, std::string &name) {
  name = blobName(reinterpret_cast<const void *>(a.address), a.bytes);
  std::string error;
  if (!uses.count(name)) {
    if (!writeBlob(workload.directory, name, reinterpret_cast<const void *>(a.address), a.bytes, error)) {
      stop(error);
      return false;
    }
    sizes[name] = a.bytes;
    stored += a.bytes;
  }
  ++uses[name];
  return true;
}

void Capture::release(const std::string &blob) {
  auto it = uses.find(blob);
  if (it == uses.end() || --it->second)
    return;
  uses.erase(it);
  stored -= sizes[blob];
  unlink((workload.directory + "/" + blob).c_str());
}

void Capture::drop(uint64_t sequence) {
  for (size_t i = 0; i < workload.launches.size(); ++i)
    if (workload.launches[i].sequence == sequence) {
      for (const BufferImage &b : workload.launches[i].buffers) {
        release(b.before);
        release(b.after);
      }
      workload.launches.erase(workload.launches.begin() + long(i));
      return;
    }
}

void Capture::before(const Launch &l) {
  std::unique_lock lock(mutex);
  uint64_t sequence = workload.totalLaunches++;
  std::string key = classOf(l);
  LaunchClass &c = classes[key];
  ++c.count;
  c.name = l.kernel->name;
  if (!wanted(c))
    return;
  std::string where = "launch " + std::to_string(sequence) + " (" + l.kernel->name + "): ";
  unsigned perClass = settings().capturePerClass;
  bool replaces = perClass && c.kept.size() >= perClass;
  if (!replaces && workload.launches.size() >= settings().captureMaxLaunches) {
    if (c.kept.empty())
      workload.leftOut.push_back(where + "more than " + std::to_string(settings().captureMaxLaunches) +
                                 " launches; set OPTIML_CAPTURE_MAX_LAUNCHES to keep more");
    return;
  }
  buffers = reachableBuffers(l);
  uint64_t need = 0;
  for (Allocation *a : buffers)
    need += 2 * a->bytes;
  if (stored + need > settings().captureMaxBytes) {
    if (c.kept.empty())
      workload.leftOut.push_back(
          where + "its buffers take up to " + std::to_string(need) + " bytes, and " + std::to_string(stored) +
          " of OPTIML_CAPTURE_MAX_BYTES=" + std::to_string(settings().captureMaxBytes) + " are used");
    return;
  }
  if (replaces) { // the first stays
    drop(c.kept[perClass > 1 ? 1 : 0]);
    c.kept.erase(c.kept.begin() + (perClass > 1 ? 1 : 0));
  }
  current = LaunchImage();
  current.kernel = l.kernel->symbol;
  current.name = l.kernel->name;
  current.grid = l.grid;
  current.block = l.block;
  current.sharedBytes = l.dynamicShared;
  current.launchClass = key;
  current.sequence = sequence;
  for (Allocation *a : buffers) {
    BufferImage b;
    b.address = a->address;
    b.bytes = a->bytes;
    b.symbol = a->symbol;
    b.constant = a->constant;
    b.initial = a->kind == MemoryKind::Symbol &&
                memcmp(reinterpret_cast<const void *>(a->address), a->initial.data(), a->bytes) == 0;
    if (!store(*a, b.before))
      return;
    current.buffers.push_back(std::move(b));
  }
  for (uint32_t i = 0; i < l.kernel->numParams; ++i) {
    const ParamDesc &p = l.kernel->params[i];
    ArgumentImage a;
    a.bytes.assign(static_cast<const char *>(l.args[i]), p.size);
    a.isPointer = p.isPointer;
    if (p.isPointer) {
      uint64_t address;
      memcpy(&address, l.args[i], 8);
      for (size_t b = 0; b < buffers.size(); ++b)
        if (address - buffers[b]->address <= buffers[b]->bytes) {
          a.buffer = int(b);
          a.offset = address - buffers[b]->address;
          if (a.offset < buffers[b]->bytes)
            break;
        }
    }
    current.arguments.push_back(std::move(a));
  }
  currentClass = &c;
  active = true;
  lock.release(); // until after()
}

void Capture::after() {
  if (!active)
    return;
  std::unique_lock lock(mutex, std::adopt_lock);
  active = false;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (!store(*buffers[i], current.buffers[i].after))
      return;
  currentClass->kept.push_back(current.sequence);
  workload.launches.push_back(std::move(current));
  lock.unlock();
  finish(); // so that what is there survives a program that is killed
}

void Capture::finish() {
  // A fault within the launch that is being recorded ends here too: the lock is that launch's, and what was recorded
  // before it is complete.
  std::unique_lock lock(mutex, std::defer_lock);
  if (!active)
    lock.lock();
  if (!on || failed)
    return;
  for (LaunchImage &l : workload.launches) {
    const LaunchClass &c = classes[l.launchClass];
    l.weight = double(c.count) / double(c.kept.size());
  }
  std::string error;
  if (!workload.write(error))
    stop(error);
}

} // namespace

void optiml::emu::captureBefore(const Launch &launch) {
  if (Capture::get().enabled())
    Capture::get().before(launch);
}

void optiml::emu::captureAfter(const Launch &) {
  if (Capture::get().enabled())
    Capture::get().after();
}

void optiml::emu::finishCapture() {
  if (Capture::get().enabled())
    Capture::get().finish();
}
