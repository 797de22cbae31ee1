// The beginning of a block's static shared memory: linked ahead of the kernel.
extern thread_local unsigned char cutemplate_host_shared_begin[];
thread_local unsigned char cutemplate_host_shared_begin[256];
