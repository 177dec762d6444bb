//===- Recorder.cpp - which launches become a workload --------------------===//
#include "optiml/Workload/Recorder.h"
#include "optiml/Workload/Blob.h"
#include "optiml/Workload/RuntimeSettings.h"
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace optiml;

uint64_t optiml::environmentNumber(const char *name, uint64_t fallback) {
  const char *text = getenv(name);
  if (!text || !*text)
    return fallback;
  char *end = nullptr;
  uint64_t value = strtoull(text, &end, 10);
  const char suffixes[] = "KMG";
  if (const char *suffix = *end && !end[1] ? strchr(suffixes, *end) : nullptr)
    return value << (10 * (suffix - suffixes + 1));
  if (*end || *text == '-') {
    fprintf(stderr, "optiml: warning: %s=%s is not a number; ignored\n", name, text);
    return fallback;
  }
  return value;
}

CaptureLimits optiml::environmentLimits(CaptureLimits limits) {
  limits.perClass = unsigned(environmentNumber(emu::envCapturePerClass, limits.perClass));
  limits.maxBytes = environmentNumber(emu::envCaptureMaxBytes, limits.maxBytes);
  limits.maxLaunches = unsigned(environmentNumber(emu::envCaptureMaxLaunches, limits.maxLaunches));
  limits.skip = environmentNumber(emu::envCaptureSkip, limits.skip);
  return limits;
}

static std::string rank() {
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char *value = getenv(name); value && *value && strspn(value, "0123456789") == strlen(value))
      return value;
  return "0";
}

std::string optiml::pathOfProcess(const std::string &pattern) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char kind = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[++i] : 0;
    if (kind == 0) {
      path += pattern[i];
    } else if (kind == 'h') {
      char host[256] = "";
      gethostname(host, sizeof host - 1);
      path += host;
    } else if (kind == 'r') {
      path += rank();
    } else if (kind == 'p') {
      path += std::to_string(getpid());
    } else {
      path += kind == '%' ? "%" : std::string("%") + kind;
    }
  }
  return path;
}

/// Sizes of integers matter, not their values: 1000 and 1023 are one class, 1000 and 2000 are not.
static std::string sizeClass(const std::string &bytes) {
  uint64_t v = 0;
  memcpy(&v, bytes.data(), bytes.size());
  if (bytes.size() == 4 && int32_t(v) < 0)
    v = uint64_t(-int64_t(int32_t(v)));
  if (bytes.size() == 8 && int64_t(v) < 0)
    v = -v;
  return std::to_string(std::bit_width(v));
}

std::string optiml::launchClassOf(const LaunchImage &l, const std::vector<uint64_t> &bufferBytes) {
  std::string s = l.kernel;
  for (uint32_t v : {l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.sharedBytes})
    s += "," + std::to_string(v);
  for (size_t i = 0; i < l.arguments.size(); ++i) {
    const ArgumentImage &a = l.arguments[i];
    if (a.isPointer)
      s += ",b" + std::to_string(bufferBytes[i]);
    else if (a.bytes.size() == 4 || a.bytes.size() == 8)
      s += ",s" + sizeClass(a.bytes);
  }
  return s;
}

static std::vector<std::string> commandLine() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');)
    words.push_back(word);
  if (!words.empty())
    words.erase(words.begin());
  return words;
}

static bool makeFolders(const std::string &path) {
  for (size_t i = 1; i <= path.size(); ++i)
    if (i == path.size() || path[i] == '/')
      if (mkdir(path.substr(0, i).c_str(), 0777) != 0 && errno != EEXIST)
        return false;
  return true;
}

bool Recorder::open(const std::string &directory, const CaptureLimits &wantedLimits) {
  opened = Clock::now();
  limits = wantedLimits;
  workload.directory = directory;
  workload.programArguments = commandLine();
  on = true;
  if (!makeFolders(directory))
    stop("cannot create '" + directory + "': " + strerror(errno));
  return on;
}

void Recorder::stop(const std::string &why) {
  fprintf(stderr, "optiml: error: the workload is not recorded any further: %s\n", why.c_str());
  on = false;
}

std::string Recorder::where() const {
  return "launch " + std::to_string(current.sequence) + " (" + current.name + "): ";
}

bool Recorder::wanted(const LaunchClass &c) const {
  return limits.perClass == 0 || c.count == 1 || (limits.perClass > 1 && std::has_single_bit(c.count));
}

bool Recorder::affordsAnother() const {
  using Seconds = std::chrono::duration<double>;
  return limits.timeShare <= 0 || Seconds(recording) <= limits.timeShare * Seconds(Clock::now() - opened);
}

void Recorder::stopClock() { recording += Clock::now() - begun; }

