/* Lets a program link without the library: what only the library has is found when the program starts with it preloaded. */
#pragma weak free_sized
#pragma weak free_aligned_sized
#pragma weak freestone_heap_new
#pragma weak freestone_heap_delete
#pragma weak freestone_heap_malloc
#pragma weak freestone_heap_calloc
#pragma weak freestone_heap_aligned_alloc
#pragma weak freestone_heap_realloc
#pragma weak freestone_option_set
#pragma weak freestone_option_get
#pragma weak freestone_stats
#pragma weak freestone_purge
