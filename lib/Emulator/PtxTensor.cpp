//===- PtxTensor.cpp - products of matrices by a warp ---------------------===//
//
// mma.sync.m16n8k8 of TF32 numbers with sums of float: the lanes' pieces go to the runtime through a structure of each
// (MatrixPieces), and the last lane to come multiplies.
//
//===----------------------------------------------------------------------===//
#include "PtxLowering.h"

using namespace llvm;
using namespace optiml::emu;

bool PtxLowering::matrixProduct() {
  if (!has("sync") || !has("m16n8k8") || !has("row") || !has("col") || s->operands.size() != 4)
    return false;
  unsigned tf32 = unsigned(count(s->words, "tf32")), f32 = unsigned(count(s->words, "f32"));
  const std::vector<PtxOperand> &result = s->operands[0].elements;
  if (tf32 != 2 || f32 != 2 || result.size() != 4)
    return false;
  Function &f = *call.getFunction();
  auto *type = ArrayType::get(b.getInt32Ty(), 10); // as MatrixPieces: sums, a, b
  AllocaInst *pieces = IRBuilder<>(&f.getEntryBlock(), f.getEntryBlock().begin()).CreateAlloca(type);
  auto place = [&](unsigned i) { return b.CreateConstInBoundsGEP2_64(type, pieces, 0, i); };
  unsigned next = 0;
  for (unsigned operand : {3, 1, 2}) {
    if (s->operands[operand].elements.size() != (operand == 2 ? 2 : 4))
      return false;
    for (const PtxOperand &element : s->operands[operand].elements) {
      Value *v = source(element, 32);
      if (!v)
        return false;
      storeInBackground(v, place(next++), Align(4));
    }
  }
  dm.call(b, "optiml_matrix_product", {pieces, dm.site(b)});
  for (unsigned i = 0; i < 4; ++i) {
    LoadInst *sum = b.CreateAlignedLoad(b.getInt32Ty(), place(i), Align(4));
    markBackground(*sum);
    if (!assign(result[i], sum))
      return false;
  }
  return true;
}

/// cvt.rna.tf32.f32: 10 bits after the point, ties away from zero; infinities and NaN stay.
bool PtxLowering::toTensorFloat() {
  Value *v = s->operands.size() == 2 && has("rna") ? source(s->operands[1], 32) : nullptr;
  if (!v)
    return false;
  Value *finite = b.CreateICmpNE(b.CreateAnd(v, 0x7f800000), b.getInt32(0x7f800000));
  return set(
      0, b.CreateSelect(finite, b.CreateAnd(b.CreateAdd(v, b.getInt32(0x1000)), ~uint64_t(0x1fff) & 0xffffffff), v));
}
