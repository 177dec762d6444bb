//===- Workload.cpp - workload.json ---------------------------------------===//
#include "optiml/Workload/Workload.h"
#include "Fields.h"
#include "optiml/Workload/Blob.h"
#include <algorithm>
#include <sys/stat.h>

using namespace optiml;
using nlohmann::json;

static constexpr uint64_t addressLimit = uint64_t(1) << 47;
static constexpr const char *formatName = "optiml-workload";

static std::string toHex(const std::string &bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string s;
  for (unsigned char c : bytes) {
    s += digits[c >> 4];
    s += digits[c & 15];
  }
  return s;
}

static std::string fromHex(const Field &field, size_t mostBytes) {
  std::string s = field.text(2 * mostBytes), bytes;
  if (s.size() % 2 || s.find_first_not_of("0123456789abcdef") != std::string::npos) {
    field.fail("an even number of hexadecimal digits");
    return "";
  }
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i < s.size(); i += 2)
    bytes += char(digit(s[i]) << 4 | digit(s[i + 1]));
  return bytes;
}

static std::string addressText(uint64_t a) {
  char text[24];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(a));
  return text;
}

static json toJson(const LaunchImage &l) {
  json arguments = json::array(), buffers = json::array();
  for (const ArgumentImage &a : l.arguments) {
    json j{{"bytes", toHex(a.bytes)}, {"pointer", a.isPointer}};
    if (a.buffer >= 0) {
      j["buffer"] = a.buffer;
      j["offset"] = a.offset;
    }
    arguments.push_back(std::move(j));
  }
  for (const BufferImage &b : l.buffers) {
    json j{{"address", addressText(b.address)}, {"bytes", b.bytes}, {"before", b.before}, {"after", b.after}};
    if (!b.element.empty())
      j["element"] = b.element;
    if (!b.symbol.empty()) {
      j["symbol"] = b.symbol;
      j["constant"] = b.constant;
      j["initial"] = b.initial;
    }
    buffers.push_back(std::move(j));
  }
  return {{"kernel", l.kernel},           {"name", l.name},         {"grid", l.grid},     {"block", l.block},
          {"sharedBytes", l.sharedBytes}, {"arguments", arguments}, {"buffers", buffers}, {"class", l.launchClass},
          {"weight", l.weight},           {"sequence", l.sequence}};
}

bool Workload::write(std::string &error) const {
  json all = json::array();
  for (const LaunchImage &l : launches)
    all.push_back(toJson(l));
  json j{{"format", formatName},           {"version", 1},       {"programArguments", programArguments},
         {"totalLaunches", totalLaunches}, {"leftOut", leftOut}, {"launches", all}};
  if (!differing.empty())
    j["differing"] = differing;
  return writeJson(j, directory + "/workload.json", error);
}

static std::string readBlobName(const Field &field, const std::string &directory, uint64_t bytes) {
  std::string name = field.text(128);
  if (!field.good())
    return name;
  struct stat s;
  if (!validBlobName(name))
    field.fail("a plain file name without folders");
  else if (stat((directory + "/" + name).c_str(), &s) != 0 || !S_ISREG(s.st_mode))
    field.fail("the file '" + name + "' to be in the workload's folder");
  else if (uint64_t(s.st_size) != bytes)
    field.fail("a file of " + std::to_string(bytes) + " bytes, but '" + name + "' has " + std::to_string(s.st_size));
  return name;
}

static BufferImage readBuffer(const Field &f, const std::string &directory) {
  BufferImage b;
  b.address = f.at("address").hexadecimal();
  b.bytes = f.at("bytes").integer(1, uint64_t(1) << 40);
  if (b.address == 0 || b.address >= addressLimit || b.bytes > addressLimit - b.address)
    f.at("address").fail("an address below 2^47 with room for the buffer");
  if (f.has("element"))
    b.element = f.at("element").text();
  if (f.has("symbol")) {
    b.symbol = f.at("symbol").text();
    b.constant = f.at("constant").boolean();
    b.initial = f.at("initial").boolean();
  }
  b.before = readBlobName(f.at("before"), directory, b.bytes);
  b.after = readBlobName(f.at("after"), directory, b.bytes);
  return b;
}

static void checkOverlap(const LaunchImage &l, const Field &f) {
  std::vector<const BufferImage *> sorted;
  for (const BufferImage &b : l.buffers)
    sorted.push_back(&b);
  std::sort(sorted.begin(), sorted.end(), [](auto *a, auto *b) { return a->address < b->address; });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i]->address < sorted[i - 1]->address + sorted[i - 1]->bytes)
      f.fail("buffers that do not overlap, but those at " + addressText(sorted[i - 1]->address) + " and " +
             addressText(sorted[i]->address) + " do");
}

