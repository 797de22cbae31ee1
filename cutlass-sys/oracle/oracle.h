/* The layout algebra of CuTe with run-time integers, behind a C interface.
 *
 * A batch is `count` layouts of one profile: the leaves of their shapes, left to right, layout after layout, and the
 * leaves of their strides likewise. A function answers one batch, case after case. It returns 0, or 1 where the profiles
 * given to it were not compiled in; then nothing is written.
 */
#ifndef CUTEMPLATE_ORACLE_H
#define CUTEMPLATE_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Profiles, by how their leaves nest: flat ranks 1 to 4, and three nested ones. Rank 1 is a bare integer. */
enum oracle_profile {
  ORACLE_1 = 0,     /* a             */
  ORACLE_2 = 1,     /* (a,b)         */
  ORACLE_3 = 2,     /* (a,b,c)       */
  ORACLE_4 = 3,     /* (a,b,c,d)     */
  ORACLE_21 = 4,    /* ((a,b),c)     */
  ORACLE_12 = 5,    /* (a,(b,c))     */
  ORACLE_22 = 6,    /* ((a,b),(c,d)) */
};

typedef struct {
  uint32_t profile;
  size_t count;
  const int64_t *shape;
  const int64_t *stride;
} oracle_batch;

/* Functions of layouts. Where a result is a layout, `sizes[i]` is its size, and `values[i * most + j]` its value at index
 * j for every j below both its size and `most`. A case in which CuTe divides by zero has the size ORACLE_DIVIDES_BY_ZERO.
 */
#define ORACLE_DIVIDES_BY_ZERO (-1)

typedef struct {
  size_t most;
  int64_t *sizes;
  int64_t *values;
} oracle_values;

enum oracle_unary {
  ORACLE_LAYOUT = 0,            /* the layout itself                                             */
  ORACLE_COALESCE = 1,          /* coalesce(layout)                                              */
  ORACLE_MAKE_LAYOUT = 2,       /* make_layout(shape)                                            */
  ORACLE_MAKE_LAYOUT_RIGHT = 3, /* make_layout(shape, LayoutRight{})                             */
  ORACLE_RIGHT_INVERSE = 4,     /* right_inverse, the first leaf's stride being a static 1       */
  ORACLE_COMPLEMENT = 5,        /* complement(layout); a rank-1 profile only                     */
  ORACLE_COSIZE = 6,            /* the one value is cosize(layout)                               */
};

enum oracle_binary {
  ORACLE_COMPOSITION = 0,     /* composition(a, b)                                             */
  ORACLE_LOGICAL_DIVIDE = 1,  /* logical_divide(a, b); b of a rank-1 profile only              */
  ORACLE_LOGICAL_PRODUCT = 2, /* logical_product(a, b); a of a rank-1 profile only             */
  ORACLE_ZIPPED_DIVIDE = 3,   /* zipped_divide(a, b); b of a rank-1 profile only               */
};

int oracle_unary(uint32_t op, oracle_batch a, oracle_values out);
int oracle_binary(uint32_t op, oracle_batch a, oracle_batch b, oracle_values out);

/* cosize(layout). */
int oracle_cosize(oracle_batch a, int64_t *out);
/* crd2idx(coords[i], shape, stride), the coordinate being one integer. */
int oracle_crd2idx(oracle_batch a, const int64_t *coords, int64_t *out);
/* The same with a coordinate congruent to the shape: one integer for each leaf. */
int oracle_crd2idx_congruent(oracle_batch a, const int64_t *coords, int64_t *out);
/* idx2crd(indices[i], shape): one integer for each leaf. Strides are not looked at. */
int oracle_idx2crd(oracle_batch a, const int64_t *indices, int64_t *out);
/* crd2crd(coords[i], shape, size(shape)): the index of a coordinate congruent to the shape. */
int oracle_crd2crd(oracle_batch a, const int64_t *coords, int64_t *out);

/* Loops for a benchmark: the operation on every case, in order, each result made in full and thrown away. `bits` is the
 * width of C++'s integers, 32 or 64. */
int oracle_repeat_unary(uint32_t op, uint32_t bits, oracle_batch a);
int oracle_repeat_binary(uint32_t op, uint32_t bits, oracle_batch a, oracle_batch b);
/* crd2idx of one integer coordinate for each case; returns the sum of the indices, modulo 2^64. */
uint64_t oracle_repeat_crd2idx(uint32_t bits, oracle_batch a, const int64_t *coords);

#ifdef __cplusplus
}
#endif

#endif
