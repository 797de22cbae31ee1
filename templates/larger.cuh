// NaN where there is one; 0 is larger than -0.
CUTE_DEVICE float larger(float a, float b) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
  return a;
}
