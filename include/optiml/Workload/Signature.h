//===- Signature.h - what a kernel's buffers hold ---------------*- C++ -*-===//
//
// Element types of buffers, from the mangled names of kernels, and fresh contents of such buffers. Needs no LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_WORKLOAD_SIGNATURE_H
#define OPTIML_WORKLOAD_SIGNATURE_H

#include "optiml/Workload/Float16.h"
#include "optiml/Workload/Workload.h"
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace optiml {

/// Splits at commas outside brackets; trims; a lone "void" counts as nothing.
std::vector<std::string> splitTopLevel(std::string_view list);

/// The demangled name, or the name itself.
std::string demangled(const std::string &symbol);

/// Whether two mangled names are of one function. Compilers mangle differently what only its own file sees: static
/// functions and those of a nameless namespace.
bool sameFunction(const std::string &a, const std::string &b);

/// Parameter types of a mangled function name; empty when it has none or is not mangled.
std::vector<std::string> parameterTypes(const std::string &symbol);
/// The launch has the buffer (its number) from parameters that point to constants, and from no other.
bool pointsToConst(const LaunchImage &launch, unsigned buffer);

enum class ElementKind { Unknown, Float, Double, Half, BFloat16, Integer };
struct ElementType {
  ElementKind kind = ElementKind::Unknown;
  unsigned bytes = 4;
  bool isUnsigned = false;
  bool isBool = false;
  bool isFloat16() const { return kind == ElementKind::Half || kind == ElementKind::BFloat16; }
  /// Only of those.
  Format16 format16() const { return kind == ElementKind::Half ? Format16::Half : Format16::Brain; }
  bool isFloating() const { return kind == ElementKind::Float || kind == ElementKind::Double || isFloat16(); }
  bool operator==(const ElementType &) const = default;
};
/// The type of that (demangled) name without qualifiers; vectors count as their elements.
ElementType elementType(std::string_view name);
/// What a pointer of that (demangled) type points to.
ElementType pointeeType(std::string_view pointerType);

/// A scalar in a structure.
struct RecordField {
  size_t offset = 0;
  ElementType type;
};
struct RecordLayout {
  size_t bytes = 0; ///< of the structure
  std::vector<RecordField> fields;
};
/// Of "{24: float@0 float@4 int@16}": the structure's size, and the places of its scalars in bytes. Nothing where it is
/// something else, such as "float", or a place is outside of the structure.
std::optional<RecordLayout> recordLayout(std::string_view element);

/// The element at `data` in words; of an integer not more than `bytes` are there.
std::string elementText(const char *data, const ElementType &type, size_t bytes);

/// Element type of each of a launch's buffers, from the kernel's symbol and BufferImage::element.
std::vector<ElementType> bufferTypes(const LaunchImage &launch);

/// "argument 2 (float*)", "variable 'table'".
std::string bufferName(const LaunchImage &launch, unsigned buffer);

/// What becomes of integers in fresh inputs. Random ones may send a program out of bounds where they are indices or
/// sizes, shuffled ones hardly, kept ones never. The others keep an order of the present ones (as of the offsets of
/// rows) and its ends, and that no two are equal (as in a permutation). They are drawn from the present ones, sorted,
/// reversed, or one everywhere; where there is an order, it rises at random, as before, at once, or at the end.
/// Extreme: runs of any length of the type's least and largest number, of random ones, and of one of the present ones.
enum class FreshIntegers { Random, Shuffle, Keep, Drawn, Sorted, Reversed, Equal, Extreme };
/// "shuffle".
std::string_view nameOf(FreshIntegers integers);
std::optional<FreshIntegers> freshIntegersNamed(std::string_view name);

/// How floats are chosen:
/// - Same: in the range of the present ones;
/// - Wide: 16 times as far out on both sides; Negative: there, and below zero;
/// - Masked: runs of any length of equal numbers, of sorted ones, of a few different ones, and of -infinity;
/// - Few: only three different ones, so that every extreme is tied;
/// - Extreme: runs of any length of huge and of tiny numbers (their squares are finite), of denormals, and of zeros of
///   both signs;
/// - LoneNaN: one, in the range of the others.
enum class FloatRange { Same, Wide, Negative, Masked, Few, Extreme, LoneNaN };
/// "lone-nan".
std::string_view nameOf(FloatRange range);
std::optional<FloatRange> floatRangeNamed(std::string_view name);

/// Gives a buffer other contents: floats become random numbers (what was never written stays so). Equal contents and
/// seeds give equal results. False when nothing changed.
bool refreshElements(char *data, size_t bytes, const ElementType &type, uint64_t seed, FreshIntegers integers,
                     FloatRange range = FloatRange::Same);

/// The same for a buffer of structures. Integers stay: what one means may depend on its neighbours. Some of the other
/// fields get numbers in the range of the present ones, whatever `range` is.
bool refreshRecords(char *data, size_t bytes, const RecordLayout &layout, uint64_t seed, FloatRange range);

/// One of the two, for a buffer of `element`: a type, or a structure in recordLayout's words.
bool refreshBuffer(char *data, size_t bytes, std::string_view element, uint64_t seed, FreshIntegers integers,
                   FloatRange range = FloatRange::Same);

} // namespace optiml

#endif
