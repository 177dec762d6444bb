//===- TextDiff.cpp - what differs between two texts ----------------------===//
#include "optiml/Report/TextDiff.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include <algorithm>

using namespace optiml;

llvm::Expected<std::string> optiml::unifiedDiff(llvm::StringRef before, llvm::StringRef after,
                                                const std::string &nameBefore, const std::string &nameAfter,
                                                unsigned context) {
  auto folder = TempDir::create("optiml-diff");
  if (!folder)
    return folder.takeError();
  const std::string left = folder->file("before"), right = folder->file("after");
  if (llvm::Error error = writeFileAtomically(left, before))
    return std::move(error);
  if (llvm::Error error = writeFileAtomically(right, after))
    return std::move(error);
  ProcessOptions options;
  options.limits.seconds = 30;
  options.limits.outputBytes = 64 << 20;
  auto diff = runProcess(
      {"diff", "-a", "-U", std::to_string(context), "--label", nameBefore, "--label", nameAfter, left, right}, options);
  if (!diff)
    return diff.takeError();
  if (diff->signal || diff->timedOut || diff->exitCode > 1)
    return makeError("diff: {0}{1}", diff->describe(), diff->err.empty() ? "" : ": " + diff->err);
  return std::move(diff->out);
}

llvm::Expected<std::vector<LinePair>> optiml::sideBySide(llvm::StringRef before, llvm::StringRef after) {
  const unsigned all = 1 + unsigned(std::max(before.count('\n'), after.count('\n')));
  auto diff = unifiedDiff(before, after, "a", "b", all);
  if (!diff)
    return diff.takeError();
  std::vector<LinePair> pairs;
  if (diff->empty()) {
    for (int i = 0; i < int(before.count('\n')); ++i)
      pairs.push_back({i, i, true});
    return pairs;
  }
  llvm::StringRef rest = llvm::StringRef(*diff).split("\n@@").second.split('\n').second;
  int left = 0, right = 0;
  size_t gap = 0; // pairs with no line after, which later lines may take
  for (; !rest.empty(); rest = rest.split('\n').second) {
    const char kind = rest.front();
    if (kind == '-') {
      pairs.push_back({left++, -1, false});
    } else if (kind == '+') {
      while (gap < pairs.size() && (pairs[gap].same || pairs[gap].after >= 0 || pairs[gap].before < 0))
        ++gap;
      if (gap < pairs.size())
        pairs[gap++].after = right++;
      else
        pairs.push_back({-1, right++, false});
    } else if (kind == ' ') {
      pairs.push_back({left++, right++, true});
      gap = pairs.size();
    }
  }
  return pairs;
}
