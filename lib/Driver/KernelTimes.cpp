//===- KernelTimes.cpp - how long a program's kernels take ----------------===//
#include "KernelTimes.h"
#include "optiml/Core/JsonFields.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;
using nlohmann::json;

static void sortByTime(std::vector<KernelTime> &kernels) {
  llvm::stable_sort(kernels, [](const KernelTime &a, const KernelTime &b) { return a.seconds > b.seconds; });
}

llvm::Expected<KernelTimes> KernelTimes::read(const std::string &path) {
  auto text = readFile(path);
  if (!text)
    return text.takeError();
  const json value = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  KernelTimes times;
  JsonFields in(value, path + ": the list of kernel times");
  in.number("kernelSeconds", times.kernelSeconds);
  in.number("copySeconds", times.copySeconds);
  in.number("paused", times.paused, /*required=*/false);
  for (const json &entry : in.array("kernels")) {
    KernelTime k;
    JsonFields kernel(entry, path + ": a kernel's time");
    kernel.text("symbol", k.symbol);
    kernel.text("name", k.name);
    kernel.number("launches", k.launches);
    kernel.number("recorded", k.recorded, /*required=*/false);
    kernel.number("seconds", k.seconds);
    if (llvm::Error e = kernel.take())
      return std::move(e);
    times.kernels.push_back(std::move(k));
  }
  if (llvm::Error e = in.take())
    return std::move(e);
  sortByTime(times.kernels);
  return times;
}

llvm::Error KernelTimes::write(const std::string &path) const {
  json all = json::array();
  for (const KernelTime &k : kernels)
    all.push_back({{"symbol", k.symbol},
                   {"name", k.name},
                   {"launches", k.launches},
                   {"recorded", k.recorded},
                   {"seconds", k.seconds}});
  return writeFileAtomically(
      path, json{{"kernels", all}, {"kernelSeconds", kernelSeconds}, {"copySeconds", copySeconds}}.dump(1) + "\n");
}

void KernelTimes::add(const KernelTimes &other) {
  for (const KernelTime &k : other.kernels) {
    auto own = llvm::find_if(kernels, [&](const KernelTime &o) { return o.symbol == k.symbol; });
    if (own == kernels.end()) {
      kernels.push_back(k);
      continue;
    }
    own->launches += k.launches;
    own->recorded += k.recorded;
    own->seconds += k.seconds;
  }
  kernelSeconds += other.kernelSeconds;
  copySeconds += other.copySeconds;
  sortByTime(kernels);
}
