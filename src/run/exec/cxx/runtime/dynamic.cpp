// Dynamic shared memory. Its object is copied with each alignment that a kernel may declare; the linker makes the kernel's own
// names for it names of this (`--defsym`). The most that a block can have on any architecture: 227 KiB (CUDA C++ Programming
// Guide, "Compute Capabilities").
extern thread_local unsigned char cutemplate_host_dynamic[];
thread_local unsigned char cutemplate_host_dynamic[227 * 1024];
extern unsigned long const cutemplate_host_dynamic_size;
unsigned long const cutemplate_host_dynamic_size = sizeof cutemplate_host_dynamic;
