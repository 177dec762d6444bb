//===- CopyRecord.h - one entry of a copy log -------------------*- C++ -*-===//
//
// A copy log (RuntimeSettings.h, envCopyLog) is a sequence of records. Each is a CopyRecord, then kernelBytes of text,
// bufferBytes of text, dataBytes of data (the rows of a two-dimensional copy one after the other), and twins records
// as in b<i>.shadow files (docs/formats.md) with offsets into the data. Little endian. Needs no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EMULATOR_COPYRECORD_H
#define OPTIML_EMULATOR_COPYRECORD_H

#include <cstdint>

namespace optiml::emu {

struct CopyRecord {
  static constexpr uint64_t expectedMagic = 0x3150434f4c4d4954; // "TIMLOCP1"
  enum Kind : uint16_t {
    Copy,    ///< a copy to the host
    Visible, ///< memory the host sees without a copy, when it is freed or the program ends
    Fresh,   ///< what a kernel made of a buffer, run once on other inputs; offset identifies those
    Cut,     ///< the log's limit was reached
    Input,   ///< no copy: a buffer from the host got other contents, which offset identifies; its name is the line
             ///< that envFreshTypes has for it
    Streams, ///< no copy: the program uses streams, or memory that the host and the device share
  };
  uint64_t magic = expectedMagic;
  Kind kind = Copy;
  /// What that kernel takes the buffer's elements for, where these are 16-bit floats, of which there are no twins.
  enum Element : uint16_t { Other, Half, BFloat16 } element = Other;
  uint32_t kernelBytes = 0; ///< the last kernel that had the buffer as an argument (and not only to read it), mangled
  uint32_t bufferBytes = 0; ///< the buffer in words
  uint32_t allocation = 0;  ///< counts the program's allocations, from 1; 0 for variables
  uint64_t offset = 0;      ///< of the copied range in its allocation
  uint64_t dataBytes = 0, twins = 0;
  uint64_t sequence = 0; ///< grows in the order of the program's calls, whenever their work was done
};

} // namespace optiml::emu

#endif
