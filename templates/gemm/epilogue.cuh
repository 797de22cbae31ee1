  //
  // Epilogue: from registers to D, element by element, so that it may lie anywhere
  //

  CUTE_UNROLL
  for (int i = 0; i < size(tCrC); ++i) {
    if (elem_less(tCcD(i), shape(mD))) {
      tCgD(i) = static_cast<ElementD>(tCrC(i));
    }
  }
