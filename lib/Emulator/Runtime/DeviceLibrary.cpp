//===- DeviceLibrary.cpp - printf, assert, malloc and clocks of device code ===//
#include "Fault.h"
#include "Memory.h"
#include "Scheduler.h"
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sched.h>

using namespace optiml::emu;

namespace {

/// Reads printf's packed arguments: each at its natural alignment.
class PackedArguments {
public:
  explicit PackedArguments(const void *data) : base(static_cast<const char *>(data)) {}
  template <typename T> T next() {
    offset = (offset + sizeof(T) - 1) & ~(sizeof(T) - 1);
    T value;
    memcpy(&value, base + offset, sizeof value);
    offset += sizeof value;
    return value;
  }

private:
  const char *base;
  size_t offset = 0;
};

__attribute__((format(printf, 2, 3))) void append(std::string &out, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = nullptr;
  int n = vasprintf(&text, format, list);
  va_end(list);
  if (n < 0)
    return;
  out.append(text, size_t(n));
  free(text);
}

/// Formats one conversion; `spec` has a literal format that was scanned before, hence the disabled warning.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
template <typename T> void convert(std::string &out, const std::string &spec, const int *stars, int numStars, T value) {
  const char *f = spec.c_str();
  if (numStars == 2)
    append(out, f, stars[0], stars[1], value);
  else if (numStars == 1)
    append(out, f, stars[0], value);
  else
    append(out, f, value);
}
#pragma GCC diagnostic pop

int format(std::string &out, const char *f, PackedArguments args) {
  int conversions = 0;
  while (*f) {
    if (*f != '%') {
      const char *end = strchrnul(f, '%');
      out.append(f, end);
      f = end;
      continue;
    }
    if (f[1] == '%') {
      out += '%';
      f += 2;
      continue;
    }
    std::string spec = "%";
    const char *p = f + 1;
    int stars[2], numStars = 0;
    while (*p && strchr("-+ #0123456789.*", *p)) {
      if (*p == '*' && numStars < 2)
        stars[numStars++] = args.next<int>();
      spec += *p++;
    }
    unsigned longs = 0;
    bool shortInt = false, charInt = false;
    for (; *p && strchr("hlLqjzt", *p); ++p) {
      if (*p == 'h')
        charInt = std::exchange(shortInt, true);
      else
        longs += *p == 'l' ? 1 : 2;
    }
    char c = *p;
    if (!c) { // an incomplete conversion is printed as it stands
      out.append(f);
      break;
    }
    ++conversions;
    switch (c) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X': {
      long long v = longs ? args.next<long long>() : args.next<int>();
      bool isSigned = c == 'd' || c == 'i';
      if (!longs && !isSigned)
        v = static_cast<unsigned>(v);
      if (charInt)
        v = isSigned ? static_cast<signed char>(v) : static_cast<unsigned char>(v);
      else if (shortInt)
        v = isSigned ? static_cast<short>(v) : static_cast<unsigned short>(v);
      convert(out, spec + "ll" + c, stars, numStars, v);
      break;
    }
    case 'c': convert(out, spec + c, stars, numStars, args.next<int>()); break;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A': convert(out, spec + c, stars, numStars, args.next<double>()); break;
    case 'p': convert(out, spec + c, stars, numStars, args.next<void *>()); break;
    case 's': {
      const char *s = args.next<const char *>();
      convert(out, spec + c, stars, numStars, s ? s : "(null)");
      break;
    }
    default: out.append(f, p + 1); --conversions;
    }
    f = p + 1;
  }
  return conversions;
}

} // namespace

extern "C" {

int32_t optiml_vprintf(ThreadContext *, const char *f, const void *packedArguments) {
  std::string text;
  int n = format(text, f, PackedArguments(packedArguments));
  fwrite(text.data(), 1, text.size(), stdout);
  return n;
}

void optiml_assert_fail(ThreadContext *context, const char *message, const char *file, uint32_t line,
                        const char *function, uint32_t site) {
  Fiber &fiber = fiberOf(context);
  Fault f = faultAt(fiber, "assert", site);
  f.headline = std::string("assertion '") + (message ? message : "") + "' failed";
  f.file = file ? file : "";
  f.line = line;
  f.column = f.column ? f.column : 1;
  f.function = function ? function : "";
  raise(fiber, f);
}

void optiml_trap(ThreadContext *context, uint32_t site) {
  Fiber &fiber = fiberOf(context);
  Fault f = faultAt(fiber, "trap", site);
  f.headline = "the kernel stopped itself by a trap";
  raise(fiber, f);
}

void *optiml_malloc(ThreadContext *, uint64_t bytes) {
  Allocation *a = bytes ? Memory::get().allocate(bytes, MemoryKind::Heap, "malloc() in device code", 16) : nullptr;
  return a ? reinterpret_cast<void *>(a->address) : nullptr;
}

void optiml_free(ThreadContext *context, void *pointer) {
  if (!pointer)
    return;
  uint64_t address = reinterpret_cast<uint64_t>(pointer);
  Allocation *a = Memory::get().find(address);
  if (a && a->kind == MemoryKind::Heap && a->address == address && Memory::get().release(address))
    return;
  Fiber &fiber = fiberOf(context);
  Fault f = faultAt(fiber, "out-of-bounds", ~0u);
  f.headline = "free() in device code of a pointer that malloc() in device code did not give";
  raise(fiber, f);
}

uint64_t optiml_clock(ThreadContext *) {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

void optiml_nanosleep(ThreadContext *context, uint32_t) {
  // The time that passes while the others run is sleep enough.
  optiml_yield(context);
}
}
