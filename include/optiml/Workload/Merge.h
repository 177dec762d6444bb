//===- Merge.h - one workload of several processes --------------*- C++ -*-===//
#ifndef OPTIML_WORKLOAD_MERGE_H
#define OPTIML_WORKLOAD_MERGE_H

#include <string>
#include <vector>

namespace optiml {

/// Makes one workload in the folder `into` of those that the processes of a program have recorded in `folders`, which
/// lie on the same file system and lose their files to it. Of each launch class so many are kept, from the first
/// folders (0: all); together they stand for all launches of the class. False, with `error`, when one cannot be read or
/// written.
bool mergeWorkloads(const std::vector<std::string> &folders, const std::string &into, unsigned perClass,
                    std::string &error);

} // namespace optiml

#endif
