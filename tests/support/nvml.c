// A stand-in for NVML: 1500 MHz, and 600 W by the clock of the machine.
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

int nvmlInit_v2(void) { return getenv("STAND_IN_NVML") ? atoi(getenv("STAND_IN_NVML")) : SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
char const* nvmlErrorString(int error) { (void)error; return "as it was told to"; }
int nvmlDeviceGetHandleByPciBusId_v2(char const* address, void** device) {
  *device = (void*)6;
  return strcmp(address, "0000:3b:00.0") == 0 ? SUCCESS : NOT_FOUND;
}
// The clock of the multiprocessors is number 1.
int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* mhz) {
  (void)device;
  *mhz = 1500;
  return clock == 1 ? SUCCESS : NOT_SUPPORTED;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  (void)device;
  if (getenv("STAND_IN_NO_ENERGY")) return NOT_SUPPORTED;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  // A milliwatt-second is 1e6 nanoseconds of a watt.
  *millijoules = ((unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000) * 600;
  return SUCCESS;
}
