
static double uniform(size_t index, unsigned seed) { return (hash(index, seed) >> 8) / 16777216.0; }
