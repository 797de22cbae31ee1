// The end of a block's static shared memory: linked behind the kernel.
extern thread_local unsigned char cutemplate_host_shared_end[];
thread_local unsigned char cutemplate_host_shared_end[256];
