//===- Blob.cpp - content-addressed files of a workload -------------------===//
#include "optiml/Workload/Blob.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace optiml;

static uint64_t mix(uint64_t a, uint64_t b) {
  __uint128_t product = static_cast<__uint128_t>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Two independent 64-bit multiply-and-fold hashes. Collisions matter only by accident, not by design of an adversary.
std::string optiml::blobName(const void *data, size_t bytes) {
  const char *p = static_cast<const char *>(data);
  uint64_t a = 0x9E3779B97F4A7C15 ^ bytes, b = 0xC2B2AE3D27D4EB4F + bytes;
  size_t left = bytes;
  for (; left >= 16; left -= 16, p += 16) {
    uint64_t x, y;
    memcpy(&x, p, 8);
    memcpy(&y, p + 8, 8);
    a = mix(a ^ x, y ^ 0xA0761D6478BD642F);
    b = mix(b ^ y ^ 0xE7037ED1A0B428DB, x + b);
    b += a;
  }
  uint64_t tail[2] = {0, 0};
  memcpy(tail, p, left);
  a = mix(a ^ tail[0], tail[1] ^ 0x8EBC6AF09C88C6E3);
  b = mix(b ^ tail[1] ^ 0x589965CC75374CC3, tail[0] + b) + a;
  a = mix(a, b ^ 0x1D8E4E27C47D124F);
  char name[40];
  snprintf(name, sizeof name, "%016llx%016llx.bin", static_cast<unsigned long long>(a),
           static_cast<unsigned long long>(b));
  return name;
}

bool optiml::validBlobName(const std::string &name) {
  if (name.empty() || name.size() > 128 || name[0] == '.')
    return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
         std::string::npos;
}

bool optiml::writeBlob(const std::string &directory, const std::string &name, const void *data, size_t bytes,
                       std::string &error) {
  std::string path = directory + "/" + name;
  struct stat s;
  if (stat(path.c_str(), &s) == 0 && size_t(s.st_size) == bytes)
    return true;
  std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
  int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const char *p = static_cast<const char *>(data);
  size_t left = bytes;
  bool ok = fd >= 0;
  while (ok && left) {
    ssize_t n = write(fd, p, left);
    if (n < 0 && errno == EINTR)
      continue;
    ok = n > 0;
    p += ok ? n : 0;
    left -= ok ? size_t(n) : 0;
  }
  int code = errno;
  if (fd >= 0 && close(fd) != 0 && ok) {
    ok = false;
    code = errno;
  }
  if (ok && rename(temporary.c_str(), path.c_str()) != 0) {
    ok = false;
    code = errno;
  }
  if (!ok) {
    error = "cannot write '" + path + "': " + strerror(code);
    unlink(temporary.c_str());
  }
  return ok;
}

/// Opens a blob of this size; -1 and `error` when it is not there or of another one.
static int openBlob(const std::string &directory, const std::string &name, size_t bytes, std::string &path,
                    std::string &error) {
  path = directory.empty() || name.find('/') == 0 ? name : directory + "/" + name;
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat s;
  if (fd < 0 || fstat(fd, &s) != 0)
    error = "cannot read '" + path + "': " + strerror(errno);
  else if (size_t(s.st_size) != bytes)
    error = "'" + path + "' has " + std::to_string(s.st_size) + " bytes, not the " + std::to_string(bytes) +
            " of its buffer";
  else
    return fd;
  if (fd >= 0)
    close(fd);
  return -1;
}

/// Reads the bytes of a blob from `offset` on, and closes it.
static bool readRest(int fd, const std::string &path, void *into, size_t bytes, size_t offset, std::string &error) {
  char *p = static_cast<char *>(into);
  while (offset < bytes) {
    ssize_t n = pread(fd, p + offset, bytes - offset, off_t(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      error = "cannot read '" + path + "': " + (n < 0 ? strerror(errno) : "it ends early");
      break;
    }
    offset += size_t(n);
  }
  close(fd);
  return offset == bytes;
}

bool optiml::readBlob(const std::string &directory, const std::string &name, void *into, size_t bytes,
                      std::string &error) {
  std::string path;
  int fd = openBlob(directory, name, bytes, path, error);
  return fd >= 0 && readRest(fd, path, into, bytes, 0, error);
}

bool optiml::mapBlob(const std::string &directory, const std::string &name, void *into, size_t bytes,
                     std::string &error) {
  std::string path;
  int fd = openBlob(directory, name, bytes, path, error);
  if (fd < 0)
    return false;
  size_t page = size_t(sysconf(_SC_PAGESIZE)), whole = bytes / page * page;
  bool aligned = reinterpret_cast<uintptr_t>(into) % page == 0;
  if (!aligned || !whole ||
      mmap(into, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED)
    whole = 0;
  return readRest(fd, path, into, bytes, whole, error);
}
