// One step of the algorithm closes a tile on the diagonal, then the tiles beside it in its rows and columns, then all
// others (Venkataraman, Sahni and Mukhopadhyaya, J. Exp. Algorithmics 8, 2003). Tiles that reach beyond the matrix have
// its last row and column more than once, which changes nothing.
typedef $U $P_number;
constexpr int $P_tile = $TILE, $P_own = $P_tile / 16; // a thread has a square of so many cells

__device__ inline $P_number $P_with($P_number a, $P_number b) { return $WITH; }
__device__ inline $P_number $P_best($P_number a, $P_number b) { return $OP; }

__device__ inline void $P_load($P_number (&tile)[$P_tile][$P_tile + 4], const $T *matrix, int n, long long pitch,
                               int row, int column) {
  for (int at = threadIdx.x; at < $P_tile * $P_tile; at += 256)
    tile[at / $P_tile][at % $P_tile] = $P_number(
        matrix[min(row + at / $P_tile, n - 1) * pitch + min(column + at % $P_tile, n - 1)]);
}

/// A tile of the matrix becomes itself op (left with right).
__device__ inline void $P_multiply($T *matrix, int n, long long pitch, int row, int column,
                                   const $P_number (&left)[$P_tile][$P_tile + 4],
                                   const $P_number (&right)[$P_tile][$P_tile + 4]) {
  const int x = threadIdx.x % 16 * $P_own, y = threadIdx.x / 16;
  $P_number best[$P_own][$P_own];
#pragma unroll
  for (int i = 0; i < $P_own; ++i)
#pragma unroll
    for (int j = 0; j < $P_own; ++j)
      best[i][j] = row + y + 16 * i < n && column + x + j < n
                       ? $P_number(matrix[(row + y + 16 * i) * pitch + column + x + j])
                       : $P_number();
#pragma unroll 8
  for (int k = 0; k < $P_tile; ++k)
#pragma unroll
    for (int i = 0; i < $P_own; ++i)
#pragma unroll
      for (int j = 0; j < $P_own; ++j)
        best[i][j] = $P_best(best[i][j], $P_with(left[y + 16 * i][k], right[k][x + j]));
#pragma unroll
  for (int i = 0; i < $P_own; ++i)
#pragma unroll
    for (int j = 0; j < $P_own; ++j)
      if (row + y + 16 * i < n && column + x + j < n)
        matrix[(row + y + 16 * i) * pitch + column + x + j] = $T(best[i][j]);
}

/// The tile's own closure. Row k and column k of step k are passed on through `passed`.
__device__ inline void $P_close($P_number (&tile)[$P_tile][$P_tile + 4], $P_number (&passed)[2][2][$P_tile]) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  $P_number own[$P_own][$P_own];
#pragma unroll
  for (int i = 0; i < $P_own; ++i)
#pragma unroll
    for (int j = 0; j < $P_own; ++j)
      own[i][j] = tile[y + 16 * i][x + 16 * j];
#pragma unroll
  for (int outer = 0; outer < $P_own; ++outer)
    for (int inner = 0; inner < 16; ++inner) {
      $P_number(&rows)[$P_tile] = passed[inner % 2][0], (&columns)[$P_tile] = passed[inner % 2][1];
#pragma unroll
      for (int i = 0; i < $P_own; ++i) {
        if (y == inner)
          rows[x + 16 * i] = own[outer][i];
        if (x == inner)
          columns[y + 16 * i] = own[i][outer];
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < $P_own; ++i)
#pragma unroll
        for (int j = 0; j < $P_own; ++j)
          own[i][j] = $P_best(own[i][j], $P_with(columns[y + 16 * i], rows[x + 16 * j]));
    }
#pragma unroll
  for (int i = 0; i < $P_own; ++i)
#pragma unroll
    for (int j = 0; j < $P_own; ++j)
      tile[y + 16 * i][x + 16 * j] = own[i][j];
  __syncthreads();
}

/// Blocks (x, 0): the tiles in the rows of tile `step`; (x, 1): those in its columns. The tile itself goes to `closed`,
/// since all blocks read it.
__global__ void __launch_bounds__(256) $P_beside($T *matrix, $T *closed, int n, long long pitch, int step) {
  __shared__ $P_number diagonal[$P_tile][$P_tile + 4], own[$P_tile][$P_tile + 4], passed[2][2][$P_tile];
  const int at = step * $P_tile, other = blockIdx.x * $P_tile;
  if (int(blockIdx.x) == step && blockIdx.y == 1)
    return;
  const int row = blockIdx.y == 0 ? at : other, column = blockIdx.y == 0 ? other : at;
  $P_load(diagonal, matrix, n, pitch, at, at);
  $P_load(own, matrix, n, pitch, row, column);
  __syncthreads();
  $P_close(diagonal, passed);
  if (int(blockIdx.x) == step) {
    for (int cell = threadIdx.x; cell < $P_tile * $P_tile; cell += 256)
      closed[cell] = $T(diagonal[cell / $P_tile][cell % $P_tile]);
  } else if (blockIdx.y == 0) {
    $P_multiply(matrix, n, pitch, row, column, diagonal, own);
  } else {
    $P_multiply(matrix, n, pitch, row, column, own, diagonal);
  }
}

/// All other tiles.
__global__ void __launch_bounds__(256) $P_others($T *matrix, const $T *closed, int n, long long pitch, int step) {
  __shared__ $P_number left[$P_tile][$P_tile + 4], right[$P_tile][$P_tile + 4];
  const int at = step * $P_tile, row = blockIdx.y * $P_tile, column = blockIdx.x * $P_tile;
  if (row == at && column == at) {
    for (int cell = threadIdx.x; cell < $P_tile * $P_tile; cell += 256)
      if (at + cell / $P_tile < n && at + cell % $P_tile < n)
        matrix[(at + cell / $P_tile) * pitch + at + cell % $P_tile] = closed[cell];
    return;
  }
  if (row == at || column == at)
    return;
  $P_load(left, matrix, n, pitch, row, at);
  $P_load(right, matrix, n, pitch, at, column);
  __syncthreads();
  $P_multiply(matrix, n, pitch, row, column, left, right);
}

/// *other = 1 where the matrix holds a number for which the algorithm is not the launches.
__global__ void __launch_bounds__(256)
    $P_look(const $T *matrix, int n, long long pitch, $T most, $T infinite, int *other) {
  bool all = true;
  for (int row = blockIdx.x; row < n; row += gridDim.x)
    for (int column = threadIdx.x; column < n; column += 256) {
      const $T x = matrix[row * pitch + column];
      all = all && ($ALLOWED);
    }
  if (!all)
    atomicExch(other, 1);
}
