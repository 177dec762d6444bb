//===- Merge.cpp - one workload of several processes ----------------------===//
#include "optiml/Workload/Merge.h"
#include "optiml/Workload/Workload.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <sys/stat.h>

using namespace optiml;

/// Blobs have the name of their contents, so that one that is there already is the same.
static bool moveBlob(const std::string &name, const std::string &from, const std::string &into, std::string &error) {
  const std::string old = from + "/" + name, now = into + "/" + name;
  struct stat s;
  if (stat(now.c_str(), &s) == 0 || rename(old.c_str(), now.c_str()) == 0)
    return true;
  error = "cannot move '" + old + "' to '" + now + "': " + strerror(errno);
  return false;
}

namespace {
struct Kept {
  std::vector<size_t> launches; ///< indices in the merged workload
  double weight = 0;            ///< launches of the class in all processes
};
} // namespace

bool optiml::mergeWorkloads(const std::vector<std::string> &folders, const std::string &into, unsigned perClass,
                            std::string &error) {
  Workload merged;
  merged.directory = into;
  std::map<std::string, Kept> classes;
  std::set<std::string> noted;
  for (const std::string &folder : folders) {
    Workload part;
    if (!Workload::read(folder, part, error))
      return false;
    if (merged.programArguments.empty())
      merged.programArguments = part.programArguments;
    for (const std::string &message : part.leftOut)
      if (noted.insert(message).second)
        merged.leftOut.push_back(message);
    for (auto &[kernel, arguments] : part.differing)
      merged.differing[kernel].merge(arguments);
    for (LaunchImage &launch : part.launches) {
      Kept &kept = classes[launch.launchClass];
      kept.weight += launch.weight;
      if (perClass && kept.launches.size() >= perClass)
        continue;
      for (const BufferImage &buffer : launch.buffers)
        if (!moveBlob(buffer.before, folder, into, error) || !moveBlob(buffer.after, folder, into, error))
          return false;
      launch.sequence += merged.totalLaunches;
      kept.launches.push_back(merged.launches.size());
      merged.launches.push_back(std::move(launch));
    }
    merged.totalLaunches += part.totalLaunches;
  }
  for (const auto &[name, kept] : classes)
    for (size_t launch : kept.launches)
      merged.launches[launch].weight = kept.weight / double(kept.launches.size());
  return merged.write(error);
}
