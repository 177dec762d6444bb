//===- CaseDifference.cpp - what a variant computes otherwise -------------===//
#include "Cases.h"
#include "optiml/Workload/Signature.h"
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace optiml;
using namespace optiml::gpu;

std::string optiml::gpu::numberText(double v, int digits) {
  char text[40];
  snprintf(text, sizeof text, "%.*g", digits, v);
  return text;
}

/// What is allowed at this place of a buffer of floats or doubles; empty: the same bits.
std::string Cases::allowance(const DeviceCase::Buffer &b, uint64_t offset, double expected) {
  if (!(b.bound.relative > 0) || (b.bound.compare != Compare::Float && b.bound.compare != Compare::Double))
    return "";
  double distance = b.bound.relative * std::max(std::fabs(expected), b.bound.typical);
  std::vector<CheckedCell> cells(b.cellCount);
  if (!cells.empty() && device.download(cells.data(), b.cells, cells.size() * sizeof(CheckedCell)))
    for (const CheckedCell &cell : cells)
      if (cell.offset == offset && cell.tolerance < distance)
        return " (in double precision " + numberText(cell.value, 17) + ", allowed distance " +
               numberText(cell.tolerance, 4) + ")";
  return " (allowed distance " + numberText(distance, 4) + ")";
}

std::string Cases::describe(const DeviceCase &c, const Run &run, unsigned buffer, Place place) {
  const BufferImage &info = image(c, buffer);
  ElementType type = bufferTypes(*run.launch->image)[buffer];
  uint64_t begin = std::min<uint64_t>(place, info.bytes - 1) / type.bytes * type.bytes;
  std::string text = "kernel " + run.launch->kernelName() + ", " + run.launch->bufferName(buffer) + "[";
  if (auto layout = recordLayout(info.element)) {
    text += std::to_string(place / layout->bytes) + "] at byte " + std::to_string(place % layout->bytes);
    for (const RecordField &field : layout->fields)
      if (uint64_t in = place % layout->bytes; in >= field.offset && in < field.offset + field.type.bytes) {
        type = field.type;
        begin = place - (in - field.offset);
      }
  } else {
    text += std::to_string(begin / type.bytes) + "]";
  }
  char actual[8] = {}, expected[8] = {};
  if (begin + type.bytes <= info.bytes && device.download(actual, launches.address(run, buffer) + begin, type.bytes) &&
      device.download(expected, c.buffers[buffer].expected + begin, type.bytes)) {
    text +=
        ": " + elementText(actual, type, sizeof actual) + " instead of " + elementText(expected, type, sizeof expected);
    float single = 0;
    double value = 0;
    memcpy(&single, expected, sizeof single);
    memcpy(&value, expected, sizeof value);
    text += allowance(c.buffers[buffer], begin, type.kind == ElementKind::Double ? value : double(single));
    if (memcmp(actual, expected, type.bytes) == 0) // the run that differed is over
      text += " (at another time)";
  }
  return text + ", on " + c.request.name;
}
