//===- Blob.h - content-addressed files of a workload -----------*- C++ -*-===//
#ifndef OPTIML_WORKLOAD_BLOB_H
#define OPTIML_WORKLOAD_BLOB_H

#include <cstddef>
#include <string>

namespace optiml {

/// The file name of a blob: 128 bits of hash of its content and ".bin". Equal contents share a file.
std::string blobName(const void *data, size_t bytes);

/// Whether `name` is a plain file name that a workload may refer to: no folder, no leading dot.
bool validBlobName(const std::string &name);

/// Writes directory/name unless it is there already with the right size. False and `error` when it cannot.
bool writeBlob(const std::string &directory, const std::string &name, const void *data, size_t bytes,
               std::string &error);

/// Reads exactly `bytes` bytes of directory/name into `into`. False and `error` when the file is not of that size.
bool readBlob(const std::string &directory, const std::string &name, void *into, size_t bytes, std::string &error);

/// Like readBlob, but where `into` is the beginning of a page, whole pages are mapped (privately) and read when they
/// are first touched: for those who need few of them. What was mapped there before is replaced.
bool mapBlob(const std::string &directory, const std::string &name, void *into, size_t bytes, std::string &error);

} // namespace optiml

#endif