static LaunchImage readLaunch(const Field &f, const std::string &directory) {
  LaunchImage l;
  l.kernel = f.at("kernel").text();
  l.name = f.at("name").text();
  l.grid = f.at("grid").triple(0x7fffffff);
  l.block = f.at("block").triple(1024);
  if (uint64_t(l.block[0]) * l.block[1] * l.block[2] > 1024)
    f.at("block").fail("at most 1024 threads");
  l.sharedBytes = uint32_t(f.at("sharedBytes").integer(0, 1 << 20));
  l.launchClass = f.at("class").text();
  l.weight = f.at("weight").number(0, 1e18);
  l.sequence = f.at("sequence").integer(0, UINT64_MAX);
  for (const Field &b : f.at("buffers").elements(65536))
    l.buffers.push_back(readBuffer(b, directory));
  checkOverlap(l, f.at("buffers"));
  for (const Field &a : f.at("arguments").elements(4096)) {
    ArgumentImage image;
    image.bytes = fromHex(a.at("bytes"), 32764);
    image.isPointer = a.at("pointer").boolean();
    if (image.isPointer && image.bytes.size() != 8)
      a.at("bytes").fail("the 8 bytes of a pointer");
    if (a.has("buffer")) {
      image.buffer = int(a.at("buffer").integer(0, 65535));
      if (size_t(image.buffer) >= l.buffers.size())
        a.at("buffer").fail("an index into the launch's buffers");
      else
        image.offset = a.at("offset").integer(0, l.buffers[image.buffer].bytes);
    }
    l.arguments.push_back(std::move(image));
  }
  return l;
}

std::map<size_t, double> optiml::launchWeights(const Workload &workload, const std::string &kernel) {
  std::map<size_t, double> weights;
  for (size_t i = 0; i < workload.launches.size(); ++i)
    if (workload.launches[i].kernel == kernel)
      weights[i] = workload.launches[i].weight;
  return weights;
}

uint64_t optiml::threadsOf(const LaunchImage &launch) {
  uint64_t threads = 1;
  for (unsigned i = 0; i < 3; ++i)
    threads *= uint64_t(launch.grid[i]) * launch.block[i];
  return threads;
}

uint64_t optiml::bytesOf(const LaunchImage &launch) {
  uint64_t bytes = 0;
  for (const BufferImage &buffer : launch.buffers)
    bytes += buffer.bytes;
  return bytes;
}

bool Workload::read(const std::string &directory, Workload &into, std::string &error) {
  into = Workload();
  into.directory = directory;
  auto read = [&](const Field &root) {
    into.totalLaunches = root.at("totalLaunches").integer(0, UINT64_MAX);
    for (const Field &a : root.at("programArguments").elements(65536))
      into.programArguments.push_back(a.text(1 << 20));
    for (const Field &a : root.at("leftOut").elements(1 << 20))
      into.leftOut.push_back(a.text());
    if (root.has("differing"))
      for (const auto &[kernel, arguments] : root.at("differing").members())
        for (const Field &a : arguments.elements(65536))
          into.differing[kernel].insert(unsigned(a.integer(0, 65535)));
    for (const Field &l : root.at("launches").elements(1 << 20)) {
      into.launches.push_back(readLaunch(l, directory));
      if (!root.good())
        break;
    }
  };
  return readDocument(directory + "/workload.json", formatName, read, error);
}

/// `b` finds what `a` found, or what `a` left, and leaves the same: it writes once more what was written.
static bool doesTheSame(const LaunchImage &a, const LaunchImage &b) {
  auto sameArgument = [](const ArgumentImage &x, const ArgumentImage &y) { return x.bytes == y.bytes; };
  auto sameBuffer = [](const BufferImage &x, const BufferImage &y) {
    return x.address == y.address && x.bytes == y.bytes && x.symbol == y.symbol && x.initial == y.initial &&
           x.after == y.after && (x.before == y.before || y.before == y.after);
  };
  return a.kernel == b.kernel && a.grid == b.grid && a.block == b.block && a.sharedBytes == b.sharedBytes &&
         std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(), sameArgument) &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(), sameBuffer);
}

void optiml::dropRepeats(Workload &workload) {
  std::vector<LaunchImage> kept;
  for (LaunchImage &launch : workload.launches) {
    auto first = std::find_if(kept.begin(), kept.end(), [&](const LaunchImage &k) { return doesTheSame(k, launch); });
    if (first == kept.end())
      kept.push_back(std::move(launch));
    else
      first->weight += launch.weight;
  }
  workload.launches = std::move(kept);
}