bool Recorder::begin(LaunchImage launch) {
  current = std::move(launch);
  current.sequence = workload.totalLaunches++;
  compareArguments();
  if (seen[current.kernel]++ < limits.skip)
    return false;
  LaunchClass &c = classes[current.launchClass];
  ++c.count;
  if (!wanted(c) || (c.count > 1 && !affordsAnother()))
    return false;
  if (!replaces(c) && workload.launches.size() >= limits.maxLaunches) {
    if (c.kept.empty())
      leaveOut("more than " + std::to_string(limits.maxLaunches) +
                   " launches; set OPTIML_CAPTURE_MAX_LAUNCHES to keep more",
               "launches");
    return false;
  }
  begun = Clock::now();
  return true;
}

void Recorder::compareArguments() {
  auto [first, isFirst] = firstArguments.try_emplace(current.kernel);
  if (isFirst)
    for (const ArgumentImage &a : current.arguments)
      first->second.push_back(a.bytes);
  else
    for (size_t i = 0; i < std::min(first->second.size(), current.arguments.size()); ++i)
      if (first->second[i] != current.arguments[i].bytes)
        workload.differing[current.kernel].insert(unsigned(i));
}

bool Recorder::admit(uint64_t bufferBytes) {
  uint64_t need = 2 * bufferBytes;
  bool another = std::any_of(workload.launches.begin(), workload.launches.end(),
                             [&](const LaunchImage &l) { return l.kernel == current.kernel; });
  if (stored + need <= (another ? std::min(limits.moreBytes, limits.maxBytes) : limits.maxBytes))
    return true;
  if (another && stored + need <= limits.maxBytes) {
    leaveOut("others of its kernel stand for it, as " + std::to_string(stored) + " bytes are stored", "others");
    return false;
  }
  if (classes[current.launchClass].kept.empty())
    leaveOut("its buffers take up to " + std::to_string(need) + " bytes, and " + std::to_string(stored) +
                 " of OPTIML_CAPTURE_MAX_BYTES=" + std::to_string(limits.maxBytes) + " are used",
             "bytes");
  return false;
}

bool Recorder::store(const void *data, uint64_t bytes, std::string &name) {
  name = blobName(data, bytes);
  std::string error;
  if (!uses.count(name)) {
    if (!writeBlob(workload.directory, name, data, bytes, error)) {
      stop(error);
      return false;
    }
    sizes[name] = bytes;
    stored += bytes;
  }
  ++uses[name];
  return true;
}

bool Recorder::addBuffer(BufferImage buffer, const void *data) {
  if (!store(data, buffer.bytes, buffer.before))
    return false;
  current.buffers.push_back(std::move(buffer));
  return true;
}

bool Recorder::setAfter(size_t buffer, const void *data) {
  BufferImage &b = current.buffers[buffer];
  return store(data, b.bytes, b.after);
}

void Recorder::linkArguments() {
  for (ArgumentImage &a : current.arguments) {
    if (!a.isPointer)
      continue;
    uint64_t address;
    memcpy(&address, a.bytes.data(), 8);
    for (size_t b = 0; b < current.buffers.size(); ++b) {
      const BufferImage &buffer = current.buffers[b];
      if (address - buffer.address > buffer.bytes)
        continue;
      a.buffer = int(b);
      a.offset = address - buffer.address;
      if (a.offset < buffer.bytes)
        break;
    }
  }
}

void Recorder::commit() {
  LaunchClass &c = classes[current.launchClass];
  if (replaces(c)) { // the first stays
    auto oldest = c.kept.begin() + (limits.perClass > 1 ? 1 : 0);
    drop(*oldest);
    c.kept.erase(oldest);
  }
  c.kept.push_back(current.sequence);
  workload.launches.push_back(std::move(current));
  current = LaunchImage();
  stopClock();
}

void Recorder::leaveOut(const std::string &why, const std::string &kind) {
  if (noted.insert(current.kernel + '\0' + kind).second)
    workload.leftOut.push_back(where() + why);
}

void Recorder::abandon(const std::string &why) {
  release(current);
  leaveOut(why, why);
  current = LaunchImage();
  stopClock();
}

void Recorder::note(const std::string &message) {
  if (noted.insert(message).second)
    workload.leftOut.push_back(message);
}

void Recorder::release(const std::string &blob) {
  auto it = uses.find(blob);
  if (it == uses.end() || --it->second)
    return;
  uses.erase(it);
  stored -= sizes[blob];
  unlink((workload.directory + "/" + blob).c_str());
}

void Recorder::release(const LaunchImage &launch) {
  for (const BufferImage &b : launch.buffers) {
    release(b.before);
    release(b.after);
  }
}

void Recorder::drop(uint64_t sequence) {
  for (size_t i = 0; i < workload.launches.size(); ++i)
    if (workload.launches[i].sequence == sequence) {
      release(workload.launches[i]);
      workload.launches.erase(workload.launches.begin() + long(i));
      return;
    }
}

bool Recorder::write() {
  for (LaunchImage &l : workload.launches) {
    const LaunchClass &c = classes[l.launchClass];
    l.weight = double(c.count) / double(c.kept.size());
  }
  std::string error;
  if (on && !workload.write(error))
    stop(error);
  return on;
}
