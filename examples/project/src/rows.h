#pragma once
// Row-wise work on a matrix of rows x cols numbers in GPU memory.
void rowSums(const float *matrix, float *sums, int rows, int cols);
void scaleRows(float *matrix, const float *sums, int rows, int cols);
